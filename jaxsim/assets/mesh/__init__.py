"""Geometry of a triangle surface: vertices, normals, mass, convex hull and polygons.

    Surface -> weld -> placed vertices -> mass -> principal frame -> hull, polygons

Each step is one file; `compile/asset/mesh/meshes.py` combines them. `distance.py`, with `boxes.py`
and `closest_point.py`, computes the distance of a point from a surface.
"""
