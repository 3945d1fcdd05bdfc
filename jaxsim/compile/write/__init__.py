"""Convert a compiled model, changed or flattened, back to MJCF elements."""
