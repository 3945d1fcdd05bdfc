"""Poses and shapes: quaternions, orientations, principal axes, volumes, virtual masses."""
