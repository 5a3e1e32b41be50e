"""gRPC over our own HTTP/2 connection machine: only what Envoy needs of a server, at a fraction of the cost."""
