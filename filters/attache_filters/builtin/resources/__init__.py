"""`resources`: what is answered from the store without asking a model, and whether the gateway is ready."""

from attache_filters.builtin.resources.filter import Resources, ResourcesConfig

__all__ = ["Resources", "ResourcesConfig"]
