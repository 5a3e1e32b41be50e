"""The messages of Envoy's external processing protocol, generated from `ext_proc.proto` (`make proto`)."""
