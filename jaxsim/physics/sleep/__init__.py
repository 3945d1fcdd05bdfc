"""Sleeping trees: which things sleep, what wakes them, and how they fall asleep."""
