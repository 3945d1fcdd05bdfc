"""Flexes: what `<flexcomp>` expands to, and the arrays of `<flex>`."""
