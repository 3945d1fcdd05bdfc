"""Newton's method as one kernel of a GPU: the solver's form for lanes (arrays/kernel.py)."""
