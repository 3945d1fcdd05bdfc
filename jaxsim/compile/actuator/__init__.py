"""Compile actuators: shortcuts, inputs, targets and transmissions."""
