"""Contacts of any two convex shapes: distance, depth, derivative, and patches of flat contact."""
