"""Data: the state of a world and the quantities computed from it, under MuJoCo's names.

`make_data` allocates the state and the most used results. A field that is None is not carried from
step to step and costs nothing; `make_data(m, keep="all")` carries every field.
"""

from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import MINAWAKE
from jaxsim.model.bind import Bound
from jaxsim.model.contact import Contact
from jaxsim.model.record.fields import array, nested, work
from jaxsim.model.record.record import Record
from jaxsim.spelling import remedy

JUST_AWAKE = -(1 + MINAWAKE)  # `tree_asleep` of a tree that has just been disturbed
# fields of the compensated clock, in single precision only
_SINGLE_FLAGS = ("is_single_precision",)
NISLAND = 20  # islands with solver statistics (mjNISLAND)
NSOLVER = 200  # solver iterations with statistics (mjNSOLVER)


class SolverStat(Record):
    """Statistics of each solver iteration, by island and iteration; zero for unused entries.

    Improvements and gradients are scaled by 1 / trace of the inertia of the island. Newton's method
    solves a world as one island; its line search differs from MuJoCo's, and its evaluations are not
    counted.
    """

    improvement = array(NISLAND, NSOLVER, doc="decrease of the cost")
    gradient = array(NISLAND, NSOLVER, doc="norm of the gradient after the iteration; not for PGS")
    lineslope = array(NISLAND, NSOLVER, doc="slope at the end of the line search; not for PGS")
    nactive = array(NISLAND, NSOLVER, dtype="int", doc="rows that push")
    nchange = array(NISLAND, NSOLVER, dtype="int", doc="rows that changed their state")
    neval = array(NISLAND, NSOLVER, dtype="int", doc="evaluations in the line search of CG")
    nupdate = array(NISLAND, NSOLVER, dtype="int", doc="0: no factorization is updated")


class Data(Record):
    """State, inputs and results of one world."""

    # state
    time = array(unit="s", doc="simulation time")
    time_low = array(
        unit="s", doc="low-order part of `time`, in single precision", only=_SINGLE_FLAGS
    )
    qpos = array("nq", unit="m or rad", doc="configuration")
    qvel = array("nv", unit="m/s or rad/s", doc="generalized velocity")
    act = array("na", doc="actuator activation")
    history = array("nhistory", doc="past controls and sensor readings (docs/physics/delays.md)")
    history_low = array(
        "nhistorytime",
        unit="s",
        doc="low-order part of the times in `history`, in single precision",
        only=("times_history_in_single_precision",),
    )
    plastic = array(
        "nplastic", doc="rest positions of yielding springs, and material frames of twisting rods"
    )
    plugin_state = array("npluginstate", doc="states of plugins")
    qacc_warmstart = array("nv", unit="m/s^2 or rad/s^2", doc="start of the solver")
    tree_asleep: Any = array(
        "ntree",
        dtype="int",
        doc="negative: awake, -1: ready to sleep; otherwise the next tree of its sleeping group",
    )
    tree_start: Any = array("ntree", dtype="int", doc="tree_asleep at the start of a world")
    flexvert_lambda = array(
        "nflexvert",
        unit="N",
        doc="multipliers of the contacts of shells, under the ipc flag",
        only=("resolves_shells",),
    )
    flexvert_conage = array(
        "nflexvert",
        dtype="int",
        doc="age of inactive contact cones of vertices (docs/physics/flexes.md)",
        only=("resolves_shells",),
    )
    # inputs
    ctrl = array("nu", doc="control")
    qfrc_applied = array("nv", unit="N or N m", doc="applied generalized force")
    xfrc_applied = array(
        "nbody", 6, unit="N, N m", doc="applied force and torque at the body's com"
    )
    eq_active = array("neq", dtype="bool", doc="whether an equality constraint is active")
    mocap_pos = array("nmocap", kind="vec", unit="m", doc="position of mocap bodies")
    mocap_quat = array("nmocap", kind="quat", doc="orientation of mocap bodies")
    userdata = array("nuserdata", doc="user data, not touched by the engine")
    # diagnostics
    warning = array(7, dtype="int", doc="number of times each WarningType occurred")
    warning_lastinfo = array(
        7,
        dtype="int",
        doc="at the last occurrence: the first bad entry of qpos, qvel, qacc or ctrl (-1: of "
        "another input); the dof whose pivot was too small; the number of contacts needed",
    )
    solver_niter = array(dtype="int", doc="solver iterations of the last step")
    solver = nested(
        SolverStat,
        "statistics of the solver's iterations",
        keep=False,
        optional=True,
        remedy="make_data(m, keep='all') allocates it",
    )
    solver_fwdinv = array(2, unit="N or N m", doc="norms: inverse - forward, under the fwdinv flag")

    # poses
    xpos = array("nbody", kind="vec", unit="m", doc="position of body frames")
    xquat = array("nbody", kind="quat", doc="orientation of body frames")
    xmat = array("nbody", kind="rot", doc="orientation of body frames")
    xipos = array("nbody", kind="vec", unit="m", doc="position of body centers of mass")
    ximat = array("nbody", kind="rot", doc="orientation of body inertial frames")
    xanchor = array("njnt", kind="vec", unit="m", doc="position of joint anchors")
    xaxis = array("njnt", kind="vec", doc="joint axes")
    geom_xpos = array("ngeom", kind="vec", unit="m", doc="position of geoms")
    geom_xmat = array("ngeom", kind="rot", doc="orientation of geoms")
    site_xpos = array("nsite", kind="vec", unit="m", doc="position of sites")
    site_xmat = array("nsite", kind="rot", doc="orientation of sites")
    cam_xpos = array("ncam", kind="vec", unit="m", doc="position of cameras")
    cam_xmat = array("ncam", kind="rot", doc="orientation of cameras")
    light_xpos = array("nlight", kind="vec", unit="m", doc="position of lights", keep=False)
    light_xdir = array("nlight", kind="vec", doc="direction of lights", keep=False)
    subtree_com = array("nbody", kind="vec", unit="m", doc="center of mass of subtrees")
    cdof = array("nv", kind="spatial", doc="motion axis of dofs, com-based", keep=False)
    cinert = array(
        "nbody", kind="inertia", unit="kg m^2, kg m, kg", doc="inertia, com-based", keep=False
    )
    crb = array("nbody", kind="inertia", unit="kg m^2, kg m, kg", doc="subtree inertia", keep=False)
    M = array("nv", "nv", unit="kg or kg m^2", doc="joint-space inertia matrix", keep=False)
    qLD = array("nv", "nv", doc="factors of M = L' D L: L below the diagonal, D on it", keep=False)
    qLDiagInv = array("nv", unit="1/kg or 1/(kg m^2)", doc="1 / D", keep=False)
    ten_wrapadr = array(
        "ntendon", dtype="int", doc="index of the first point of a tendon's path", keep=False
    )
    ten_wrapnum = array(
        "ntendon", dtype="int", doc="number of points of a tendon's path", keep=False
    )
    wrap_obj = array(
        "nwrap", 2, dtype="int", doc="geom a point is on; -1: site, -2: pulley", keep=False
    )
    wrap_xpos = array(
        "nwrap", 6, unit="m", doc="points of all tendon paths, two per row", keep=False
    )
    ten_length = array("ntendon", unit="m", doc="tendon lengths")
    ten_J = array("ntendon", "nv", doc="tendon Jacobian", keep=False)
    flexvert_xpos = array("nflexvert", kind="vec", unit="m", doc="position of vertices of flexes")
    flexelem_aabb = array(
        "nflexelem",
        6,
        unit="m",
        doc="center and half sizes of the bounding boxes of elements",
        keep=False,
    )
    flexedge_length = array("nflexedge", unit="m", doc="lengths of edges of flexes")
    flexedge_J = array("nJfe", doc="Jacobian of the edges, structural nonzeros", keep=False)
    actuator_length = array("nout", unit="m or rad", doc="actuator lengths")
    actuator_moment = array("nout", "nv", doc="actuator moment arms", keep=False)

    # contacts and constraints
    contact = nested(
        Contact,
        "contacts",
        optional=True,
        remedy="make_data(m) allocates it, and load_model(..., contacts=n) decides its size",
    )
    ncon = array(dtype="int", doc="number of detected contacts")
    ne = array(dtype="int", doc="number of equality rows")
    nf = array(dtype="int", doc="number of friction-loss rows")
    nl = array(dtype="int", doc="number of limit rows")
    nefc = array(dtype="int", doc="number of constraint rows")

    # Rows; the first `nefc` entries of each field are valid.
    efc_type = array("nrow", dtype="int", doc="ConstraintType; -1 past the last row", keep=False)
    efc_id = array(
        "nrow",
        dtype="int",
        doc="id of the equality, dof, tendon, joint or contact; or -1",
        keep=False,
    )
    efc_J = array("nrow", "nv", doc="constraint Jacobian", keep=False)
    efc_pos = array("nrow", unit="m or rad", doc="position of the constraint", keep=False)
    efc_margin = array(
        "nrow", unit="m or rad", doc="position at which the constraint becomes active", keep=False
    )
    efc_frictionloss = array(
        "nrow", unit="N or N m", doc="bound of the dry friction force", keep=False
    )
    efc_KBIP = array(
        "nrow", 4, doc="stiffness, damping, impedance, its derivative by the position", keep=False
    )
    efc_vel = array("nrow", unit="m/s or rad/s", doc="velocity of the constraint", keep=False)
    efc_diagA = array("nrow", doc="approximate diagonal of J M^-1 J'", keep=False)
    efc_R = array("nrow", doc="regularization", keep=False)
    efc_D = array("nrow", doc="inverse regularization", keep=False)
    efc_aref = array("nrow", unit="m/s^2 or rad/s^2", doc="reference acceleration", keep=False)
    efc_b = array(
        "nrow", unit="m/s^2 or rad/s^2", doc="J qacc_smooth - aref, of the dual problem", keep=False
    )
    efc_state = array("nrow", dtype="int", doc="ConstraintState; -1 past the last", keep=False)
    efc_force = array("nrow", unit="N or N m", doc="constraint force", keep=False)

    # islands and sleep; None without the sleep flag
    tree_awake: Any = array("ntree", dtype="int", doc="whether a tree is awake")
    body_awake: Any = array("nbody", dtype="int", doc="SleepState of each body")
    ntree_awake: Any = array(dtype="int", doc="number of trees that are awake")
    nbody_awake: Any = array(dtype="int", doc="number of bodies that are not asleep")
    nv_awake: Any = array(dtype="int", doc="number of dofs that are awake")
    nisland: Any = array(
        dtype="int", doc="number of islands: groups of trees that share constraints"
    )
    tree_island: Any = array("ntree", dtype="int", doc="island of each tree; -1: no constraint")

    # velocities
    cvel = array("nbody", kind="spatial", unit="rad/s, m/s", doc="body velocity, com-based")
    cdof_dot = array("nv", kind="spatial", doc="time derivative of cdof", keep=False)
    ten_velocity = array("ntendon", unit="m/s", doc="tendon velocities")
    flexedge_velocity = array(
        "nflexedge", unit="m/s", doc="rate of change of the lengths of edges of flexes"
    )
    actuator_velocity = array("nout", unit="m/s or rad/s", doc="actuator velocities")
    subtree_linvel = array(
        "nbody", kind="vec", unit="m/s", doc="velocity of subtree com", keep=False
    )
    subtree_angmom = array(
        "nbody", kind="vec", unit="kg m^2/s", doc="angular momentum about subtree com", keep=False
    )

    # forces
    qfrc_bias = array("nv", unit="N or N m", doc="Coriolis, centrifugal and gravity force")
    qfrc_spring = array("nv", unit="N or N m", doc="passive spring force", keep=False)
    qfrc_damper = array("nv", unit="N or N m", doc="passive damper force", keep=False)
    qfrc_gravcomp = array("nv", unit="N or N m", doc="gravity compensation force", keep=False)
    qfrc_fluid = array("nv", unit="N or N m", doc="fluid force", keep=False)
    qfrc_adhesion = array("nv", unit="N or N m", doc="attraction of adhesive contacts", keep=False)
    qfrc_passive = array("nv", unit="N or N m", doc="total passive force")
    act_dot = array("na", doc="time derivative of the activation")
    actuator_force = array("nout", unit="N or N m", doc="actuator forces")
    qfrc_actuator = array("nv", unit="N or N m", doc="actuator force on the dofs")
    qfrc_smooth = array("nv", unit="N or N m", doc="all forces except constraint forces")
    qacc_smooth = array("nv", unit="m/s^2 or rad/s^2", doc="acceleration without constraints")
    qfrc_constraint = array("nv", unit="N or N m", doc="constraint force")
    qacc = array("nv", unit="m/s^2 or rad/s^2", doc="acceleration")
    qfrc_inverse = array(
        "nv", unit="N or N m", doc="force that produces qacc, from inverse dynamics"
    )
    cacc = array(
        "nbody", kind="spatial", unit="rad/s^2, m/s^2", doc="body acceleration", keep=False
    )
    cfrc_int = array(
        "nbody", kind="spatial", unit="N m, N", doc="force from the parent", keep=False
    )
    cfrc_ext = array("nbody", kind="spatial", unit="N m, N", doc="external force", keep=False)

    # outputs
    sensordata = array("nsensordata", doc="sensor outputs")
    energy = array(2, unit="J", doc="potential and kinetic energy, under the energy flag")

    readings: Any = work(
        "working values of sensor histories (physics/history/sampling.py); None: no sensor has one"
    )
    frames: Any = work(
        "material frames of twisting rods (physics/flex/frames.py); None: not computed yet"
    )
    found: Any = work(
        "contacts (physics/collision/driver.py), in the order of their rows; None: no pairs"
    )
    inertia: Any = work(
        "M by trees (linalg/tree_sparse.py, linalg/block_diagonal.py); None: stored as one matrix"
    )
    rows: Any = work("constraint rows of the solver (physics/constraint/rows.py)")
    forces: Any = work(
        "row forces, if they do not follow from qacc (m.lists_row_forces); else None"
    )

    def replace(self, **values) -> Self:
        """Return a copy with some fields changed, see `Record.replace`.

        Setting `time` or `history` sets their low-order parts in single precision to zero, unless
        these are given too.
        """
        for name, low in LOW_PARTS.items():
            if name in values and low not in values and not self._native:
                values |= _low_of(low, values[name], getattr(self, name), getattr(self, low))
        return super().replace(**values)

    def _has_sizes(self) -> bool:
        """Return whether the capacity of contacts is fixed: not in a Data of a few fields, as a
        single stage takes, which has no counters."""
        return self.solver_niter is not None and self.warning is not None

    def _remedy(self, name: str, value: Any) -> str:
        """Return what replaces the field, or the nearest name."""
        return _replacement_hint(_FIELD_REPLACEMENTS, name) or super()._remedy(name, value)

    def bind(self, m: Any, elements: Any) -> Bound[Self]:
        """Return a view of the fields of named objects: `d.bind(m, spec["joint", "knee"]).qpos`.

        Args:
          m: the model.
          elements: an element of a `Spec` or of a `mujoco.MjSpec`, "kind:name", or a list of them,
            all of one kind.
        """
        return Bound(m.structure, self, elements)

    def __getitem__(self, index: Any) -> Self:
        """Return the worlds of a batch at an index, a slice or a mask of its leading axis."""
        return jax.tree.map(lambda a: a[index], self)

    def __getattr__(self, name: str) -> Any:
        """Raise AttributeError that names the replacement of an mjData field absent here."""
        near = "" if name.startswith("_") else remedy(name, self.fields)
        raise AttributeError(
            f"Data has no field {name!r}{_replacement_hint(_FIELD_REPLACEMENTS, name) or near}"
        )

    @property
    def _impl(self) -> Any:
        """Return the fields under the names that MJX keeps in `Data._impl`."""
        return DataJAX(self)

    def where(self, done: jax.Array, other: Self) -> Self:
        """Return `other` where `done`, otherwise this, for one world or for a batch whose leading
        axes are those of `done`."""

        def choose(mine: jax.Array, theirs: jax.Array) -> jax.Array:
            shape = done.shape + (1,) * (mine.ndim - done.ndim)
            return jnp.where(done.reshape(shape), theirs, mine)

        done = jnp.asarray(done)
        return jax.tree.map(choose, self, other)


# Low-order parts, in single precision, of fields that hold times.
LOW_PARTS = {"time": "time_low", "history": "history_low"}


def _low_of(name: str, value: Any, old: Any, now: Any) -> dict[str, Any]:
    """Return the low-order part `name` that belongs to a new value: zeros, or the axis if the value
    is an axis of a vmap."""
    is_number = isinstance(value, int | float) and hasattr(old, "dtype")
    if not hasattr(value, "dtype") and not is_number:
        return {} if now is None and hasattr(old, "dtype") else {name: value}
    if now is None:
        return {}
    rank = len(Data.fields[name].shape)  # rank of the value too
    shape = (*np.shape(value)[: np.ndim(value) - rank], *now.shape[now.ndim - rank :])
    make = jax.ShapeDtypeStruct if isinstance(value, jax.ShapeDtypeStruct) else jnp.zeros
    return {name: make(shape, now.dtype)}


class DataJAX:
    """Fields of a Data as MJX's JAX engine has them, `d._impl`.

    Reading a field that the Data does not keep raises, because in MJX it has a value.
    """

    def __init__(self, d: Data):
        self._d = d

    def __getattr__(self, name: str) -> Any:
        if name == "_d":  # attribute lookup during copying
            raise AttributeError(name)
        value = getattr(self._d, name)
        field = Data.fields.get(name)
        if value is None and field is not None and not (field.keep or field.only):
            raise AttributeError(
                f"{name} is not kept by this Data: "
                f"make_data(m, keep=[..., {name!r}]) keeps it, keep='all' keeps every field"
            )
        return value


def _replacement_hint(table: dict[str, str], name: str) -> str:
    return f": {table[name]}" if name in table else ""


def absent_field_message(name: str) -> str:
    """Return the message for a name that is no field to keep, with its replacement or the nearest
    name."""
    owner, _, inner = name.rpartition(".")
    if owner != "contact":
        what = _replacement_hint(_FIELD_REPLACEMENTS, name) or remedy(name, Data.fields, "")
        return f"Data has no field {name!r}{what}"
    if inner in Contact.fields:
        return f"{name}: the fields of contacts are kept together; keep 'contact'"
    what = remedy(name, [f"contact.{n}" for n in Contact.fields], "")
    return f"Contact has no field {inner!r}{what}"


# Replacements of mjData or MJX fields that are absent here.
_FIELD_REPLACEMENTS = {
    "qM": "jaxsim.support.full_m(m, d); or d.M of a Data that keeps it, make_data(m, keep=['M'])",
    "efc_AR": "jaxsim.stages.project_constraint(m, d)",
    "efc_diagApprox": "d.efc_diagA, as in MuJoCo 4.0, of a Data that keeps it",
    **dict.fromkeys(
        ("efc_JT", "efc_J_rownnz", "efc_J_rowadr", "efc_J_colind", "efc_J_rowsuper"),
        "d.efc_J is dense, for its rows change with the state; d.efc_J.T, or "
        "jax.experimental.sparse.BCSR.fromdense(d.efc_J)",
    ),
    **dict.fromkeys(
        ("actuator_moment_rownnz", "moment_rownnz", "moment_rowadr", "moment_colind"),
        "jaxsim.support.sparse_actuator_moment(m, d) has the pattern; d.actuator_moment is dense",
    ),
}

# Fields that every world has: its state, inputs and counters; with the sleep flag also the sleep
# state of its trees and the results that stay unchanged while a tree sleeps.
ALWAYS_KEPT = frozenset(
    "time time_low qpos qvel act history history_low plastic plugin_state qacc_warmstart "
    "tree_asleep tree_start flexvert_lambda flexvert_conage "
    "ctrl qfrc_applied xfrc_applied eq_active mocap_pos mocap_quat userdata "
    "warning warning_lastinfo solver_niter".split()
)
SLEEP_STATE = frozenset(("tree_asleep", "tree_start"))
SLEEP_FIELDS = SLEEP_STATE | frozenset(
    "tree_awake body_awake ntree_awake nbody_awake nv_awake nisland tree_island".split()
)
SINGLE_FIELDS = frozenset(LOW_PARTS.values())  # in single precision
IPC_FIELDS = frozenset(("flexvert_lambda", "flexvert_conage"))  # of shells, with the ipc flag
ROW_FIELDS = tuple(name for name in Data.fields if name.startswith("efc_"))
WAITING_FIELDS = frozenset("xpos xquat act_dot qfrc_smooth qacc_smooth".split())
