"""Sensors, by the stage that they need."""
