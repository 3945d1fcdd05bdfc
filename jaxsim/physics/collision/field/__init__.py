"""Contacts of geoms with signed distance functions, by descent from many initial
points or, for meshes and shells, by the Frank-Wolfe method on faces."""
