"""Forces on the points of flexes, and their generalized forces.

A point is a vertex that is fixed to a body, or a node of an interpolated flex; vertices come first.
An elastic law returns forces on points (`PointForces`), stiffness matrices between the points of an
element (`StiffnessBlock`), or matrices between hinges (`HingeBlock`). Generalized forces are summed
by point and by body before they are mapped to dofs with J' (`wrench_force`).
`value_and_derivatives`, `stiffness_products` and `dissipation_slope` build Gauss-Newton matrices
and Rayleigh dampers from a law's strains by automatic differentiation.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static, sum_groups
from jaxsim.arrays.linear import group_table
from jaxsim.math import Quat, Vec, concat
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.applied_force import wrench_force

YIELDS_BENT, YIELDS_STRETCHED = 1, 2  # bits of flex_plasticmode


class PointForces(NamedTuple):
    """Forces of one law.

    Attributes:
      point: point on which each acts, `[n]`.
      spring, damper: in the world `[n, *W]` [N].
    """

    point: np.ndarray
    spring: Vec
    damper: Vec


class StiffnessBlock(NamedTuple):
    """Stiffness of elements: minus the derivative of forces by displacements.

    Matrices are `[n, 3 k, 3 k, *W]`, symmetric, positive semidefinite, ordered by point, then axis.

    Attributes:
      flex: flex of each element `[n]`.
      point: its points `[n, k]`.
      matrix: stiffness of springs.
      damper: matrix of dampers, without the flex's coefficient; None: as `matrix`.
      turning: stiffness of springs that counts only for the inertia of a step; None: none.
    """

    flex: np.ndarray
    point: np.ndarray
    matrix: Array
    damper: Array | None = None
    turning: Array | None = None


class HingeBlock(NamedTuple):
    """Stiffness of pairs of hinges.

    Attributes:
      flex: flex of each pair `[n]`.
      dof: dofs of its hinges `[n, 2]`; -1: none.
      matrix: stiffness of springs `[n, 2, 2, *W]`.
      damper: matrix of dampers `[n, 2, 2, *W]`.
    """

    flex: np.ndarray
    dof: np.ndarray
    matrix: Array
    damper: Array


class FlexPointState(NamedTuple):
    """State of all points, vertices first, then nodes.

    Attributes:
      xpos, velocity: in the world `[npoint, *W]`.
      rotation: rotations of all elements of interpolated flexes, see `cell.element_rotations`;
        None: no elements.
      plastic: plastic state `[nplastic, *W]`.
    """

    xpos: Vec
    velocity: Vec
    rotation: Quat | None
    plastic: Array


def plastic_values(plastic: Array, adr: np.ndarray, count: int) -> list[Array]:
    """Gather plastic state at `adr` and the following addresses, `[n, *W]` each; zeros at -1."""
    # -1 addresses a zero that is put in front.
    worlds = plastic.shape[1:]
    if (adr < 0).all():
        return [jnp.zeros((len(adr), *worlds), plastic.dtype)] * count
    padded = jnp.concatenate([jnp.zeros((1, *worlds), plastic.dtype), plastic])
    return [gather_static(padded, np.where(adr >= 0, adr + 1 + k, 0)) for k in range(count)]


def generalized_forces(
    m: Model, d: Data, point_forces: list[PointForces], state: FlexPointState
) -> tuple[Array, Array, Array]:
    """Compute the generalized forces of springs, of dampers, and of both, `[nv, *W]` each.

    Results that are not used are removed by the compiler; a step uses the last.
    """
    # Sum forces by point, then forces and torques by body.
    body = np.maximum(np.concatenate([m.flex_vertbodyid, m.flex_nodebodyid]), 0)
    on_point = group_table(np.concatenate([p.point for p in point_forces]), len(body))
    on_body = group_table(np.where(m.body_weldid[body] > 0, body, -1), m.nbody)
    arm = state.xpos - gather_static(d.xpos, body)
    # Points whose forces act only on their own body's dofs.
    direct = _direct(m)

    def on_bodies(each: Vec) -> tuple[Vec, Vec]:
        whole: tuple[Vec, Vec] = sum_groups((each, arm.cross(each)), on_body)
        return whole

    def force(parts: list[Vec]) -> Array:
        each = sum_groups(concat(parts), on_point)
        if direct is None:
            # Map the wrenches of bodies to dofs; some nodes act on their own dofs only.
            return wrench_force(m, d, *on_bodies(each), d.xpos)
        own, rest = each.scale(direct), each.scale(1 - direct)
        alone = _slide_force(m, d, on_bodies(own)[0])
        return alone + wrench_force(m, d, *on_bodies(rest), d.xpos)

    springs, dampers = [p.spring for p in point_forces], [p.damper for p in point_forces]
    both = [s + b for s, b in zip(springs, dampers, strict=True)]
    return force(springs), force(dampers), force(both)


def _direct(m: Model) -> Array | None:
    """Return 1 for points whose forces act only on their own body's dofs, `[npoint, *W]`.

    MuJoCo does this for nodes at the origin of a body with joints, whatever carries the body. None:
    no such node is on a moving carrier.
    """
    # Nodes of jointed bodies that are carried by another moving body.
    body = m.flex_nodebodyid
    carried = m.body_weldid[m.body_parentid[body]] > 0
    jointed = m.body_dofnum[body] > 0
    if not (carried & jointed).any():
        return None
    x, y, z = (a == 0 for a in m.flex_node.parts)
    here = (x & y & z & column(jointed, x)).astype(m.flex_node.x.dtype)
    return jnp.concatenate([jnp.zeros((m.nflexvert, *here.shape[1:]), here.dtype), here])


def _slide_force(m: Model, d: Data, force: Vec) -> Array:
    """Compute the generalized force of body forces on the body's own dofs, which are slides."""
    return d.cdof.lin.dot(gather_static(force, m.dof_bodyid))


def element_points(x: Vec, table: np.ndarray) -> list[Vec]:
    """Gather points of elements, `[npoint, *W]`, `[n, k]` -> k of `[n, *W]`."""
    return [gather_static(x, table[:, k]) for k in range(table.shape[1])]


def spring_force(table: np.ndarray, spring: list[Vec], damper: list[Vec]) -> PointForces:
    """Return forces on the points of elements `[n, k]`, point by point."""
    return PointForces(table.T.ravel(), concat(spring), concat(damper))


def value_and_derivatives(function: Callable[[list[Vec]], Any], x: list[Vec]) -> tuple[Any, Any]:
    """Return a function of the points of elements, and its derivatives by their coordinates.

    The derivatives have the coordinate as first axis.
    """

    # Linearize in all coordinates, and apply the tangent map to unit vectors.
    def of_parts(parts: list[Array]) -> Any:
        return function([Vec(*parts[3 * i : 3 * i + 3]) for i in range(len(x))])

    parts = [a for v in x for a in v.parts]
    value, change = jax.linearize(of_parts, parts)
    units = [[jnp.full_like(a, i == j) for j, a in enumerate(parts)] for i in range(len(parts))]
    return value, jax.vmap(change)(jax.tree.map(lambda *a: jnp.stack(a), *units))


def directional_parts(unit: Vec, change: Vec) -> Array:
    """Return the components of derivatives `[k, n, *W]` along vectors `[n, *W]`."""
    return unit.map(lambda a: a[None]).dot(change)


StrainRow = tuple[
    Array, Array
]  # a weight `[n, *W]`, and a derivative by each coordinate `[k, n, *W]`


def stiffness_products(rows: list[StrainRow]) -> Array:
    """Sum weight * derivative * derivative' over rows (Gauss-Newton matrix), `[n, k, k, *W]`."""
    terms = [weight[None, None] * a[:, None] * a[None] for weight, a in rows]
    return jnp.moveaxis(sum(terms[1:], terms[0]), 2, 0)


def dissipation_slope(rows: Callable[[Any], list[StrainRow]], rates: Any) -> Any:
    """Differentiate Rayleigh's dissipation function by the rates.

        1/2 sum of weight (rate)^2

    Args:
      rows: weights, and rates, of a record like `rates` whose arrays have an additional first axis.
      rates: record of arrays `[n, *W]`.
    """

    # Rayleigh function: half the weighted sum of squared rates.
    def dissipated(rates: Any) -> Array:
        terms = rows(jax.tree.map(lambda a: a[None], rates))
        each = [jnp.sum(weight[None] * rate * rate) for weight, rate in terms]
        return 0.5 * sum(each[1:], each[0])

    return jax.grad(dissipated)(rates)


def gather_by_flex(values: jax.Array, flex: np.ndarray, like: Array) -> Array:
    """Gather a value per flex for each of its elements, `[n, *W]`."""
    return jnp.broadcast_to(gather_static(values, flex), (len(flex), *like.shape[1:]))


def gather_element_points(x: Vec, table: np.ndarray) -> Vec:
    """Gather points of elements, `[npoint, *W]`, `[n, k]` -> `[n, k, *W]`."""
    return gather_static(x, table.ravel()).map(lambda a: a.reshape(*table.shape, *a.shape[1:]))


def element_forces(table: np.ndarray, spring: Vec, damper: Vec) -> PointForces:
    """Return forces `[n, k, *W]` on the points of elements `[n, k]`."""

    def flat(v: Vec) -> Vec:
        return v.map(lambda a: a.reshape(table.size, *a.shape[2:]))

    return PointForces(table.ravel(), flat(spring), flat(damper))
