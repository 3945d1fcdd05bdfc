"""Physics of one step, from a state to the next.

`forward.py` lists the stages in order, `api.py` defines the public functions.
"""
