"""Actuators: controls, activations, forces and transmissions."""
