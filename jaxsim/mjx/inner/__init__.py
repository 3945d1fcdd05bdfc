"""Implementation of the inner modules of MJX that programs import, `mujoco.mjx._src`."""
