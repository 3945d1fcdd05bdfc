"""Time integration, and the inertia of implicit integrators."""
