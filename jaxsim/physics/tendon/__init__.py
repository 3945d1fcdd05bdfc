"""Tendons: their paths, lengths and Jacobians, and what they exert on bodies."""
