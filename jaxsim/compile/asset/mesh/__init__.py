"""Compile meshes: their fields, and the geometry of mesh geoms and sites."""
