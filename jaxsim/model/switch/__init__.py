"""What of a model decides which parts a program has, and what cannot be set together."""
