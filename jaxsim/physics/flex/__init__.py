"""Flexes: deformable bodies. Where their vertices are, and the forces of their elasticity."""
