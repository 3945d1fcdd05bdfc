"""Narrow phase of primitive shapes, pair by pair."""
