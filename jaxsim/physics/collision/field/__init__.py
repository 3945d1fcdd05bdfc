"""Contacts of geoms with signed distance functions, by gradient descent from many
initial points.
"""
