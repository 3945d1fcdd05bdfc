"""Contacts: candidate pairs, broad phase, colliders, and the list of contacts of a state."""
