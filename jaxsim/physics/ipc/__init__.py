"""Intersection-free contacts of shells: the mode `ipc` of the discrete integrator."""
