"""What shows a model or a motion to a person."""
