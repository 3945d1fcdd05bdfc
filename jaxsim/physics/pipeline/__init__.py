"""A step as a list of stages: the table, its rows, and the functions that run them."""
