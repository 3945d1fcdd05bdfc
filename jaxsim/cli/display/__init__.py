"""Commands that display a model or a motion."""
