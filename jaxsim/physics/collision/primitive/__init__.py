"""Narrow phase of primitive shapes, in closed form, one function per pair of types."""
