"""Queries on a state, outside of the stages of a step."""
