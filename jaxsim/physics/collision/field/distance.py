"""Signed distance functions of all kinds of geoms and their gradients, in table SDF_FUNCTIONS.

Geoms of several kinds are evaluated together: every function that occurs among them is evaluated
for all, and each geom selects its own. So a program grows with the number of functions, not of
geoms or pairs.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.node import node
from jaxsim.assets.sdf.shapes import SdfShape
from jaxsim.enums import GeomType
from jaxsim.extend.registry import shapes
from jaxsim.math import Vec, select_where
from jaxsim.physics.collision.field import primitive
from jaxsim.physics.collision.field.octree import SdfOctrees, octree_distance


@node("kinds")
class SdfGeoms:
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
    octree: SdfOctrees | None


class SdfFunction(NamedTuple):
    """A signed distance function.

    Attributes:
      distance: takes points `[k, n, *W]` in the frame of the geoms and the geoms; returns distances
        [m].
      slope: descent direction of the search, a function of the points, the sizes and the gradient;
        None: the gradient itself.
    """

    distance: Callable[[Vec, SdfGeoms], Array]
    slope: Callable[[Vec, Vec, Vec], Vec] | None = None


def signed_distance(x: Vec, solid: SdfGeoms) -> Array:
    """Return signed distances of points in the frames of geoms, `[k, n, *W]` [m]."""
    # Evaluate every function for all geoms and select.
    first, *others = solid.kinds
    value = sdf_function(first).distance(x, solid)
    for kind in others:
        value = jnp.where(_has_function(solid, kind), sdf_function(kind).distance(x, solid), value)
    return value


def distance_and_slope(x: Vec, solid: SdfGeoms) -> tuple[Array, Vec]:
    """Return signed distances of points, and the descent directions of the search."""
    value, back = jax.vjp(lambda x: signed_distance(x, solid), x)
    (slope,) = back(jnp.ones_like(value))
    # Replace the gradient for types with a descent direction of their own.
    for kind in solid.kinds:
        turned = sdf_function(kind).slope
        if turned is not None:
            slope = select_where(_has_function(solid, kind), turned(x, solid.size, slope), slope)
    return value, slope


def sdf_function(kind: str) -> SdfFunction:
    """Return the signed distance function of a geom type or plugin shape by name.

    Raises:
      ValueError: the plugin is not registered any more, or was registered again.
    """
    if kind in SDF_FUNCTIONS:
        return SDF_FUNCTIONS[kind]
    known = shapes()
    if kind not in known:
        raise ValueError(
            f"the shape {kind!r} is not the one that the model was loaded with; register it, and "
            "load the model again"
        )
    return _plugin_function(kind, known[kind])


def sdf_function_id(kind: str) -> int:
    """Return the id of a function, which stays the same for the life of the process."""
    return _CODES.setdefault(kind, len(_CODES))


def _has_function(solid: SdfGeoms, kind: str) -> Array:
    """Return which geoms have a function."""
    return solid.code == sdf_function_id(kind)


def _primitive(function: Callable, slope: Callable | None = None) -> SdfFunction:
    """Return the table entry of a geom type."""
    return SdfFunction(lambda x, solid: function(x, solid.size), slope)


def _plugin_function(name: str, shape: SdfShape) -> SdfFunction:
    """Return the table entry of a plugin shape."""
    return SdfFunction(lambda x, solid: shape.distance(*x.parts, *solid.constants[name]))


def _mesh_distance(x: Vec, solid: SdfGeoms) -> Array:
    """Return distances from meshes."""
    assert solid.octree is not None
    return octree_distance(x, solid.octree)


def sdf_name(geom_type: int) -> str:
    """Return the name of a geom type's function."""
    return GeomType(geom_type).name.lower()


OCTREE_SDF = "octree"  # function of meshes; the others are named after geom types
SDF_FUNCTIONS: dict[str, SdfFunction] = {
    sdf_name(GeomType.PLANE): _primitive(primitive.sdf_plane),
    sdf_name(GeomType.SPHERE): _primitive(primitive.sdf_sphere),
    sdf_name(GeomType.CAPSULE): _primitive(primitive.sdf_capsule),
    sdf_name(GeomType.ELLIPSOID): _primitive(primitive.sdf_ellipsoid, primitive.ellipsoid_slope),
    sdf_name(GeomType.CYLINDER): _primitive(primitive.sdf_cylinder),
    sdf_name(GeomType.BOX): _primitive(primitive.sdf_box, primitive.box_slope),
    OCTREE_SDF: SdfFunction(_mesh_distance),
}
_CODES: dict[str, int] = {}
