"""Tasks of the DeepMind Control Suite: its models, starts, observations and rewards."""
