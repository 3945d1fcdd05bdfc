"""Contacts of any two convex shapes: GJK/EPA, implicit derivatives, and patches of flat contact."""
