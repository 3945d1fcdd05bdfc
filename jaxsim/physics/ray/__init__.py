"""Ray casting: first intersections of rays with geoms."""
