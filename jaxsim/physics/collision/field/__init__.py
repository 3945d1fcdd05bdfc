"""Contacts of geoms with signed distance functions, by descent from many initial points."""
