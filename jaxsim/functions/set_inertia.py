"""Compute masses and inertias of bodies from the sizes of their geoms, as the compiler does.

The rules of MJCF's `inertiafromgeom` on traced sizes, masses and densities: moments of uniform
solids and surfaces (any mechanics handbook; `compile/geometry/primitive.py` has them in numpy), the
parallel-axis theorem, principal axes.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import GeomType
from jaxsim.functions.principal import principal
from jaxsim.functions.quaternion import quat_to_mat
from jaxsim.model.fields import brief_value
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float
from jaxsim.physics.public.arguments import check_model

_THOMSEN_POWER = 1.6075  # exponent of Thomsen's formula for the area of an ellipsoid
_SHELL_THICKNESS = 1e-6  # thickness of the layer used for the moments of an ellipsoidal shell [m]

_Array = jax.Array


def set_inertia(
    m: Model,
    *,
    mass: Float[Any, "ngeom"] = None,
    density: Float[Any, "ngeom"] | Float[Any, ""] = None,
) -> Model:
    """Return the model with body inertias recomputed from its geoms' sizes, masses and densities.

    Recomputed are `body_mass`, `body_ipos`, `body_iquat` and `body_inertia` of bodies whose inertia
    the compiler inferred from geoms (`inertiafromgeom`); other bodies are unchanged. The mass of a
    geom is the one written in the model, otherwise its density times its volume, or area for a
    shell. Call `set_const` afterwards for quantities that depend on masses. Pure: it works under
    jit, vmap and grad. Not reconsidered is which geoms have mass, and which bodies count as simple
    (`body_simple`), which only the discrete integrator uses.

    Equal moments of bodies of several geoms are separated by the square root of the precision, so
    that derivatives are correct. Meshes keep their volume and shape.

    Args:
      m: the model; `geom_size`, `geom_pos` and `geom_quat` are used.
      mass: mass of each geom, (ngeom,) [kg]; None: as written in the model.
      density: density of geoms without a written mass, () or (ngeom,) [kg/m^3, kg/m^2 for shells];
        None: as written in the model.

    Raises:
      ValueError: both are given, shapes are wrong, or the model does not record how its inertias
        were inferred: it was converted from MuJoCo's, or `<compiler>` has settotalmass or
        balanceinertia.

    Example:
      >>> ball = "<body><freejoint/><geom size='0.1'/></body>"
      >>> m = jaxsim.load_model(f"<mujoco><worldbody>{ball}</worldbody></mujoco>")
      >>> heavy = jaxsim.set_const(set_inertia(m.replace(geom_size=2 * m.geom_size)))
      >>> round(float(heavy.body_mass[1] / m.body_mass[1]), 3)
      8.0
    """
    check_model("set_inertia", m)
    rows, body, bounds = _inferred_geoms(m)
    mass, density = _arguments(m, mass, density)
    geom = np.array([row[0] for row in rows])
    content, unit = _solids(m, rows)
    rho = np.array([row[2] for row in rows]) if density is None else density[geom]
    written = np.array([row[1] is not None for row in rows])
    fixed = jnp.asarray([row[1] or 0.0 for row in rows], content.dtype)
    weight = jnp.where(written, fixed, jnp.asarray(rho, content.dtype) * content)
    weight = weight if mass is None else mass[geom]

    # Center of mass, and the inertia tensor about it in the body frame.
    # index of each geom's body among the inferred bodies
    slot = np.searchsorted(np.unique(body), body)
    count, ids = slot[-1] + 1, np.unique(body)
    total = jax.ops.segment_sum(weight, slot, count)
    pos = m.geom_pos[geom]
    com = jax.ops.segment_sum(weight[:, None] * pos, slot, count) / total[:, None]
    axes = jax.vmap(quat_to_mat)(m.geom_quat[geom])
    arm = pos - com[slot]
    own = (axes * (weight[:, None] * _second_moments(unit))[:, None, :]) @ axes.swapaxes(1, 2)
    second = own + weight[:, None, None] * arm[:, :, None] * arm[:, None, :]
    second = jax.ops.segment_sum(second, slot, count)

    # A single geom gives its own frame; for several geoms compute principal axes, largest moment
    # first.
    single = np.bincount(slot) == 1
    first = np.searchsorted(slot, np.arange(count))
    quat, ipos = m.geom_quat[geom[first]], jnp.where(single[:, None], pos[first], com)
    moments = weight[first][:, None] * unit[first]
    if not single.all():
        principal_frame, central = jax.vmap(principal)(second[~single])
        quat = quat.at[~single].set(principal_frame)
        moments = moments.at[~single].set(jnp.sum(central, axis=1, keepdims=True) - central)
    least = jnp.asarray(bounds, total.dtype)
    return m.replace(
        body_mass=m.body_mass.at[ids].set(jnp.maximum(total, least[:, 0])),
        body_inertia=m.body_inertia.at[ids].set(jnp.maximum(moments, least[:, 1:])),
        body_ipos=m.body_ipos.at[ids].set(ipos),
        body_iquat=m.body_iquat.at[ids].set(quat),
    )


def _second_moments(moments: _Array) -> _Array:
    """Return second moments along the axes from the moments of inertia about them, (n, 3)."""
    return jnp.sum(moments, axis=1, keepdims=True) / 2 - moments


def _inferred_geoms(m: Model) -> tuple[list, np.ndarray, np.ndarray]:
    """Return the geoms of inferred bodies, the body of each, and the lower bounds of mass and
    moments."""
    table = m.body_matter if "body_matter" in m.structure else ()
    rows = [row for of in table if of for row in of[2]]
    if not rows:
        raise ValueError(
            "set_inertia: the model does not record the geoms from which body inertias were "
            "inferred; load it from MJCF whose bodies have no <inertial>, without settotalmass and "
            "balanceinertia"
        )
    body = np.concatenate([np.full(len(of[2]), b) for b, of in enumerate(table) if of])
    return rows, body, np.array([of[:2] for of in table if of])


def _arguments(m: Model, mass: Any, density: Any) -> tuple[Any, Any]:
    """Return the arguments as arrays (ngeom,), or None."""
    if mass is not None and density is not None:
        raise ValueError("set_inertia: give mass or density, not both")
    out = []
    for name, value in (("mass", mass), ("density", density)):
        shapes = [(m.ngeom,)] if name == "mass" else [(), (m.ngeom,)]
        if value is not None and jnp.shape(value) not in shapes:
            raise ValueError(f"{name}: expected shape {shapes[-1]}, got {brief_value(value)}")
        given = None if value is None else jnp.asarray(value).astype(m.body_mass.dtype)
        out.append(None if given is None else jnp.broadcast_to(given, (m.ngeom,)))
    return out[0], out[1]


def _solids(m: Model, rows: list) -> tuple[_Array, _Array]:
    """Return the volume or area of geoms (n,), and their moments per mass (n, 3)."""
    kinds = [(int(m.geom_type[row[0]]), row[3]) for row in rows]
    dtype = m.geom_size.dtype
    content, unit = jnp.zeros(len(rows), dtype), jnp.zeros((len(rows), 3), dtype)
    for kind in sorted(set(kinds)):
        here = np.array([i for i, k in enumerate(kinds) if k == kind])
        if GeomType(kind[0]) in (GeomType.MESH, GeomType.SDF):
            volume = jnp.asarray([rows[i][4] for i in here], dtype)
            moments = jnp.asarray([rows[i][5] for i in here], dtype)
        else:
            size = m.geom_size[np.array([rows[i][0] for i in here])]
            volume, axes = (SHELLS if kind[1] else SOLIDS)[kind[0]](*size.T)
            moments = jnp.stack(axes, axis=1)
        content, unit = content.at[here].set(volume), unit.at[here].set(moments)
    return content, unit


# Volume or area, and three moments per mass, of sizes (n,).


def _ball(r: _Array, *_: _Array) -> tuple:
    return 4 / 3 * np.pi * r**3, (0.4 * r**2,) * 3


def _sphere_shell(r: _Array, *_: _Array) -> tuple:
    return 4 * np.pi * r**2, (2 / 3 * r**2,) * 3


def _capsule(r: _Array, half: _Array, _: _Array) -> tuple:
    barrel, caps = 2 * np.pi * r**2 * half, 4 / 3 * np.pi * r**3
    axial = barrel * r**2 / 2 + caps * 0.4 * r**2
    across = barrel * (r**2 / 4 + half**2 / 3) + caps * (0.4 * r**2 + half**2 + 0.75 * half * r)
    return _per_mass(barrel + caps, across, across, axial)


def _capsule_shell(r: _Array, half: _Array, _: _Array) -> tuple:
    tube, caps = 4 * np.pi * r * half, 4 * np.pi * r**2
    axial = tube * r**2 + caps * 2 / 3 * r**2
    across = tube * (r**2 / 2 + half**2 / 3) + caps * (2 / 3 * r**2 + half**2 + half * r)
    return _per_mass(tube + caps, across, across, axial)


def _cylinder(r: _Array, half: _Array, _: _Array) -> tuple:
    across = r**2 / 4 + half**2 / 3
    return 2 * np.pi * r**2 * half, (across, across, r**2 / 2)


def _cylinder_shell(r: _Array, half: _Array, _: _Array) -> tuple:
    tube, disks = 4 * np.pi * r * half, 2 * np.pi * r**2
    axial = tube * r**2 + disks * r**2 / 2
    across = tube * (r**2 / 2 + half**2 / 3) + disks * (r**2 / 4 + half**2)
    return _per_mass(tube + disks, across, across, axial)


def _ellipsoid(x: _Array, y: _Array, z: _Array) -> tuple:
    return 4 / 3 * np.pi * x * y * z, ((y**2 + z**2) / 5, (x**2 + z**2) / 5, (x**2 + y**2) / 5)


def _ellipsoid_shell(x: _Array, y: _Array, z: _Array) -> tuple:
    """Return the area by Thomsen's formula and the moments of a thin layer.

    The moments are the change of the volume moments with the axes, evaluated at the middle of the
    layer, which avoids the cancellation of a small difference of large numbers.
    """
    mean = ((x * y) ** _THOMSEN_POWER + (x * z) ** _THOMSEN_POWER + (y * z) ** _THOMSEN_POWER) / 3

    def grown_ellipsoid(h: _Array) -> _Array:
        volume, moments = _ellipsoid(x + h, y + h, z + h)
        return jnp.stack([volume, *(volume * a for a in moments)])

    layer = jax.jvp(
        grown_ellipsoid, (jnp.full_like(x, _SHELL_THICKNESS / 2),), (jnp.ones_like(x),)
    )[1]
    return 4 * np.pi * mean ** (1 / _THOMSEN_POWER), tuple(part / layer[0] for part in layer[1:])


def _box(x: _Array, y: _Array, z: _Array) -> tuple:
    return 8 * x * y * z, ((y**2 + z**2) / 3, (x**2 + z**2) / 3, (x**2 + y**2) / 3)


def _box_shell(x: _Array, y: _Array, z: _Array) -> tuple:
    """Return area and moments of six rectangles, a pair across each axis.

    A wall has the full squared distance along its axis, the others a third of it.
    """
    sides, squares = (8 * y * z, 8 * x * z, 8 * x * y), (x**2, y**2, z**2)
    total = sides[0] + sides[1] + sides[2]
    xx, yy, zz = ((total + 2 * sides[i]) * squares[i] / 3 for i in range(3))
    return _per_mass(total, yy + zz, xx + zz, xx + yy)


def _per_mass(content: _Array, *moments: _Array) -> tuple:
    return content, tuple(moment / content for moment in moments)


SOLIDS: dict[int, Callable[..., tuple]] = {
    GeomType.SPHERE: _ball,
    GeomType.CAPSULE: _capsule,
    GeomType.ELLIPSOID: _ellipsoid,
    GeomType.CYLINDER: _cylinder,
    GeomType.BOX: _box,
}
SHELLS: dict[int, Callable[..., tuple]] = {
    GeomType.SPHERE: _sphere_shell,
    GeomType.CAPSULE: _capsule_shell,
    GeomType.ELLIPSOID: _ellipsoid_shell,
    GeomType.CYLINDER: _cylinder_shell,
    GeomType.BOX: _box_shell,
}
