"""Frames that scale their contents: lengths, masses, and all dependent quantities."""
