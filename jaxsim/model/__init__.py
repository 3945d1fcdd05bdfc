"""Model and Data: their fields, their static structure, names of objects, and descriptions."""
