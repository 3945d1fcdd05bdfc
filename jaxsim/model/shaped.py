"""Shapes of arrays in the signatures of public functions, in jaxtyping's notation.

    def full_m(m: Model, d: Data) -> Float[Array, "nv nv"]

To a type checker `Float[Array, "nv nv"]` is an `Array`; at run time
`typing.get_type_hints(f, include_extras=True)` has its `Shape`. The shape is that of one world:
under `jax.vmap` the batch axis precedes it, and a core function of the physics has `*W` after it (a
scalar argument is one item, as a field of Data). The axes, separated by spaces, are

    nv          a size of the Model
    3           a number
    n           any size, the same wherever the name occurs in a signature
    *n          any number of axes: none for one point, (n,) for several

and "" is a scalar. A field of Model or Data is declared in a similar way (record/fields.py). A test
calls every public function and compares its results with these annotations. Nothing is checked at
run time: public functions check their arguments themselves (physics/public/arguments.py).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from jaxsim.model.record.fields import DTYPES


@dataclass(frozen=True)
class Shape:
    """Shape and kind of number of an array, the metadata of an annotation.

    Attributes:
      dims: one entry per axis; `()` is a scalar.
      dtype: numpy type of the kind of number.
    """

    dims: tuple[str | int, ...]
    dtype: type

    def __repr__(self) -> str:
        return f"{self.dtype.__name__}[{' '.join(map(str, self.dims))}]"


if TYPE_CHECKING:
    from typing import Annotated as Bool
    from typing import Annotated as Float
    from typing import Annotated as Int
    from typing import Annotated as Shaped
else:

    class Shaped:
        """Array of any numbers."""

        dtype = np.generic

        def __class_getitem__(cls, array_and_axes: tuple[type, str]) -> Any:
            """Return the array type with its shape as metadata."""
            array, axes = array_and_axes
            dims = tuple(int(a) if a.isdigit() else a for a in axes.split())
            return Annotated[array, Shape(dims, cls.dtype)]

    class Float(Shaped):
        """Array of real numbers, in the precision of the model."""

        dtype = DTYPES["float"]

    class Int(Shaped):
        """Array of integers."""

        dtype = DTYPES["int"]

    class Bool(Shaped):
        """Array of booleans."""

        dtype = DTYPES["bool"]
