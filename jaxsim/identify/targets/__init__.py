"""Resolve the name of a parameter to numbers of a model or of a signal."""
