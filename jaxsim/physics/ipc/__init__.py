"""Contacts of shells that nothing may pass through: the mode ipc of the discrete integrator."""
