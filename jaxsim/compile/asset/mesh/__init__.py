"""Meshes: their fields, and the geoms and sites that have their shape."""
