"""Compiler of flexes: the expansion of `<flexcomp>`, and the arrays of `<flex>`."""
