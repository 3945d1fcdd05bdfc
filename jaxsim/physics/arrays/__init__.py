"""The form of the arrays: worlds last, constant indices, products, factors (docs/numerics.md)."""
