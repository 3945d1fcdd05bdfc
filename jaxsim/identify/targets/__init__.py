"""What the name of a parameter stands for: numbers of a model or of a signal."""
