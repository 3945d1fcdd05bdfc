"""Geometry of the compiler: poses, orientations, principal axes, and shapes."""
