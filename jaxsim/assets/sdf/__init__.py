"""Shapes given by a signed distance: MuJoCo's own plugins `mujoco.sdf.*`, and their meshes."""
