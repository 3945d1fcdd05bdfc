"""The step in time, and the inertia that implicit integration sees."""
