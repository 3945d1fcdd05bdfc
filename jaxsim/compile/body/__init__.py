"""Compile bodies and their joints, geoms, sites, cameras, lights and masses; the kinematic tree."""
