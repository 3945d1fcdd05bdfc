"""Bending and torsion of rods without twist hinges: rings, and chains of bodies.

Discrete elastic rods: Bergou et al., *Discrete elastic rods*, 2008. A vertex between edges u and w
has the curvature binormal

    kb = 2 u x w / (|u| |w| + u . w),   of norm kappa = 2 tan(angle / 2)

and resists a change of kappa. Two neighbors that are curved at rest also resist a rotation of their
osculating planes about the edge between them. With n the direction of kb and R the rotation about
that edge by the rest angle, and norms smoothed near zero, rho^2 = kappa^2 + e^2, e = kappa0 / 10^4,

    E = sum of k (rho - rho0)^2 + c |n1 - R n2|^2,   n = kb / rho (rho0 / kappa0)

so that rods are at rest in their compiled shape. Forces are the gradient of E, by automatic
differentiation. Dampers, in proportion to the stiffness, resist the rates of kappa and of the
angle, which are zero in rigid motion. Corresponds to `mj_flexPassiveBend1D` in MuJoCo.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import MINVAL
from jaxsim.math import Vec, safe_atan2, safe_divide, safe_sqrt
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.flex.point_forces import (
    FlexPointState,
    PointForces,
    StiffnessBlock,
    StrainRow,
    directional_parts,
    dissipation_slope,
    element_points,
    spring_force,
    stiffness_products,
    value_and_derivatives,
)

_CURVATURE_SMOOTHING = 1e-4  # smoothing length of kappa, relative to its rest value
_RECORD_VERTICES = (3, 4)  # vertices per record: of one inner vertex, or of a pair of neighbors


class Bends(NamedTuple):
    """Inner vertices of rods, or pairs of neighbors.

    Attributes:
      flex: flex of each, `[n]`.
      vert: ids of its three or four vertices, `[n, 3 or 4]`.
      adr: address of its numbers in `flex_bending`, `[n]`.
    """

    flex: np.ndarray
    vert: np.ndarray
    adr: np.ndarray


@cache_by_structure
def rod_bends(s: Structure) -> list[Bends]:
    """Return the inner vertices, and pairs of neighbors, of the model's rods."""
    # Rods without twist state only; the others are in twist.py.
    twistless = s.flex_plasticadr[s.rod_flexid] < 0
    out = []
    for size in _RECORD_VERTICES:
        (row,) = np.nonzero(((s.rod_vert[:, 3] >= 0) == (size == 4)) & twistless)
        flex = s.rod_flexid[row]
        vert = s.rod_vert[row, :size] + s.flex_vertadr[flex][:, None]
        if len(row):
            out.append(Bends(flex, vert, s.rod_adr[row]))
    return out


def rod_forces(m: Model, state: FlexPointState) -> list[PointForces]:
    """Compute spring and damper forces of bending and torsion on the vertices."""
    return [_forces(m, group, state) for group in rod_bends(m)]


def rod_stiffness(m: Model, state: FlexPointState) -> list[StiffnessBlock]:
    """Return the stiffness of inner vertices and pairs, with MuJoCo's approximation.

    It is the second derivative of the energy by the curvatures, each part where it is positive:

        along kb      2 k (1 - rho0 (1 / rho - kappa^2 / rho^3))
        across it     2 k (1 - rho0 / rho)

    In a pair the second one acts only along the rotation of kb about the edge t, t x n; the pair
    adds 2 c / rho^2 for each vertex, and -2 c cos(angle) / (rho_1 rho_2) between both.
    """
    return [_block(m, group, state) for group in rod_bends(m)]


def _block(m: Model, group: Bends, state: FlexPointState) -> StiffnessBlock:
    # Strains and their derivatives by the coordinates of the vertices.
    k, x = _stiffness(m, group), element_points(state.xpos, group.vert)
    now, slope = value_and_derivatives(_rod_strains, x)
    matrix = _springs(k, now, slope) if k.rest_cos_sin is None else _pairs(k, now, slope, x)
    return StiffnessBlock(
        group.flex, group.vert, matrix, stiffness_products(_dampers(k, now, slope))
    )


def _rounded_parts(kb: Vec, rest: Array) -> tuple[Vec, Array, Array, Array]:
    """Return the direction of a curvature, 1 / rho, and relative stiffness along and across it."""
    size, rho = kb.norm(), _smoothed_curvature(kb, rest)
    one = jnp.ones_like(size)
    # rho and rho0 are smoothed norms.
    inverse, rho0 = safe_divide(one, rho), rest * np.sqrt(1 + _CURVATURE_SMOOTHING**2)
    along = jnp.maximum(1 - rho0 * (inverse - size * size * inverse**3), 0)
    across = jnp.maximum(1 - rho0 * inverse, 0)
    return kb.scale(safe_divide(one, size)), inverse, along, across


def _springs(k: "Stiffness", now: "Strains", slope: "Strains") -> Array:
    (kb,), (change,) = now.curvature, slope.curvature
    unit, _, along, across = _rounded_parts(kb, k.rest[0])
    # Isotropic part across kb, and the excess along it.
    rows: list[StrainRow] = [(2 * k.bend[0] * across, a) for a in change.parts]
    return stiffness_products(
        [*rows, (2 * k.bend[0] * (along - across), directional_parts(unit, change))]
    )


def _pairs(k: "Stiffness", now: "Strains", slope: "Strains", x: list[Vec]) -> Array:
    assert k.rest_cos_sin is not None  # it is a pair
    assert now.angle is not None
    # Torsional stiffness of the pair, and its projection on the current angle.
    edge = (x[2] - x[1]).normalize()
    c = safe_sqrt(k.rest_cos_sin[0] ** 2 + k.rest_cos_sin[1] ** 2) * (1 + _CURVATURE_SMOOTHING**2)
    both = (k.rest_cos_sin[0] * jnp.cos(now.angle) + k.rest_cos_sin[1] * jnp.sin(now.angle)) * (
        1 + _CURVATURE_SMOOTHING**2
    )
    rows, turns, inverses = [], [], []
    # Each vertex: bending stiffness along kb, and rotation of its plane about the edge.
    for kb, change, stiff, rest in zip(now.curvature, slope.curvature, k.bend, k.rest, strict=True):
        unit, inverse, along, across = _rounded_parts(kb, rest)
        turn = directional_parts(edge.cross(unit), change)
        rows.append((2 * stiff * along, directional_parts(unit, change)))
        rows.append((2 * stiff * across + 2 * (c - jnp.abs(both)) * inverse**2, turn))
        turns.append(turn)
        inverses.append(inverse)
    # Coupling of both planes, as a rank-1 term of their relative rotation.
    sign = jnp.sign(both)
    apart = turns[0] * inverses[0][None] - (sign * inverses[1])[None] * turns[1]
    return stiffness_products([*rows, (2 * jnp.abs(both), apart)])


def _dampers(k: "Stiffness", now: "Strains", change: "Strains") -> list[StrainRow]:
    """Return what the dampers resist in a change of the strains, with weights.

    At a straight vertex the direction of the curvature is undefined: it resists all directions.
    """
    # Fraction of the smoothed norm that is unsmoothed.
    rows, share = [], 1 + _CURVATURE_SMOOTHING**2
    for kb, bends, stiff, rest in zip(now.curvature, change.curvature, k.bend, k.rest, strict=True):
        size = kb.norm()
        bent = size > MINVAL
        unit = kb.scale(safe_divide(jnp.ones_like(size), size))
        rows += [(jnp.where(bent, 0, 2 * stiff), a) for a in bends.parts]
        rows.append((jnp.where(bent, 2 * stiff, 0), directional_parts(unit, bends)))
        share = share * safe_divide(kb.dot(kb), kb.dot(kb) + (_CURVATURE_SMOOTHING * rest) ** 2)
    if k.rest_cos_sin is not None:
        assert change.angle is not None  # it is a pair
        rows.append(
            (2 * safe_sqrt(k.rest_cos_sin[0] ** 2 + k.rest_cos_sin[1] ** 2) * share, change.angle)
        )
    return rows


class Stiffness(NamedTuple):
    """Coefficients of a group, `[n, *W]` each.

    Attributes:
      bend: k of each vertex.
      rest: rest curvature of each vertex.
      rest_cos_sin: c times cosine and sine of the rest angle; None: no pairs.
    """

    bend: list[Array]
    rest: list[Array]
    rest_cos_sin: tuple[Array, Array] | None


def _forces(m: Model, group: Bends, state: FlexPointState) -> PointForces:
    k = _stiffness(m, group)
    x, v = element_points(state.xpos, group.vert), element_points(state.velocity, group.vert)

    # Springs: minus the gradient of the energy. Dampers: through the rates of the strains.
    def energy(x: list[Vec]) -> Array:
        return jnp.sum(_energy(k, x))

    spring = [-g for g in jax.grad(energy)(x)]
    damping = gather_static(m.flex_damping, group.flex)
    found, rates, back = _linear(_rod_strains, x, v)
    against = dissipation_slope(partial(_dampers, k, found), rates)
    damper = [-f.scale(damping) for f in back(against)]
    return spring_force(group.vert, spring, damper)


def _stiffness(m: Model, group: Bends) -> Stiffness:
    # Layout of a record: indices 4 to 9.
    number = [gather_static(m.flex_bending, group.adr + i) for i in range(4, 10)]
    if group.vert.shape[1] == 3:
        return Stiffness([number[0]], [number[2]], None)
    return Stiffness(number[:2], number[2:4], (number[4], number[5]))


class Strains(NamedTuple):
    """Strains of a group.

    Attributes:
      curvature: kb of each vertex.
      angle: angle between the planes of a pair, about the edge between them [rad].
    """

    curvature: list[Vec]
    angle: Array | None


def _rod_strains(x: list[Vec]) -> Strains:
    """Compute the strains of three or four vertices, `[n, *W]` each."""
    # Curvature binormals at inner vertices; a pair has a torsion angle too.
    edge = [b - a for a, b in pairwise(x)]
    curvature = [curvature_binormal(u, w) for u, w in pairwise(edge)]
    if len(curvature) == 1:
        return Strains(curvature, None)
    first, second = curvature
    sine = first.cross(second).dot(edge[1].normalize())
    return Strains(curvature, safe_atan2(sine, first.dot(second)))


def curvature_binormal(u: Vec, w: Vec) -> Vec:
    """Compute the curvature binormal kb of two edges."""
    # The denominator vanishes for antiparallel edges, which get kb = 0.
    one = u.norm() * w.norm() + u.dot(w)
    return u.cross(w).scale(2 * safe_divide(jnp.ones_like(one), one))


def _energy(k: Stiffness, x: list[Vec]) -> Array:
    # Bending energy of each vertex, up to a constant.
    curvature = _rod_strains(x).curvature
    sizes = [_smoothed_curvature(kb, rest) for kb, rest in zip(curvature, k.rest, strict=True)]
    energy = jnp.zeros_like(x[0].x)
    for kb, rest, size, stiff in zip(curvature, k.rest, sizes, k.bend, strict=True):
        size0 = rest * np.sqrt(1 + _CURVATURE_SMOOTHING**2)
        energy = energy + stiff * (kb.dot(kb) - 2 * size * size0)
    if k.rest_cos_sin is None:
        return energy
    # Torsion energy between the planes of a pair, up to a constant.
    cosine, sine = k.rest_cos_sin
    first, second = (
        kb.scale(np.sqrt(1 + _CURVATURE_SMOOTHING**2) * safe_divide(jnp.ones_like(size), size))
        for kb, size in zip(curvature, sizes, strict=True)
    )
    edge = (x[2] - x[1]).normalize()
    aligned = cosine * first.dot(second) + sine * first.cross(second).dot(edge)
    c = safe_sqrt(cosine * cosine + sine * sine)
    return energy + c * (first.dot(first) + second.dot(second)) - 2 * aligned


def _smoothed_curvature(kb: Vec, rest: Array) -> Array:
    """Return the smoothed curvature rho."""
    return safe_sqrt(kb.dot(kb) + (_CURVATURE_SMOOTHING * rest) ** 2)


def _linear(function: Callable, x: list[Vec], v: list[Vec]) -> tuple:
    """Return value, rate along v, and transposed derivative of a function."""
    value, back = jax.vjp(function, x)
    rate = jax.jvp(function, (x,), (v,))[1]
    return value, rate, lambda out: back(out)[0]
