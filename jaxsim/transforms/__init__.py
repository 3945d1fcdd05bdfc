"""The JAX primitive `physics`: a whole physics function with transformation rules of its own."""

# Importing these modules registers the rules of the primitive.
from jaxsim.transforms import batching, primitive_rules  # noqa: F401
