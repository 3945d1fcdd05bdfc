"""Immutable records of declared fields, the base of Model and Data."""
