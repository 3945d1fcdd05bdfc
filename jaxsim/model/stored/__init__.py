"""A model or a world as others store it: as a vector, or as a dict of arrays."""
