"""Hosting filters behind Envoy's ext_proc: one gRPC stream per HTTP exchange and segment."""
