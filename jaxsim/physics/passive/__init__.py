"""Passive forces: springs, dampers, gravity compensation, a medium; energies."""
