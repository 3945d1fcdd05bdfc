"""Array layout of the physics (docs/numerics.md): worlds last, products, linear systems."""
