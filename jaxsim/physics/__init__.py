"""Physics of one step, from a state to the next.

`pipeline/stages.py` lists the stages of a step in order, `step.py` runs them and integrates, and
`public/` has the functions for users.
"""
