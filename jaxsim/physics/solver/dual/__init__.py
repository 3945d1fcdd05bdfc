"""Dual problem: the forces are the unknowns, visited one row or contact at a time."""
