"""Contacts of flexes with geoms, between flexes, and of flexes with themselves."""
