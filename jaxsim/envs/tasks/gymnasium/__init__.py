"""The MuJoCo tasks of Gymnasium, version 5: their models, starts, observations and rewards."""
