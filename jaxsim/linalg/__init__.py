"""Linear systems `[n, n, *W]`: factorizations, solutions, inverses, symmetric matrix formats."""
