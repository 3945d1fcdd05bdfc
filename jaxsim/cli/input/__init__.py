"""What a command is given, checked before it runs."""
