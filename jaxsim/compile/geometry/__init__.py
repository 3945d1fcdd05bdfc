"""Geometry of the compiler: quaternions, orientations, principal axes, volumes, virtual masses."""
