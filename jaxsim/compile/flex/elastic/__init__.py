"""Elasticity of flexes: coefficients of their elastic forces."""
