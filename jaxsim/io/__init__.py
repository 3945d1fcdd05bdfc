"""Load, assemble and save models; exchange models and states with MuJoCo."""
