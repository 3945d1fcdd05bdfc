"""The one type of the numbers inside the physics.

`Array` is `[items, *W]`: the items first (bodies, dofs, rows; a matrix has two such axes), then the
worlds, of which there is no axis for one world and one axis for many. Docstrings give the items,
such as `[nv, *W]`. A `Tree` is an array, a value of several (`Vec`), or a record.
"""

from typing import TypeVar

import jax

Array = jax.Array
Tree = TypeVar("Tree")
