"""Assets that no file contains: built-in shapes and textures."""
