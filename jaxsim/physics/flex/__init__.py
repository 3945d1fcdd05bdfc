"""Flexes (deformable bodies): vertex positions and elastic forces."""
