"""Least-squares search: optimizers, sensitivities of rollouts, and uncertainties."""
