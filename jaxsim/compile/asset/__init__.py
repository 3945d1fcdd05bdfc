"""Compile assets other than meshes: files, textures, materials, height fields and skins."""
