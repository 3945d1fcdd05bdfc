"""Speculative contacts, by continuous collision detection within a step."""
