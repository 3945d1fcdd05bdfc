"""Functions for users: of one world, with checked arguments, batched and compiled."""
