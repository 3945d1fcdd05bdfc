"""What the compiler makes of a triangle surface: vertices, normals, mass, hull and polygons.

    Surface -> weld -> placed vertices -> mass -> principal frame -> hull, polygons

The steps are one file each; `asset/mesh/meshes.py` puts them together. `distance.py`, with
`boxes.py` and `closest.py`, measures how far a point is from a surface.
"""
