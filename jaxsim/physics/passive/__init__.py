"""Passive forces: springs, plasticity, dampers, gravity compensation, fluid, adhesion, passive
contacts; and energies."""
