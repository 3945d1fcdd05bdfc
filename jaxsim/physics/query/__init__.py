"""What may be asked of a state beside the stages of a step."""
