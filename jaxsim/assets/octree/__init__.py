"""Signed distance fields stored at the corners of the cells of an octree.

    triangles -> grow -> balance -> hanging corners -> values

The cells that the surface intersects are split down to a given depth, so that samples are dense
near the surface; between them distances are interpolated. `build.py` combines the steps,
`assets/mesh/distance.py` computes distances.
"""
