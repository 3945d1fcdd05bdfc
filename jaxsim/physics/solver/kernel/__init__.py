"""Newton's method as one GPU kernel, on warps (arrays/kernel.py)."""
