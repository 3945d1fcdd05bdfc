"""A function of the physics as one operation of JAX, with rules of its own (call.py)."""

# the rules of the operation are registered where it is first imported
from jaxsim.physics.arrays.call import batched, rules  # noqa: F401
