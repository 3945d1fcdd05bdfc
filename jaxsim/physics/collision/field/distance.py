"""Signed distances of geoms of any kind, and their slopes: one table of functions.

Geoms of several kinds are asked together: every function that occurs among them is computed for
all, and each geom takes its own. So a program grows with the functions, not with geoms or pairs.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.assets.sdf.shapes import Shape
from jaxsim.enums import GeomType
from jaxsim.extend.registry import shapes
from jaxsim.math import Vec, select
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.node import node
from jaxsim.physics.collision.field import primitive
from jaxsim.physics.collision.field.octree import Octree, octree_distance


@node("kinds")
class Solid:
    """Geoms as signed distances, `[1, n, *W]` each.

    Attributes:
      kinds: names of the functions that may be theirs (static).
      code: of each geom, the number of its function.
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
    value = function(first).distance(x, solid)
    for kind in others:
        value = jnp.where(_is(solid, kind), function(kind).distance(x, solid), value)
    return value


def distance_and_slope(x: Vec, solid: Solid) -> tuple[Array, Vec]:
    """The same, and the slopes in which the search goes down."""
    value, back = jax.vjp(lambda x: distance(x, solid), x)
    (slope,) = back(jnp.ones_like(value))
    for kind in solid.kinds:
        turned = function(kind).slope
        if turned is not None:
            slope = select(_is(solid, kind), turned(x, solid.size, slope), slope)
    return value, slope


def function(kind: str) -> Function:
    """The function of that name: of a type of geoms, or of the shape of a plugin.

    Raises:
      ValueError: the plugin is not registered any more, or anew.
    """
    if kind in FUNCTIONS:
        return FUNCTIONS[kind]
    known = shapes()
    if kind not in known:
        raise ValueError(
            f"the shape {kind!r} is not the one that the model was loaded with; register it, and "
            "load the model again"
        )
    return _of_plugin(kind, known[kind])


def code(kind: str) -> int:
    """A number for a function; it stays the same, whatever others are asked about."""
    return _CODES.setdefault(kind, len(_CODES))


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


OCTREE = "octree"  # of meshes; the others have the names of types of geoms
FUNCTIONS: dict[str, Function] = {
    name(GeomType.PLANE): _primitive(primitive.plane),
    name(GeomType.SPHERE): _primitive(primitive.sphere),
    name(GeomType.CAPSULE): _primitive(primitive.capsule),
    name(GeomType.ELLIPSOID): _primitive(primitive.ellipsoid, primitive.ellipsoid_slope),
    name(GeomType.CYLINDER): _primitive(primitive.cylinder),
    name(GeomType.BOX): _primitive(primitive.box, primitive.box_slope),
    OCTREE: Function(_of_mesh),
}
_CODES: dict[str, int] = {}
