"""Passive forces: springs, dampers, gravity compensation, fluid, adhesion; and energies."""
