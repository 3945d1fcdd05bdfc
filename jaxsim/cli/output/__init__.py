"""What the command writes."""
