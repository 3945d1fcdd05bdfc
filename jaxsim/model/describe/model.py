"""Describe a model: its sizes, kinds of objects, options and memory per world."""

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
from jaxsim.errors import MAX_SHOWN_PROBLEMS, LocatedProblem, SourceLocation
from jaxsim.escape import line
from jaxsim.model.allocate import Keep, allocate
from jaxsim.model.data import Data
from jaxsim.model.describe.state import describe_state
from jaxsim.model.model import Model


class FlexDim(IntEnum):
    """Kind of a flex, by `flex_dim`."""

    ROD = 1
    SHELL = 2
    SOLID = 3


def describe(m: Model, d: Data | None = None, world: int = 0) -> str:
    """Return a short description of a model, or of the state of a world of it.

    Args:
      m: the model: its sizes, kinds of objects, options, and bytes per world.
      d: one world or a batch, outside of jit: time, joints, controls, contacts with the names of
        their geoms, the largest forces, warnings, and non-finite values. Lists are truncated: the
        text is about a page long.
      world: index of the world in the flattened batch.

    Raises:
      ValueError: `d` is not a Data of the model, is traced, or has no such world.
    """
    return _model_lines(m) if d is None else describe_state(m, d, world)


def _model_lines(m: Model) -> str:
    """Return the sizes, kinds of objects, options, and bytes per world."""
    rows = {
        "bodies": f"{m.nbody - 1}, mass {float(m.body_mass.sum()):.4g} kg",
        "joints": f"{m.njnt}{_kinds(JointType, m.jnt_type)}",
        "dofs": f"{m.nv} (nq {m.nq})",
        "geoms": f"{m.ngeom}{_kinds(GeomType, m.geom_type)}",
        "contacts": f"capacity {m.ncontact} per world{_smooth(m)}",
        "actuators": f"{m.nu}{_kinds(TrnType, m.actuator_trntype)}",
        "tendons": str(m.ntendon),
        "flexes": f"{m.nflex}{_kinds(FlexDim, m.flex_dim)}",
        "equalities": f"{m.neq}{_kinds(EqType, m.eq_type)}",
        "sensors": f"{m.nsensor}{_kinds(SensorType, m.sensor_type)}",
        "keyframes": f"{m.nkey}{_format_names(m.names.get('key', []))}",
        "time step": f"{float(m.opt.timestep):g} s, {_word(IntegratorType, m.opt.integrator)}",
        "solver": (
            f"{_word(SolverType, m.opt.solver)}, {m.opt.iterations} iterations, "
            f"{_word(ConeType, m.opt.cone)} cones"
        ),
        "callbacks": _callbacks(m),
        "state": f"{bytes_per_world(m)} bytes per world, {m.qpos0.dtype}",
    }
    shown = {name: text for name, text in rows.items() if text not in ("", "0")}
    lines = [f"{name:11} {text}" for name, text in shown.items()]
    return "\n".join([*lines, *_not_simulated(m)])


def bytes_per_world(m: Model, keep: Keep = "default") -> int:
    """Return the bytes per world that a step carries to the next one."""
    d: Data = jax.eval_shape(lambda: allocate(m, keep))
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(d))


def _not_simulated(m: Model) -> list[str]:
    """Return the reasons why a model cannot be simulated, or no lines."""
    if not m.unsupported:
        return []
    lines = [
        f"  {LocatedProblem(SourceLocation(file, number), what)}"
        for file, number, what in m.unsupported[:MAX_SHOWN_PROBLEMS]
    ]
    more = len(m.unsupported) - len(lines)
    return ["cannot be simulated:", *lines, *([f"  ... and {more} more"] if more else [])]


def _kinds(enum, types: np.ndarray) -> str:
    """Return the count of each kind: " (2 free, 19 hinge)"."""
    values, counts = np.unique(types, return_counts=True)
    each = (f"{n} {_word(enum, v)}" for v, n in zip(values, counts, strict=True))
    text = ", ".join(each)
    return f" ({text})" if text else ""


def _word(enum, value) -> str:
    return enum(int(value)).name.lower()


def _smooth(m: Model) -> str:
    """Return the smoothing length of contacts, the largest of a batch: ", felt over 0.001 m"."""
    if m.smooth is None:
        return ""
    where = " in derivatives" if m.straight_through else ""
    return f", felt over {float(m.smooth.max()):g} m{where}"


def _callbacks(m: Model) -> str:
    """Return the names of the user callbacks that are set."""
    given = {} if m.callbacks is None else vars(m.callbacks)
    return ", ".join(name for name, function in given.items() if function is not None)


def _format_names(names) -> str:
    text = ", ".join(line(n) for n in names if n)
    return f" ({text})" if text else ""
