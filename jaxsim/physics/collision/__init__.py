"""Collision detection: candidate pairs, broad phase, narrow phase, and the contact list."""
