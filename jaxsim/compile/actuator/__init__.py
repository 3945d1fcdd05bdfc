"""Actuators: shortcuts, inputs, targets and transmissions."""
