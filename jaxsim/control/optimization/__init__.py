"""Optimisations as files: a form, what its costs read, a search in batches of turns."""
