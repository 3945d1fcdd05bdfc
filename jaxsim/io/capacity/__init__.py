"""Capacities of a world for contacts and near pairs of geoms."""
