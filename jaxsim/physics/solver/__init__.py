"""Constraint solvers: the convex problem, its cost, and Newton, CG, PGS and no-slip iterations."""
