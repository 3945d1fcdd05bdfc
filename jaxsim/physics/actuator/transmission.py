"""Transmissions: the length of each actuator, and the moment arms of its force on the dofs.

MuJoCo's documentation, Computation: Transmission; corresponds to `mj_transmission`. Joint and
tendon transmissions scale a length by the gear; site transmissions apply a force and a torque to
one or two bodies; body transmissions attract the body's contacts. The table `TRANSMISSION_RULES`
has one rule per kind; the sparsity pattern of the moments is known at compile time, and each rule
computes its nonzeros.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.kind_dispatch import concatenate_kinds
from jaxsim.arrays.pattern import SparsityPattern
from jaxsim.enums import DisableBit, JointType, TrnType
from jaxsim.math import Quat, Spatial, Vec, safe_divide, safe_sqrt
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.actuator.contact_moment import contact_moment, touched_dofs
from jaxsim.physics.actuator.layout import flatten_vectors, output_actuator
from jaxsim.physics.sleep.incidence import actuator_incidence
from jaxsim.physics.sleep.trees import can_sleep, tree_awake
from jaxsim.physics.tendon.path import tendon_pattern
from jaxsim.physics.topology import ancestors
from jaxsim.physics.unsupported import Refusal, make_refusal


def transmission(m: Model, d: Data) -> Data:
    """Compute actuator lengths and moments.

    actuator_moment[k] = d actuator_length[k] / d q;  for a site without a reference site and for a
    body, whose lengths are zero, the generalized force of a unit output.

    Corresponds to `mj_transmission` in MuJoCo.
    """
    if not m.nout:
        none = d.qpos[:0]
        return d.replace(actuator_length=none, actuator_moment=moment_pattern(m).dense(none))
    # Each rule computes lengths and nonzeros of its outputs.
    plan = _plan(m)
    results = [rule.compute(m, d, ids) for rule, ids in plan.groups]
    # Outputs without a rule: the model can be loaded, but not simulated.
    nothing = [jnp.zeros_like(d.qpos[:1])] if plan.rest else []
    # Reorder from rules to outputs.
    length = gather_static(concatenate_kinds([r[0] for r in results] + nothing), plan.length_order)
    entries = gather_static(concatenate_kinds([r[1] for r in results] + nothing), plan.entry_order)
    if can_sleep(m):  # sleeping actuators keep their length, and have no moment
        awake = gather_static(actuator_incidence(m).awake(tree_awake(d)), output_actuator(m))
        if d.actuator_length is not None:
            length = jnp.where(awake, length, d.actuator_length)
        entries = jnp.where(gather_static(awake, plan.pattern.row), entries, 0)
    return d.replace(actuator_length=length, actuator_moment=plan.pattern.dense(entries))


def actuator_velocity(m: Model, d: Data) -> Data:
    """Compute actuator_moment qvel; zero when actuation is disabled, as in MuJoCo."""
    if not m.nout or m.opt.disableflags & DisableBit.ACTUATION:
        return d.replace(actuator_velocity=jnp.zeros((m.nout, *d.qvel.shape[1:]), d.qvel.dtype))
    pattern = moment_pattern(m)
    return d.replace(actuator_velocity=pattern.apply(pattern.entries(d.actuator_moment), d.qvel))


def unsupported_transmissions(m: Model) -> list[Refusal]:
    """Return the transmissions that are not supported."""
    return [
        make_refusal(
            m, "actuator", i, f"transmission {TrnType(kind).name.lower()} is not supported"
        )
        for i, kind in enumerate(m.actuator_trntype)
        if kind not in SUPPORTED_TRANSMISSIONS
    ]


class TransmissionRule(NamedTuple):
    """Transmission rule of one kind.

    Attributes:
      kinds: the transmissions it serves.
      members: the outputs it serves, `(structure) -> [k]`.
      moment_entries: row and column of their moment nonzeros, `(structure, [k]) -> [e], [e]`.
      compute: `(m, d, [k]) -> (lengths [k, *W], moment nonzeros [e, *W])`.
    """

    kinds: tuple[TrnType, ...]
    members: Callable
    moment_entries: Callable
    compute: Callable


class _Plan(NamedTuple):
    groups: list[tuple[TransmissionRule, np.ndarray]]
    length_order: np.ndarray
    entry_order: np.ndarray
    pattern: SparsityPattern
    rest: bool  # some outputs have no rule


@cache_by_structure
def _plan(s: Structure) -> _Plan:
    # Outputs and nonzeros of each rule, then their sorted order.
    groups = [(rule, ids) for rule in TRANSMISSION_RULES if len(ids := rule.members(s))]
    outputs = np.concatenate([ids for _, ids in groups] or [np.zeros(0, int)])
    moment_entries = [rule.moment_entries(s, ids) for rule, ids in groups]
    row = np.concatenate([r for r, _ in moment_entries] or [np.zeros(0, int)])
    col = np.concatenate([c for _, c in moment_entries] or [np.zeros(0, int)])
    order = np.lexsort((col, row))
    pattern = SparsityPattern(row[order], col[order], (s.nout, s.nv))
    place = np.full(s.nout, len(outputs))
    place[outputs] = np.arange(len(outputs))
    return _Plan(groups, place, order, pattern, len(outputs) < s.nout)


@cache_by_structure
def output_trntype(s: Structure) -> np.ndarray:
    """Return the transmission type of each output, [nout]."""
    return s.actuator_trntype[output_actuator(s)]


@cache_by_structure
def _output_trnid(s: Structure) -> np.ndarray:
    return s.actuator_trnid[output_actuator(s)]


def moment_pattern(m: Model | Structure) -> SparsityPattern:
    """Return the sparsity pattern of `actuator_moment`."""
    return _plan(m).pattern


# Joints.


def _select_joint_outputs(*kinds: JointType) -> Callable:
    """Return a function that selects outputs attached to joints of some types."""

    def members(s: Structure) -> np.ndarray:
        on_joint = np.isin(output_trntype(s), (TrnType.JOINT, TrnType.JOINTINPARENT))
        joint = np.where(on_joint, _output_trnid(s)[:, 0], 0)
        return np.flatnonzero(on_joint & np.isin(s.jnt_type[joint], kinds) if s.njnt else on_joint)

    return members


def _joint_moment_entries(s: Structure, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return nonzeros of all dofs of the joints: the first dofs, the second ones, ..."""
    joint = _output_trnid(s)[ids, 0]
    count = JointType(s.jnt_type[joint[0]]).nv
    dof = s.jnt_dofadr[joint] + np.arange(count)[:, None]
    return np.tile(ids, count), dof.ravel()


def _scalar(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    """Compute length = gear * joint position."""
    gear = gather_static(m.actuator_gear[:, 0], ids)
    return gear * gather_static(d.qpos, m.jnt_qposadr[_output_trnid(m)[ids, 0]]), gear


def _ball(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    """Compute length = gear . rotation vector of the joint, with the moment along `gear`."""
    gear = _gear(m, ids, 0)
    turn = _joint_quat(m, d, ids, 0)
    moment = _joint_axis(m, ids, turn, gear)
    return gear.dot(turn.rotation_vector()), concatenate_kinds(list(moment.parts))


def _free(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    """Compute the moments of a force and torque on a free joint; length 0."""
    moment = _joint_axis(m, ids, _joint_quat(m, d, ids, 3), _gear(m, ids, 3))
    entries = concatenate_kinds([*_gear(m, ids, 0).parts, *moment.parts])
    return jnp.zeros_like(entries[: len(ids)]), entries


def _joint_quat(m: Model, d: Data, ids: np.ndarray, offset: int) -> Quat:
    adr = m.jnt_qposadr[_output_trnid(m)[ids, 0]] + offset
    return Quat(*(gather_static(d.qpos, adr + k) for k in range(4))).normalize()


def _joint_axis(m: Model, ids: np.ndarray, turn: Quat, axis: Vec) -> Vec:
    """Return the axis in the moving body's frame; `jointinparent` specifies it in the parent's."""
    inparent = output_trntype(m)[ids] == TrnType.JOINTINPARENT
    if not inparent.any():
        return axis
    rotated = turn.conj.rotate(axis)
    mask = column(inparent, turn)
    return Vec(*(jnp.where(mask, r, a) for r, a in zip(rotated.parts, axis.parts, strict=True)))


def _gear(m: Model, ids: np.ndarray, first: int) -> Vec:
    return Vec(*(gather_static(m.actuator_gear[:, first + k], ids) for k in range(3)))


# Tendons.


def _select_kind_outputs(*kinds: TrnType) -> Callable:
    return lambda s: np.flatnonzero(np.isin(output_trntype(s), kinds))


def _tendon_moment_entries(s: Structure, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    entry, which = _tendon_entries(s, ids)
    return ids[which], tendon_pattern(s).col[entry]


def _tendon_entries(s: Structure, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the tendon Jacobian's nonzeros that outputs use, and the output of each."""
    tendon = _output_trnid(s)[ids, 0]
    which, entry = np.nonzero(tendon[:, None] == tendon_pattern(s).row)
    return entry, which


def _tendon(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    """Compute length = gear * tendon length."""
    gear = gather_static(m.actuator_gear[:, 0], ids)
    entry, which = _tendon_entries(m.structure, ids)
    J = gather_static(tendon_pattern(m).entries(d.ten_J), entry)
    return gear * gather_static(d.ten_length, _output_trnid(m)[ids, 0]), gather_static(
        gear, which
    ) * J


# Sites.


def _site_members(referred: bool) -> Callable:
    def members(s: Structure) -> np.ndarray:
        return np.flatnonzero(
            (output_trntype(s) == TrnType.SITE) & ((_output_trnid(s)[:, 1] >= 0) == referred)
        )

    return members


def _two_end_entries(s: Structure, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return output and dof of the nonzeros of outputs that act between two sites.

    A dof that moves both sites moves the actuator as a whole, and has no moment.
    """
    # Dofs that move exactly one of the sites.
    moves = ancestors(s).astype(bool)
    body = s.site_bodyid[_output_trnid(s)[ids, :2]]
    which, dof = np.nonzero(moves[body[:, 0]] ^ moves[body[:, 1]])
    return ids[which], dof


def _one_end_entries(s: Structure, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    which, dof = np.nonzero(ancestors(s)[s.site_bodyid[_output_trnid(s)[ids, 0]]])
    return ids[which], dof


def _site(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    """Compute the moments of a force and torque fixed to a site; length 0."""
    # Force and torque in the site frame.
    site = _output_trnid(m)[ids, 0]
    R = gather_static(d.site_xmat, site)
    wrench = _wrench(m, d, site, R @ _gear(m, ids, 0), R @ _gear(m, ids, 3))
    row, dof = _one_end_entries(m.structure, ids)
    entries = gather_static(d.cdof, dof).dot(gather_static(wrench, np.searchsorted(ids, row)))
    return jnp.zeros_like(wrench.parts[0]), entries


def _refsite(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    """Compute length = gear . (position, rotation vector) of the site in the reference frame."""
    site, ref = _output_trnid(m)[ids, 0], _output_trnid(m)[ids, 1]
    # Pose of the site in the reference frame.
    R, along, about = gather_static(d.site_xmat, ref), _gear(m, ids, 0), _gear(m, ids, 3)
    offset = R.T @ (gather_static(d.site_xpos, site) - gather_static(d.site_xpos, ref))
    turn = (_site_quat(m, d, ref).conj * _site_quat(m, d, site)).rotation_vector()
    length = along.dot(offset) + about.dot(turn)
    # Wrenches on both sites.
    force, torque = R @ along, R @ about
    here, there = _wrench(m, d, site, force, torque), _wrench(m, d, ref, force, torque)
    return length, _site_pair_moment(m, d, ids, here, -there)


def _slidercrank(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    """Compute the slider-crank length: gear * position of the slider along its axis.

    The rod of length r from the pin at v (relative to the slider's site) meets the axis a at length
    = v.a - sqrt((v.a)^2 + r^2 - v.v); if it is too short, the root is taken as zero.
    """
    # Position of the pin relative to the slider axis.
    crank, slider = _output_trnid(m)[ids, 0], _output_trnid(m)[ids, 1]
    gear = gather_static(m.actuator_gear[:, 0], ids)
    rod = gather_static(m.actuator_cranklength, output_actuator(m)[ids])
    axis = gather_static(d.site_xmat, slider).cols[2]
    v = gather_static(d.site_xpos, crank) - gather_static(d.site_xpos, slider)
    # Quadratic equation for the slider position.
    along = v.dot(axis)
    square = along * along + rod * rod - v.dot(v)
    root = safe_sqrt(jnp.maximum(square, 0))
    # Derivatives of the length by the pin and by the axis.
    inverse = safe_divide(jnp.ones_like(root), root)
    by_pin = axis - (axis.scale(along) - v).scale(inverse)
    by_axis = v.scale(1 - along * inverse)
    force, torque = by_pin.scale(gear), axis.cross(by_axis).scale(gear)
    at_pin = _wrench(m, d, crank, force, force.map(jnp.zeros_like))
    at_slider = _wrench(m, d, slider, -force, torque)
    return gear * (along - root), _site_pair_moment(m, d, ids, at_pin, at_slider)


def _site_pair_moment(m: Model, d: Data, ids: np.ndarray, first: Spatial, second: Spatial) -> Array:
    """Compute the moment nonzeros of wrenches on the bodies of an output's two sites."""
    # Select the wrench of the site that the dof moves.
    row, dof = _two_end_entries(m.structure, ids)
    which = np.searchsorted(ids, row)
    at_first = ancestors(m)[m.site_bodyid[_output_trnid(m)[row, 0]], dof].astype(bool)
    pushed = gather_static(d.cdof, dof)
    return jnp.where(
        column(at_first, pushed),
        pushed.dot(gather_static(first, which)),
        pushed.dot(gather_static(second, which)),
    )


def _wrench(m: Model, d: Data, site: np.ndarray, force: Vec, torque: Vec) -> Spatial:
    """Return wrenches of forces and torques at sites, about the centers of mass of their trees."""
    origin = gather_static(d.subtree_com, m.body_rootid[m.site_bodyid[site]])
    arm = gather_static(d.site_xpos, site) - origin
    return Spatial.of(torque + arm.cross(force), force)


def _site_quat(m: Model, d: Data, site: np.ndarray) -> Quat:
    return gather_static(d.xquat, m.site_bodyid[site]) * gather_static(m.site_quat, site)


# Orientations: three outputs, the components of a rotation vector.


def _select_orientation_outputs(on_site: bool) -> Callable:
    def members(s: Structure) -> np.ndarray:
        so3 = output_trntype(s) == TrnType.SO3
        return np.flatnonzero(so3 & ((_output_trnid(s)[:, 1] >= 0) == on_site))

    return members


def _component_moment_entries(s: Structure, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return ids, s.jnt_dofadr[_output_trnid(s)[ids, 0]] + np.arange(len(ids)) % 3


def _ball_orientation(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    """Compute lengths = rotation vector of the joint, with moments about the body's axes."""
    # Components of three outputs are consecutive.
    turn = flatten_vectors(_joint_quat(m, d, ids[::3], 0).rotation_vector())
    return turn, jnp.ones_like(turn)


def _site_orientation(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    """Compute lengths = rotation vector of a site in its reference site's frame.

    The moments are about the axes of the site; a rotation vector is the same in both frames.
    """
    site, ref = _output_trnid(m)[ids, 0], _output_trnid(m)[ids, 1]
    turn = (_site_quat(m, d, ref[::3]).conj * _site_quat(m, d, site[::3])).rotation_vector()
    # Axes of the site as torques.
    axes = gather_static(d.site_xmat, site[::3]).cols
    axis = Vec(*(flatten_vectors(Vec(*(a.parts[k] for a in axes))) for k in range(3)))
    torque = Spatial.of(axis, axis.map(jnp.zeros_like))
    return flatten_vectors(turn), _site_pair_moment(m, d, ids, torque, -torque)


# Contacts of bodies.


def _body_moment_entries(s: Structure, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    which, dof = np.nonzero(touched_dofs(s)[_output_trnid(s)[ids, 0]])
    return ids[which], dof


def _body(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    """Compute the moments of an attraction shared by the contacts of a body; length 0."""
    # Select the entries of the pattern.
    moment = contact_moment(m, d, _output_trnid(m)[ids, 0])
    row, dof = _body_moment_entries(m.structure, ids)
    entries = gather_static(
        moment.reshape(-1, *moment.shape[2:]), np.searchsorted(ids, row) * m.nv + dof
    )
    return jnp.zeros((len(ids), *moment.shape[2:]), moment.dtype), entries


_JOINT = (TrnType.JOINT, TrnType.JOINTINPARENT)
TRANSMISSION_RULES = (
    TransmissionRule(
        _JOINT,
        _select_joint_outputs(JointType.SLIDE, JointType.HINGE),
        _joint_moment_entries,
        _scalar,
    ),
    TransmissionRule(_JOINT, _select_joint_outputs(JointType.BALL), _joint_moment_entries, _ball),
    TransmissionRule(_JOINT, _select_joint_outputs(JointType.FREE), _joint_moment_entries, _free),
    TransmissionRule(
        (TrnType.TENDON,), _select_kind_outputs(TrnType.TENDON), _tendon_moment_entries, _tendon
    ),
    TransmissionRule((TrnType.SITE,), _site_members(False), _one_end_entries, _site),
    TransmissionRule((TrnType.SITE,), _site_members(True), _two_end_entries, _refsite),
    TransmissionRule(
        (TrnType.SLIDERCRANK,),
        _select_kind_outputs(TrnType.SLIDERCRANK),
        _two_end_entries,
        _slidercrank,
    ),
    TransmissionRule(
        (TrnType.SO3,),
        _select_orientation_outputs(False),
        _component_moment_entries,
        _ball_orientation,
    ),
    TransmissionRule(
        (TrnType.SO3,), _select_orientation_outputs(True), _two_end_entries, _site_orientation
    ),
    TransmissionRule(
        (TrnType.BODY,), _select_kind_outputs(TrnType.BODY), _body_moment_entries, _body
    ),
)
SUPPORTED_TRANSMISSIONS = frozenset(kind for rule in TRANSMISSION_RULES for kind in rule.kinds)
