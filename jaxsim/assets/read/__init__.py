"""Read file formats from bytes: meshes, images, height fields, skins and archives of arrays."""
