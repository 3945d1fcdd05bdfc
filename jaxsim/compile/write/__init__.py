"""The way back: a compiled model, changed or flattened, as elements of MJCF."""
