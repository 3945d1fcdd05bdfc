"""Generated assets: built-in shapes, textures and terrain."""
