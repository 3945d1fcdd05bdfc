"""Contacts of geoms that are known by their signed distance: descent from many starting points."""
