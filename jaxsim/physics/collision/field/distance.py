"""Signed distance functions of geoms of any kind, and their gradients, in one table (FUNCTIONS).

Geoms of several kinds are evaluated together: every function that occurs among them is evaluated
for all, and each geom selects its own. So a program grows with the number of functions, not of
geoms or pairs.
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
    """Geoms as signed distance functions, `[1, n, *W]` each.

    Attributes:
      kinds: names of the functions that can occur (static).
      code: id of each geom's function.
      size: `geom_size`, with 1 for the entries that a type does not have.
      constants: constants of plugin shapes, by the name of the function.
      octree: octrees of meshes; None if there are none.
    """

    kinds: tuple[str, ...]
    code: jax.Array
    size: Vec
    constants: dict[str, tuple[jax.Array, ...]]
    octree: Octree | None


class Function(NamedTuple):
    """A signed distance function.

    Attributes:
      distance: takes points `[k, n, *W]` in the frame of the geoms and the geoms; returns distances
        [m].
      slope: descent direction of the search, a function of the points, the sizes and the gradient;
        None: the gradient itself.
    """

    distance: Callable[[Vec, Solid], Array]
    slope: Callable[[Vec, Vec, Vec], Vec] | None = None


def distance(x: Vec, solid: Solid) -> Array:
    """Return signed distances of points in the frames of geoms, `[k, n, *W]` [m]."""
    # Evaluate every function for all geoms and select.
    first, *others = solid.kinds
    value = function(first).distance(x, solid)
    for kind in others:
        value = jnp.where(_is(solid, kind), function(kind).distance(x, solid), value)
    return value


def distance_and_slope(x: Vec, solid: Solid) -> tuple[Array, Vec]:
    """Return signed distances of points, and the descent directions of the search."""
    value, back = jax.vjp(lambda x: distance(x, solid), x)
    (slope,) = back(jnp.ones_like(value))
    # Replace the gradient for types with a descent direction of their own.
    for kind in solid.kinds:
        turned = function(kind).slope
        if turned is not None:
            slope = select(_is(solid, kind), turned(x, solid.size, slope), slope)
    return value, slope


def function(kind: str) -> Function:
    """Return the signed distance function of a geom type or plugin shape by name.

    Raises:
      ValueError: the plugin is not registered any more, or was registered again.
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
    """Return the id of a function, which stays the same for the life of the process."""
    return _CODES.setdefault(kind, len(_CODES))


def _is(solid: Solid, kind: str) -> Array:
    """Return which geoms have a function."""
    return solid.code == code(kind)


def _primitive(function: Callable, slope: Callable | None = None) -> Function:
    """Return the table entry of a geom type."""
    return Function(lambda x, solid: function(x, solid.size), slope)


def _of_plugin(name: str, shape: Shape) -> Function:
    """Return the table entry of a plugin shape."""
    return Function(lambda x, solid: shape.distance(*x.parts, *solid.constants[name]))


def _of_mesh(x: Vec, solid: Solid) -> Array:
    """Return distances from meshes."""
    assert solid.octree is not None
    return octree_distance(x, solid.octree)


def name(geom_type: int) -> str:
    """Return the name of a geom type's function."""
    return GeomType(geom_type).name.lower()


OCTREE = "octree"  # function of meshes; the others are named after geom types
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
