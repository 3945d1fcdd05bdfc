"""Geometry of deformable objects: surfaces of flexes and skins, rods, tendons."""
