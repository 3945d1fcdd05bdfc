"""The reference pose in numpy: kinematics, inertia, tendons, and the derived constants."""
