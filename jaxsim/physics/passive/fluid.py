"""Fluid forces on moving bodies: MuJoCo's documentation, Computation: Fluid forces.

A body that has geoms with fluid shape `ellipsoid` uses the ellipsoid model of these geoms; any
other body is represented by its equivalent inertia box.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static, weighted_sum
from jaxsim.enums import MINVAL, GeomType
from jaxsim.math import Rot, Vec, safe_divide, safe_sqrt, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.body.applied_force import wrench_force
from jaxsim.physics.constants.added_mass import equivalent_semiaxes

_PI = float(np.pi)


def fluid_force(m: Model, d: Data) -> Array:
    """Compute the generalized fluid force `[nv, *W]`; zero in a model compiled without a fluid."""
    if not m.flg_fluid:
        return jnp.zeros_like(d.qvel)
    return wrench_force(m, d, *fluid_wrench(m, d), d.xipos)


def fluid_wrench(m: Model, d: Data, drag_only: bool = False) -> tuple[Vec, Vec]:
    """Compute the fluid force and torque on each body at its center of mass, in the world.

    `drag_only` omits lift and added mass, whose derivatives are not dissipative.
    """
    force, torque = _box_forces(m, d)
    # Add the forces of geoms with the ellipsoid model.
    geom, body = fluid_geoms(m)
    if len(geom):
        push, turn = _ellipsoid_forces(m, d, geom, drag_only)
        # Transport each geom's force from its center to the body's center of mass.
        arm = gather_static(d.geom_xpos, geom) - gather_static(d.xipos, m.geom_bodyid[geom])
        force = force + weighted_sum(body, push)
        torque = torque + weighted_sum(body, turn + arm.cross(push))
    return force, torque


@cache_by_structure
def fluid_geoms(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return geoms that may use the ellipsoid model, and `[nbody, k]`: 1 for a body's own geoms.

    Which of them do is a number: their interaction coefficient, `geom_fluid[:, 0]`.
    """
    moves = (s.geom_bodyid > 0) & ~np.isin(s.geom_type, (GeomType.PLANE, GeomType.HFIELD))
    geom = np.flatnonzero(s.geom_hasfluid & moves)
    return geom, 1.0 * (np.arange(s.nbody)[:, None] == s.geom_bodyid[geom])


def _uses_box(m: Model) -> Array:
    """Return the bodies that use the inertia box model, bool `[nbody, *W]`."""
    heavy = m.body_mass > MINVAL
    geom, member = fluid_geoms(m)
    # A body with an active ellipsoid geom does not use its inertia box.
    if not len(geom):
        return heavy
    interaction = gather_static(m.geom_fluid, geom)[:, 0]
    interacts = (interaction > 0).astype(interaction.dtype)
    return heavy & (weighted_sum(member, interacts) == 0)


def _velocity(m: Model, d: Data, body: np.ndarray, point: Vec, R: Rot) -> tuple[Vec, Vec]:
    """Return angular velocity, and velocity of a point relative to the fluid, in a local frame."""
    v = gather_static(d.cvel, body)
    at = v.at(point - gather_static(d.subtree_com, m.body_rootid[body]))
    # Velocity relative to the wind.
    against = Vec(*(a - w for a, w in zip(at.parts, m.opt.wind.parts, strict=True)))
    return R.T @ v.rot, R.T @ against


def _box_forces(m: Model, d: Data) -> tuple[Vec, Vec]:
    """Compute force and torque on each body at its center of mass, in the world (inertia model).

    With half sizes r of the equivalent inertia box, and r_eq their mean:

        f_i = -2 rho r_j r_k |v_i| v_i                         - 6 beta pi r_eq v_i
        g_i = -rho / 2 r_i (r_j^4 + r_k^4) |omega_i| omega_i  - 8 beta pi r_eq^3 omega_i
    """
    rho, beta = m.opt.density, m.opt.viscosity
    omega, v = _velocity(m, d, np.arange(m.nbody), d.xipos, d.ximat)
    ix, iy, iz = m.body_inertia.parts
    # Half sizes of the box with the same mass and inertia: x^2 = 3 (Iyy + Izz - Ixx) / (2 m).
    mass = jnp.maximum(m.body_mass, MINVAL)
    x, y, z = (
        safe_sqrt(1.5 * jnp.maximum(MINVAL, a) / mass)
        for a in (iy + iz - ix, iz + ix - iy, ix + iy - iz)
    )
    mean = (x + y + z) / 3
    # Faces normal to each axis (quadratic drag) and swept areas about each axis.
    area = Vec(y * z, z * x, x * y)
    swept = Vec(x * (y**4 + z**4), y * (z**4 + x**4), z * (x**4 + y**4))
    # Quadratic drag plus Stokes drag of a sphere with the mean radius.
    push = _drag_force(v, area.scale(2 * rho), 6 * _PI * beta * mean)
    turn = _drag_force(omega, swept.scale(0.5 * rho), 8 * _PI * beta * mean**3)
    zero = push.map(jnp.zeros_like)
    # Only bodies without an active ellipsoid geom.
    box = _uses_box(m)
    return select_where(box, d.ximat @ push, zero), select_where(box, d.ximat @ turn, zero)


def _drag_force(v: Vec, quadratic: Vec, linear: Array) -> Vec:
    """Compute -(quadratic_i |v_i| + linear) v_i."""
    pairs = zip(v.parts, quadratic.parts, strict=True)
    return Vec(*(-(q * jnp.abs(a) + linear) * a for a, q in pairs))


def _ellipsoid_forces(m: Model, d: Data, geom: np.ndarray, drag_only: bool) -> tuple[Vec, Vec]:
    """Compute force and torque on each geom at its center, in the world (ellipsoid model).

    Added mass is that of steady motion: the acceleration terms are omitted, as in MuJoCo.
    """
    R = gather_static(d.geom_xmat, geom)
    omega, v = _velocity(m, d, m.geom_bodyid[geom], gather_static(d.geom_xpos, geom), R)
    rho, beta = m.opt.density, m.opt.viscosity
    # `geom_fluid`: interaction, 3 drag and 2 lift coefficients, 3 virtual masses, 3 inertias.
    fluid = gather_static(m.geom_fluid, geom)
    interaction, blunt, slender, angular, kutta, magnus = (fluid[:, k] for k in range(6))
    mass = Vec(*(rho * fluid[:, 6 + k] for k in range(3)))
    inertia = Vec(*(rho * fluid[:, 9 + k] for k in range(3)))
    r = Vec(*equivalent_semiaxes(m, geom))
    x, y, z = r.parts

    # Added mass.
    p, h = _componentwise_product(mass, v), _componentwise_product(inertia, omega)
    push = p.cross(omega)
    turn = p.cross(v) + h.cross(omega)

    # Lift: Magnus force of a spinning body, and Kutta lift.
    push = push + omega.cross(v).scale(magnus * rho * (4 / 3) * _PI * x * y * z)
    speed = v.norm()
    normal = Vec(y * z / x * v.x, z * x / y * v.y, x * y / z * v.z)
    # Projected area pi |(y z)^2 v_x, ..| / |y z v_x, ..|, and its normal's component along v.
    sides = Vec(y * z, z * x, x * y)
    near = _componentwise_product(sides, v)
    area = _PI * safe_divide(_componentwise_product(sides, near).norm(), near.norm())
    unit = normal.scale(safe_divide(jnp.ones_like(speed), normal.norm()))
    along = safe_divide(v.dot(unit), speed)
    push = push + unit.cross(v).cross(v).scale(kutta * rho * area * along)

    if drag_only:
        push, turn = (v.map(jnp.zeros_like) for v in (push, turn))

    # Drag: quadratic in the velocity, and Stokes drag of a sphere of equal size.
    largest = jnp.maximum(jnp.maximum(x, y), z)
    smallest = jnp.minimum(jnp.minimum(x, y), z)
    middle = x + y + z - largest - smallest
    # Drag coefficients interpolate between the blunt and the slender cross section.
    most = _PI * largest * middle
    mean = (x + y + z) / 3
    blunted = blunt * area + slender * (most - area)
    push = push - v.scale(rho * blunted * speed + 6 * _PI * beta * mean)
    # Resistance of each axis to rotation, with the largest as reference for the slender part.
    turned = Vec(
        x * jnp.maximum(y, z) ** 4, y * jnp.maximum(z, x) ** 4, z * jnp.maximum(x, y) ** 4
    ).scale(8 / 15 * _PI)
    limit = jnp.maximum(jnp.maximum(turned.x, turned.y), turned.z)
    resisted = turned.map(lambda a: angular * a + slender * (limit - a))
    drag = _componentwise_product(resisted, omega).norm()
    turn = turn - omega.scale(rho * drag + 8 * _PI * beta * mean**3)
    return (R @ push).scale(interaction), (R @ turn).scale(interaction)


def _componentwise_product(a: Vec, b: Vec) -> Vec:
    """Return the componentwise product."""
    return Vec(*(p * q for p, q in zip(a.parts, b.parts, strict=True)))
