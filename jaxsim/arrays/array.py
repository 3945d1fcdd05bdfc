"""The array type of the physics.

`Array` is `[items, *W]`: first the items (bodies, dofs, rows; a matrix has two such axes), then the
world axis `*W`, which is absent for one world and the last axis for many. Docstrings give the shape
in this notation, such as `[nv, *W]`; annotations of public functions give that of one world
(model/shaped.py). A `PyTree` is a pytree of arrays: one array, a value of several components
(`Vec`), or a record.
"""

from typing import TypeVar

import jax

Array = jax.Array
PyTree = TypeVar("PyTree")
