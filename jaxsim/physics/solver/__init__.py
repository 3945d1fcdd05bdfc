"""The constraint solver: the problem, its cost, the line search and Newton's method."""
