"""Array layout of the physics: worlds in the last axis, constant indices, products, factorizations
(docs/numerics.md).
"""
