"""Inputs of a command, checked before it runs."""
