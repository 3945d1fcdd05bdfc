"""Speculative contacts, by continuous collision detection: geoms that would collide within the
step.
"""
