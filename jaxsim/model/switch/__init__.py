"""Features that a model compiles in or out, and options that cannot be combined."""
