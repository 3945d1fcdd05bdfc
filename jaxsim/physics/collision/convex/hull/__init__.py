"""Convex hulls of meshes: lookup tables, support function, faces and edges at a vertex.

`hulls.py` has the record `Hulls` and the ids of its items; `support.py` and `faces.py` query it.
"""
