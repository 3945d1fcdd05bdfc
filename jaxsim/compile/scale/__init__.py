"""Frames that scale what is in them: lengths, masses, and all that follows."""
