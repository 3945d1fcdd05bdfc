"""Systems of linear equations `[n, n, *W]`: factors, solutions, inverses."""
