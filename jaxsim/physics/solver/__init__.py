"""The constraint solver: the problem, its cost, and Newton, CG, PGS and no-slip."""
