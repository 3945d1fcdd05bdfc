"""Recomputation of constants that follow from a model's other fields: `mj_setConst` in JAX.

The compiler computes the same fields in numpy; a test compares the two. Fields that determine the
shape of the program are unchanged: which bodies are simple (MuJoCo rejects a change of the inertial
frame of one), which joints an actuator reflects to, which geoms interact with the fluid.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static, max_by_row
from jaxsim.enums import DisableBit, EqType, ObjType
from jaxsim.math import Vec
from jaxsim.model.data import Data
from jaxsim.model.derived import AUTOMATIC_LENGTH, STATISTICS
from jaxsim.model.initial import mocap_bodies
from jaxsim.model.model import Model
from jaxsim.model.option import Statistic
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.actuator.transmission import (
    SUPPORTED_TRANSMISSIONS,
    output_trntype,
    transmission,
)
from jaxsim.physics.body.inertia import com_pos, crb
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.body.tree_sums import subtree_sums
from jaxsim.physics.constants.added_mass import recompute_geom_fluid
from jaxsim.physics.constants.flex_edges import edge_length
from jaxsim.physics.constants.geom_bounds import geom_bounds
from jaxsim.physics.constants.inverse_weight import actuator_mobility, inverse_weights
from jaxsim.physics.constants.statistics import body_length, dof_length, model_statistics
from jaxsim.physics.tendon.tendon import tendon
from jaxsim.physics.topology import group_by_owner
from jaxsim.transforms.layout import batched, pack_values


def set_const(m: Model) -> Model:
    """Return the model with its derived constants recomputed from its other fields.

    To be called after changes of masses, inertias, positions, sizes, gears or armatures. Pure: it
    works under jit, vmap and grad. Recomputed are

      * `body_subtreemass`, `body_margin`; `geom_size` of height fields, `geom_aabb`, `geom_rbound`,
        the virtual masses in `geom_fluid`;
      * at `qpos0`: `tendon_length0`, `actuator_length0`, `dof_length`, `cam_*0`, `light_*0`, the
        pose-dependent entries of `eq_data` of connects and welds of bodies; `dof_M0`, the inverse
        weights `*_invweight0` and `actuator_acc0`; `flexedge_length0`, `flexedge_invweight0`;
      * `tendon_lengthspring` where it is (-1, -1), as the length in `qpos_spring`;
      * `stat`, except entries given by `<statistic>`; in a model made from MuJoCo's, except those
        that differed from the computed ones.

    Corresponds to `mj_setConst` in MuJoCo.

    Args:
      m: the model.

    Returns:
      The model with these fields replaced.
    """
    # Compute in the internal layout, return the packed fields.
    found, stat = _constants(m)
    return m.replace(stat=m.stat.replace(**stat), **found)


def derived_constants(m: Model) -> tuple[dict, dict]:
    """Compute the derived fields of an unpacked model and of its statistics, as public arrays."""
    # First the fields independent of the configuration, because the stages use them.
    found = configuration_independent(m)
    m = m.replace(**found)
    # Then the stages at qpos0, and what follows from them.
    d = _pose(m, m.qpos0)
    if m.nflex:
        found["flexedge_length0"] = edge_length(m, d)
        m = m.replace(flexedge_length0=found["flexedge_length0"])
    length = body_length(m, d)
    found |= set_reference_constants(m, d) | {"dof_length": dof_length(m, length)}
    found |= inverse_weights(m, d)
    # Rest lengths need their own pose, qpos_spring.
    if m.ntendon:
        found["tendon_lengthspring"] = _spring_length(m)
    stat = {n: v for n, v in model_statistics(m, d, length).items() if not _is_given(m, n)}
    return pack_values(Model, found), pack_values(Statistic, stat)


_constants = batched(derived_constants)


def reference_mobility(m: Model) -> jax.Array:
    """Return the acceleration of each force output from a unit force at `qpos0`, (nout,).

    The diagonal of J M^-1 J', from the fields of the model that are not derived. Pure: it works
    under jit, vmap and grad. The compiler converts damping ratios with it.
    """
    return _mobility(m)


def _mobility_of_outputs(m: Model) -> Array:
    """Compute the mobility of the outputs of an unpacked model."""
    m = m.replace(body_subtreemass=subtree_sums(m, m.body_mass))
    return actuator_mobility(_pose(m, m.qpos0))


_mobility = batched(_mobility_of_outputs)


def configuration_independent(m: Model) -> dict:
    """Compute the derived fields that do not depend on the configuration."""
    bounds = geom_bounds(m)
    fluid = (
        {"geom_fluid": recompute_geom_fluid(m.replace(**bounds))} if m.geom_hasfluid.any() else {}
    )
    return {
        "body_subtreemass": subtree_sums(m, m.body_mass),
        "body_margin": _body_margin(m),
        **bounds,
        **fluid,
    }


def set_reference_constants(m: Model, d: Data) -> dict:
    """Compute fields that follow from the pose at `qpos0`: lengths, cameras, lights, equalities."""
    # Outputs of unsupported transmissions keep their values.
    known = np.isin(output_trntype(m), [*SUPPORTED_TRANSMISSIONS])
    length = d.actuator_length
    return {
        "tendon_length0": d.ten_length,
        "actuator_length0": jnp.where(column(known, length), length, m.actuator_length0),
        "eq_data": _eq_data(m, d),
        **_cameras(m, d),
        **_lights(m, d),
    }


_CONFIGURATION_STAGES = (kinematics, com_pos, tendon, crb, transmission)


def _pose(m: Model, qpos: Array, stages: tuple = _CONFIGURATION_STAGES) -> Data:
    """Run some stages at a configuration, with mocap bodies at their model poses."""
    # Width of a batch of models, taken from its arrays.
    leaves = [getattr(m, n) for n, f in Model.fields.items() if not f.static and f.nested is None]
    shapes = [a.shape[-1] for a in leaves if a is not None and qpos.ndim > 1]
    many = (max(shapes),) if shapes else ()
    mocap = mocap_bodies(m)
    d = Data(
        qpos=jnp.broadcast_to(qpos, (m.nq, *many)),
        mocap_pos=gather_static(m.body_pos, mocap),
        mocap_quat=gather_static(m.body_quat, mocap),
    )
    # No contacts: as in MuJoCo adhesion actuators have no moment here.
    opt = m.opt.replace(disableflags=int(m.opt.disableflags) | int(DisableBit.CONTACT))
    m = m.replace(opt=opt)
    # Evaluate the stages in order.
    for stage in stages:
        d = stage(m, d)
    return d


def _body_margin(m: Model) -> Array:
    """Return the largest margin plus gap of the geoms of each body; 0 without geoms."""
    # Pad with zero for bodies without geoms.
    reach = m.geom_margin + m.geom_gap
    none = jnp.zeros((1, *reach.shape[1:]), reach.dtype)
    return max_by_row(jnp.concatenate([reach, none]), _geoms_of_bodies(m))


@cache_by_structure
def _geoms_of_bodies(s: Structure) -> np.ndarray:
    return group_by_owner(s.geom_bodyid, s.nbody)


def _cameras(m: Model, d: Data) -> dict:
    """Compute camera poses as fixed to their bodies, whatever their mode."""
    pos0, poscom0 = _views(d, m.cam_bodyid, m.cam_targetbodyid, m.cam_pos)
    # Orientation as if the camera were rigidly attached.
    quat = gather_static(d.xquat, m.cam_bodyid) * m.cam_quat
    return {"cam_pos0": pos0, "cam_poscom0": poscom0, "cam_mat0": quat.matrix()}


def _lights(m: Model, d: Data) -> dict:
    """Compute light poses as fixed to their bodies, whatever their mode."""
    pos0, poscom0 = _views(d, m.light_bodyid, m.light_targetbodyid, m.light_pos)
    aim = gather_static(d.xquat, m.light_bodyid).rotate(m.light_dir)
    return {"light_pos0": pos0, "light_poscom0": poscom0, "light_dir0": aim}


def _views(d: Data, body: np.ndarray, target: np.ndarray, pos: Vec) -> tuple[Vec, Vec]:
    """Return positions relative to the body, and to its or its target's center of mass."""
    offset = gather_static(d.xquat, body).rotate(pos)
    center = gather_static(d.subtree_com, np.where(target >= 0, target, body))
    return offset, gather_static(d.xpos, body) + offset - center


def _eq_data(m: Model, d: Data) -> Array:
    """Compute `eq_data` of connects and welds of bodies from the pose, `[neq, 12, *W]`.

    A connect has the anchor in body 1 given and that in body 2 measured; a weld vice versa, with
    the orientation of body 2 in body 1, where a mark in the data shows that none was given.
    """
    # Connects between bodies: anchor in the second body.
    data = jnp.broadcast_to(m.eq_data, (m.neq, 12, *d.qpos.shape[1:]))
    bodies = m.eq_objtype == ObjType.BODY
    connect = np.flatnonzero(bodies & (m.eq_type == EqType.CONNECT))
    data = data.at[connect, 3:6].set(
        _anchors_in_other_body(m, d, connect, m.eq_obj1id, m.eq_obj2id)
    )
    # Welds between bodies: anchor in the first body and relative orientation, where marked.
    weld = np.flatnonzero(bodies & (m.eq_type == EqType.WELD))
    turn = gather_static(d.xquat, m.eq_obj1id[weld]).conj * gather_static(
        d.xquat, m.eq_obj2id[weld]
    )
    pose = [_anchors_in_other_body(m, d, weld, m.eq_obj2id, m.eq_obj1id), turn.to_array()]
    marked = gather_static(data, weld)[:, 11:] != 0
    measured = jnp.where(marked, jnp.concatenate(pose, axis=1), gather_static(data, weld)[:, 3:10])
    return data.at[weld, 3:10].set(measured)


def _anchors_in_other_body(
    m: Model, d: Data, ids: np.ndarray, known: np.ndarray, other: np.ndarray
) -> Array:
    """Transform the anchors of equalities from one body to the other, `[k, 3, *W]`."""
    here, there = known[ids], other[ids]
    anchor = Vec(*(gather_static(m.eq_data[:, k], ids) for k in range(3)))
    # Anchor in the world, then in the other body's frame.
    point = gather_static(d.xpos, here) + gather_static(d.xquat, here).rotate(anchor)
    return (
        gather_static(d.xquat, there).conj.rotate(point - gather_static(d.xpos, there)).to_array()
    )


def _spring_length(m: Model) -> Array:
    """Return rest lengths, (-1, -1) replaced by the length in `qpos_spring`, `[ntendon, 2, *W]`."""
    length = _pose(m, m.qpos_spring, (kinematics, com_pos, tendon)).ten_length[:, None]
    automatic = (m.tendon_lengthspring == AUTOMATIC_LENGTH).all(axis=1, keepdims=True)
    return jnp.where(automatic, length, m.tendon_lengthspring)


def _is_given(m: Model, name: str) -> bool:
    """Return True if a statistic was given by the user and is not computed."""
    return bool(m.stat_given[STATISTICS.index(name)])
