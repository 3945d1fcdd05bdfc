"""What follows from the numbers of a model at its reference pose."""
