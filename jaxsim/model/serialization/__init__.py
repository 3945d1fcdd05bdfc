"""External representations of a model or a world: state vectors, dicts of arrays, name texts."""
