"""Compile physics options, flags and user-defined sizes: `opt`, `stat`, `nuserdata`."""

from __future__ import annotations

import math
from enum import IntFlag

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.options.bounds import fits_bounds
from jaxsim.compile.step import declare_pass
from jaxsim.enums import ConeType, DisableBit, EnableBit, IntegratorType, JacobianType, SolverType
from jaxsim.model.derived import STATISTICS

_REALS = (
    "timestep impratio tolerance ls_tolerance noslip_tolerance ccd_tolerance sleep_tolerance"
    " density viscosity o_margin"
).split()
_COUNTS = (
    "iterations ls_iterations noslip_iterations ccd_iterations sdf_iterations"
    " sdf_initpoints".split()
)
_VECTORS = {"gravity": 3, "wind": 3, "magnetic": 3, "o_solref": 2, "o_solimp": 5, "o_friction": 5}
OPTION_ENUMS = {
    "integrator": IntegratorType,
    "cone": ConeType,
    "jacobian": JacobianType,
    "solver": SolverType,
}
_LAST_GROUP = 30  # largest actuator group that can be disabled


@declare_pass(gives="opt")
def option(c: Compilation) -> None:
    """Read the `<option>`, `<option/flag>` and `<size nuserdata>` settings."""
    spec, opt = c.spec, c.opt
    for name in _REALS:
        opt[name] = float(spec.setting("option", name))
    for name in _COUNTS:
        opt[name] = int(spec.setting("option", name))
    for name, width in _VECTORS.items():
        given = np.array(spec.setting("option", name), np.float64)
        fallback = np.array(spec.schema_default("option", name), np.float64)
        opt[name] = np.concatenate([given, fallback[len(given) :]])[:width]
    for name, kind in OPTION_ENUMS.items():
        opt[name] = int(kind[spec.setting("option", name).upper()])
    opt["disableflags"] = _flags(c, DisableBit, "disable")
    opt["enableflags"] = _flags(c, EnableBit, "enable")
    opt["disableactuator"] = _groups(c)
    if opt["enableflags"] & EnableBit.IPC and opt["integrator"] != IntegratorType.DISCRETE:
        c.fault(spec.author("option", "flag"), "flag ipc needs <option integrator='discrete'/>")
    c.fields["nuserdata"] = int(spec.setting("size", "nuserdata"))
    fits_bounds(c, spec.author("size", "nuserdata"), "nuserdata", c.fields["nuserdata"])
    _check_sizes(c)


def _check_sizes(c: Compilation) -> None:
    """Check that sizes are counts, or -1 for automatic ones, and that a viewer's divisors are
    positive."""
    least = {"nuserdata": 0, "nkey": -math.inf}
    for name, value in c.spec.settings("size").items():
        if isinstance(value, int) and value < least.get(name, -1):
            c.fault(c.spec.author("size", name), f"{name}='{value}' is not a size")
    for tag, name in (("global", "realtime"), ("map", "znear")):
        for element in (e for e in c.spec.section("visual") if e.tag == tag):
            if element.attrs.get(name, 1) <= 0:
                c.fault(element, f"{name}='{element.attrs[name]:g}' must be positive")


def _flags(c: Compilation, bits: type[IntFlag], keyword: str) -> int:
    """Return the bits whose flag is set to the keyword, "disable" or "enable"."""
    names = {str(bit.name).lower(): int(bit) for bit in bits}
    given = c.spec.settings("option", "flag")
    return sum(bit for name, bit in names.items() if given.get(name) == keyword)


def _groups(c: Compilation) -> int:
    """Return `actuatorgroupdisable` as bits."""
    groups = c.spec.settings("option").get("actuatorgroupdisable")
    bits = 0
    for group in np.zeros(0, int) if groups is None else np.atleast_1d(groups):
        if 0 <= group <= _LAST_GROUP:
            bits |= 1 << int(group)
        else:
            message = f"actuatorgroupdisable has {group}; groups go from 0 to {_LAST_GROUP}"
            c.fault(c.spec.author("option", "actuatorgroupdisable"), message)
    return bits


@declare_pass(gives="stat")
def statistic(c: Compilation) -> None:
    """Set model statistics that the user gives instead of the computed ones; the last pass.

    `stat_given` marks those of `STATISTICS`, so that they are kept when the model changes.
    """
    given = c.spec.settings("statistic")
    for name, value in given.items():
        if name == "extent" and not np.all(np.asarray(value, float) > 0):
            c.fault(
                c.spec.author("statistic", name),
                f"extent='{float(np.asarray(value)):g}' must be positive",
            )
        c.stat[name] = np.array(value, np.float64) if np.ndim(value) else float(value)
    c.fields["stat_given"] = np.array([name in given for name in STATISTICS])
