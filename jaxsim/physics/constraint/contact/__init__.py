"""Constraint rows of contacts."""
