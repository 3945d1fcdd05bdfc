"""Rigid bodies: poses, inertias, velocities, and the recursions of the kinematic tree."""
