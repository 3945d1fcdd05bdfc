"""Tendons: paths, lengths, Jacobians, and their forces on bodies."""
