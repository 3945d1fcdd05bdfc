"""Rows of the constraint problem: equalities, dry friction, limits and contacts."""
