"""Newton's method as one GPU kernel, on warps (transforms/pallas.py)."""
