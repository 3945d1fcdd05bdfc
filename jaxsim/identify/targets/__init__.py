"""Resolve names of parameters to numbers of a model or of a signal."""
