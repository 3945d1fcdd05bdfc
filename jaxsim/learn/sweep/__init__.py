"""Sweeps: one training for each combination of settings, in a folder of its own.

These modules start no device: the trainings are processes, and all memory is theirs.
"""
