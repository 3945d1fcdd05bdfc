"""Matrices of a state in sparse formats."""
