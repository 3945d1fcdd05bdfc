"""Speculative contacts: of geoms that would meet before the step ends."""
