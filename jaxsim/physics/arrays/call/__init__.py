"""The JAX primitive `physics`, which wraps a whole physics function and has its own rules
(call.py).
"""

# Importing these modules registers the rules of the primitive.
from jaxsim.physics.arrays.call import batched, rules  # noqa: F401
