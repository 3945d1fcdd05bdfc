"""Constants derived from a model's other fields at its reference pose."""
