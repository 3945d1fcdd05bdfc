"""Signed distances of geoms of any kind, and their slopes: one table of functions.

Geoms of several kinds are asked together: every function that occurs among them is computed for
all, and each geom takes its own. So a program grows with the functions, not with geoms or pairs.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.assets.sdf.shapes import SHAPES, Shape
from jaxsim.enums import GeomType
from jaxsim.math import Vec, select
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.node import node
from jaxsim.physics.collision.field import primitive
from jaxsim.physics.collision.field.octree import Octree, octree_distance


@node("kinds")
class Solid:
    """Geoms as signed distances, `[1, n, *W]` each.

    Attributes:
      kinds: names of the functions that may be theirs, of `FUNCTIONS` (static).
      code: of each geom, the place of its function in that table.
      size: `geom_size`, with ones for what a type does not have.
      constants: of the shapes of plugins, by the name of the function.
      octree: of meshes; None if there are none.
    """

    kinds: tuple[str, ...]
    code: jax.Array
    size: Vec
    constants: dict[str, tuple[jax.Array, ...]]
    octree: Octree | None


class Function(NamedTuple):
    """A kind of signed distance.

    Attributes:
      distance: of points `[k, n, *W]` in the frame of the geoms [m].
      slope: what the search takes instead of the derivative: a function of the points, the sizes
        and the derivative; None: the derivative itself.
    """

    distance: Callable[[Vec, Solid], Array]
    slope: Callable[[Vec, Vec, Vec], Vec] | None = None


def distance(x: Vec, solid: Solid) -> Array:
    """Signed distances of points in the frames of geoms, `[k, n, *W]` [m]."""
    first, *others = solid.kinds
    value = FUNCTIONS[first].distance(x, solid)
    for kind in others:
        value = jnp.where(_is(solid, kind), FUNCTIONS[kind].distance(x, solid), value)
    return value


def distance_and_slope(x: Vec, solid: Solid) -> tuple[Array, Vec]:
    """The same, and the slopes in which the search goes down."""
    value, back = jax.vjp(lambda x: distance(x, solid), x)
    (slope,) = back(jnp.ones_like(value))
    for kind in solid.kinds:
        turned = FUNCTIONS[kind].slope
        if turned is not None:
            slope = select(_is(solid, kind), turned(x, solid.size, slope), slope)
    return value, slope


def code(kind: str) -> int:
    """The place of a function in the table."""
    return _CODES[kind]


def _is(solid: Solid, kind: str) -> Array:
    return solid.code == code(kind)


def _primitive(function: Callable, slope: Callable | None = None) -> Function:
    return Function(lambda x, solid: function(x, solid.size), slope)


def _of_plugin(name: str, shape: Shape) -> Function:
    return Function(lambda x, solid: shape.distance(*x.parts, *solid.constants[name]))


def _of_mesh(x: Vec, solid: Solid) -> Array:
    assert solid.octree is not None
    return octree_distance(x, solid.octree)


def name(geom_type: int) -> str:
    """The name of the function of a primitive."""
    return GeomType(geom_type).name.lower()


OCTREE = "octree"  # of meshes; the others have the names of primitives and of plugins
FUNCTIONS: dict[str, Function] = {
    name(GeomType.PLANE): _primitive(primitive.plane),
    name(GeomType.SPHERE): _primitive(primitive.sphere),
    name(GeomType.CAPSULE): _primitive(primitive.capsule),
    name(GeomType.ELLIPSOID): _primitive(primitive.ellipsoid, primitive.ellipsoid_slope),
    name(GeomType.CYLINDER): _primitive(primitive.cylinder),
    name(GeomType.BOX): _primitive(primitive.box, primitive.box_slope),
    OCTREE: Function(_of_mesh),
    **{key: _of_plugin(key, shape) for key, shape in SHAPES.items()},
}
_CODES = {kind: place for place, kind in enumerate(FUNCTIONS)}
