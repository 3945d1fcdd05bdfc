"""Parts that environments and their adapters share."""
