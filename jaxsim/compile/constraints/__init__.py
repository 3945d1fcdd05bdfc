"""Compile the elements that refer to objects of the body tree.

`equalities.py`: equality constraints; `tendons.py`: tendons and the objects on their paths;
`contacts.py`: contact pairs and exclusions; `sensors.py`: sensors.
"""
