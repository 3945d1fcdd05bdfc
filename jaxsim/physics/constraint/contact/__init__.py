"""Contacts as constraint rows."""
