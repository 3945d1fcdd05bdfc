"""Signed distances in space, kept at the corners of the cells of an octree.

    triangles -> grow -> balance -> hanging corners -> values

The cells that the surface meets are split down to a depth, so that the corners are close to each
other where the surface is; between them distances are interpolated. `build.py` puts the steps
together, `distance.py` measures.
"""
