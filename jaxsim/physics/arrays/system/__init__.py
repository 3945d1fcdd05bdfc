"""Linear systems `[n, n, *W]`: factorizations, solutions, inverses, and symmetric
matrix formats.
"""
