"""Rigid bodies: poses, inertias, velocities, the recursions of the tree."""
