"""Shapes of arrays in the signatures of public functions.

    def full_m(m: Model, d: Data) -> Annotated[Array, Float("nv", "nv")]

To a type checker an annotated array is an array; at run time `typing.get_type_hints(f,
include_extras=True)` has the kind of number and the axes. The shape is that of one world: under
`jax.vmap` the batch axis precedes it, and a core function of the physics has `*W` after it (a
scalar argument is one item, as a field of Data). An axis is

    "nv"        a size of the Model
    3           a number
    "n"         any size, the same wherever the name occurs in a signature
    "*n"        any number of axes: none for one point, (n,) for several

A field of Model or Data is declared in the same way (fields.py). A test calls every public function
and compares its results with these annotations. They play the part of jaxtyping's, without its
runtime checks: public functions check their arguments themselves (physics/arguments.py).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jaxsim.model.fields import DTYPES


@dataclass(frozen=True, init=False, repr=False)
class Shaped:
    """Shape of an array of any numbers, the second argument of `typing.Annotated`.

    Attributes:
      dims: one entry per axis; `()` is a scalar.
    """

    dims: tuple[str | int, ...]
    dtype: ClassVar[type] = np.generic

    def __init__(self, *dims: str | int):
        object.__setattr__(self, "dims", dims)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.dims))})"


class Float(Shaped):
    """Shape of an array of real numbers, in the precision of the model."""

    dtype = DTYPES["float"]


class Int(Shaped):
    """Shape of an array of integers."""

    dtype = DTYPES["int"]


class Bool(Shaped):
    """Shape of an array of booleans."""

    dtype = DTYPES["bool"]
