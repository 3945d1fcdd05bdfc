"""Static plan of the collision stage: candidate pairs, colliders and capacities."""
