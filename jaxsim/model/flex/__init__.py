"""Kinds of flexes, and their tables of elements, edges and bending stencils."""
