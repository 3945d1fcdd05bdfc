"""Constraint rows: equalities, dry friction, limits and contacts."""
