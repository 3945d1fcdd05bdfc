"""Rays: where they first meet a geom."""
