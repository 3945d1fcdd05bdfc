"""The narrow phase of convex geoms that have no formula of their own."""
