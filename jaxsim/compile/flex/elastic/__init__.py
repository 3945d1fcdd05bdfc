"""Elasticity of flexes: the coefficients of their forces."""
