"""Sleeping trees: which objects sleep, what wakes them, and how they fall asleep."""
