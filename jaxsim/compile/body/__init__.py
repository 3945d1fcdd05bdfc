"""Bodies and what is fixed to them: joints, geoms, sites, cameras, lights, masses; the tree."""
