"""Matrices of a state in other forms than those that Data keeps."""
