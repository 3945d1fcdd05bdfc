"""Compute masses and inertias of bodies from the sizes of their geoms, as the compiler does.

The rules of MJCF's `inertiafromgeom` on traced sizes, masses and densities: moments of uniform
solids and surfaces (`math/solids.py`), the parallel-axis theorem, principal axes.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import GeomType
from jaxsim.functions.principal import principal
from jaxsim.functions.quaternion import quat_to_mat
from jaxsim.math.solids import mass_distribution
from jaxsim.model.model import Model
from jaxsim.model.record.check import brief_value
from jaxsim.model.shaped import Float
from jaxsim.physics.public.arguments import check_model

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
    weight = _geom_masses(rows, content, density) if mass is None else mass[geom]

    # index of each geom's body among the inferred bodies
    ids, slot = np.unique(body, return_inverse=True)
    total, com, second = _second_moments_of_bodies(m, geom, slot, weight, unit)

    # A single geom gives its own frame; for several geoms compute principal axes, largest moment
    # first.
    single = np.bincount(slot) == 1
    first = np.searchsorted(slot, np.arange(len(ids)))
    quat = m.geom_quat[geom[first]]
    ipos = jnp.where(single[:, None], m.geom_pos[geom[first]], com)
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


def _geom_masses(rows: list, content: _Array, density: _Array | None) -> _Array:
    """Return the masses of geoms (n,): as written, otherwise density times volume or area."""
    given = [row[2] for row in rows]
    rho = np.array(given) if density is None else density[np.array([row[0] for row in rows])]
    written = np.array([row[1] is not None for row in rows])
    fixed = jnp.asarray([row[1] or 0.0 for row in rows], content.dtype)
    return jnp.where(written, fixed, jnp.asarray(rho, content.dtype) * content)


def _second_moments_of_bodies(
    m: Model, geom: np.ndarray, slot: np.ndarray, weight: _Array, unit: _Array
) -> tuple[_Array, _Array, _Array]:
    """Return mass, center of mass and central second-moment tensor of bodies, in their frames.

    Args:
      m: the model.
      geom: ids of the geoms, (n,).
      slot: index of each geom's body, (n,), sorted.
      weight: masses of the geoms, (n,).
      unit: principal moments of the geoms per mass, (n, 3).
    """
    count = slot[-1] + 1
    total = jax.ops.segment_sum(weight, slot, count)
    pos = m.geom_pos[geom]
    com = jax.ops.segment_sum(weight[:, None] * pos, slot, count) / total[:, None]
    # Rotate each geom's second moments to the body frame; parallel-axis theorem.
    axes = jax.vmap(quat_to_mat)(m.geom_quat[geom])
    arm = pos - com[slot]
    own = (axes * (weight[:, None] * _second_moments(unit))[:, None, :]) @ axes.swapaxes(1, 2)
    second = own + weight[:, None, None] * arm[:, :, None] * arm[:, None, :]
    return total, com, jax.ops.segment_sum(second, slot, count)


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
    kinds = [(GeomType(m.geom_type[row[0]]), row[3]) for row in rows]
    dtype = m.geom_size.dtype
    content, unit = jnp.zeros(len(rows), dtype), jnp.zeros((len(rows), 3), dtype)
    for kind in sorted(set(kinds)):
        here = np.array([i for i, k in enumerate(kinds) if k == kind])
        if kind[0] in (GeomType.MESH, GeomType.SDF):
            volume = jnp.asarray([rows[i][4] for i in here], dtype)
            axes = jnp.asarray([rows[i][5] for i in here], dtype)
        else:
            size = m.geom_size[np.array([rows[i][0] for i in here])]
            volume, parts = mass_distribution(kind[0], size.T, shell=kind[1])
            axes = jnp.stack(parts, axis=1)
        content, unit = content.at[here].set(volume), unit.at[here].set(axes)
    return content, unit
