"""The search: least squares, sensitivities of rollouts, and how well unknowns are known."""
