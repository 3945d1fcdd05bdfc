"""File formats: meshes, images, height fields, skins and archives of arrays, from bytes."""
