"""Output of the command."""
