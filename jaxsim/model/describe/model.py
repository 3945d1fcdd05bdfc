"""What a model has, what it costs, and what a world of it does, for a person to read."""

from enum import IntEnum

import jax
import numpy as np

from jaxsim.enums import (
    ConeType,
    EqType,
    GeomType,
    IntegratorType,
    JointType,
    SensorType,
    SolverType,
    TrnType,
)
from jaxsim.errors import SHOWN, Place, Problem
from jaxsim.escape import line
from jaxsim.model.allocate import Keep, allocate
from jaxsim.model.data import Data
from jaxsim.model.describe.state import describe_state
from jaxsim.model.model import Model


class FlexDim(IntEnum):
    """What a flex is, by `flex_dim`."""

    ROD = 1
    SHELL = 2
    SOLID = 3


def describe(m: Model, d: Data | None = None, world: int = 0) -> str:
    """Return a short description of a model, or of what a world of it is doing.

    Args:
      m: the model: its sizes, kinds, options, and bytes a world.
      d: one world or a batch, outside of jit: time, joints, controls, contacts with the names of
        their geoms, the largest forces, warnings, and what is not finite. Lists are cut: the text
        is about a page long.
      world: which world of a batch, over all leading axes counted as one.

    Raises:
      ValueError: `d` is not a Data of the model, is traced, or has no such world.
    """
    return _of_model(m) if d is None else describe_state(m, d, world)


def _of_model(m: Model) -> str:
    """Return the sizes, kinds, options, and bytes a world."""
    rows = {
        "bodies": f"{m.nbody - 1}, mass {float(m.body_mass.sum()):.4g} kg",
        "joints": f"{m.njnt}{_kinds(JointType, m.jnt_type)}",
        "dofs": f"{m.nv} (nq {m.nq})",
        "geoms": f"{m.ngeom}{_kinds(GeomType, m.geom_type)}",
        "contacts": f"room for {m.ncontact} a world{_smooth(m)}",
        "actuators": f"{m.nu}{_kinds(TrnType, m.actuator_trntype)}",
        "tendons": str(m.ntendon),
        "flexes": f"{m.nflex}{_kinds(FlexDim, m.flex_dim)}",
        "equalities": f"{m.neq}{_kinds(EqType, m.eq_type)}",
        "sensors": f"{m.nsensor}{_kinds(SensorType, m.sensor_type)}",
        "key frames": f"{m.nkey}{_named(m.names.get('key', []))}",
        "time step": f"{float(m.opt.timestep):g} s, {_word(IntegratorType, m.opt.integrator)}",
        "solver": (
            f"{_word(SolverType, m.opt.solver)}, {m.opt.iterations} iterations, "
            f"{_word(ConeType, m.opt.cone)} cones"
        ),
        "callbacks": _callbacks(m),
        "state": f"{bytes_per_world(m)} bytes a world, {m.qpos0.dtype}",
    }
    shown = {name: text for name, text in rows.items() if text not in ("", "0")}
    lines = [f"{name:11} {text}" for name, text in shown.items()]
    return "\n".join([*lines, *_not_simulated(m)])


def bytes_per_world(m: Model, keep: Keep = "default") -> int:
    """Return the bytes that a step carries from one to the next, for one world."""
    d: Data = jax.eval_shape(lambda: allocate(m, keep))
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(d))


def _not_simulated(m: Model) -> list[str]:
    """What a simulation is refused for."""
    if not m.unsupported:
        return []
    lines = [
        f"  {Problem(Place(file, number), what)}" for file, number, what in m.unsupported[:SHOWN]
    ]
    more = len(m.unsupported) - len(lines)
    return ["cannot be simulated:", *lines, *([f"  ... and {more} more"] if more else [])]


def _kinds(enum, types: np.ndarray) -> str:
    """How many there are of each kind: " (2 free, 19 hinge)"."""
    values, counts = np.unique(types, return_counts=True)
    each = (f"{n} {_word(enum, v)}" for v, n in zip(values, counts, strict=True))
    text = ", ".join(each)
    return f" ({text})" if text else ""


def _word(enum, value) -> str:
    return enum(int(value)).name.lower()


def _smooth(m: Model) -> str:
    """Over which length contacts are felt: ", felt over 0.001 m", the largest of a batch."""
    return "" if m.smooth is None else f", felt over {float(m.smooth.max()):g} m"


def _callbacks(m: Model) -> str:
    """Which functions of the user a step calls."""
    given = {} if m.callbacks is None else vars(m.callbacks)
    return ", ".join(name for name, function in given.items() if function is not None)


def _named(names) -> str:
    text = ", ".join(line(n) for n in names if n)
    return f" ({text})" if text else ""
