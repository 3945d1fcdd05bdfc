"""The list of constraint rows under MuJoCo's names `efc_*`: its order, parameters and states."""
