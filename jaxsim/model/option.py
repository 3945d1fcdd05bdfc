"""Options and statistics of a Model: `m.opt`, `m.stat`."""

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxsim.enums import ConeType, DisableBit, EnableBit, IntegratorType, JacobianType, SolverType
from jaxsim.model.record.check import brief_value
from jaxsim.model.record.fields import array, static
from jaxsim.model.record.record import Record

CHOICES = {
    "integrator": IntegratorType,
    "cone": ConeType,
    "jacobian": JacobianType,
    "solver": SolverType,
}
FLAGS = {"disableflags": DisableBit, "enableflags": EnableBit}
_MAX_LIMIT_VALUE = 2**31 - 1  # of iterations; they are counted in 32 bits
NO_CONTACTS = DisableBit.CONTACT | DisableBit.CONSTRAINT


class Option(Record):
    """Simulation options, `m.opt`. Real numbers are traced; enums and limits are static."""

    timestep = array(unit="s", doc="length of a step")
    impratio = array(doc="ratio of frictional to normal constraint impedance, elliptic cones")
    tolerance = array(doc="solver stops when scaled improvement and gradient are below this")
    ls_tolerance = array(doc="line search stops when the scaled slope is below this")
    noslip_tolerance = array(doc="termination of the no-slip solver")
    ccd_tolerance = array(unit="m", doc="accuracy of the general convex collision")
    sleep_tolerance = array(unit="m/s", doc="speed below which a tree may sleep")
    gravity = array(kind="vec", unit="m/s^2", doc="gravitational acceleration")
    wind = array(kind="vec", unit="m/s", doc="velocity of the medium")
    magnetic = array(kind="vec", unit="T", doc="global magnetic flux")
    density = array(unit="kg/m^3", doc="density of the medium")
    viscosity = array(unit="Pa s", doc="viscosity of the medium")
    o_margin = array(unit="m", doc="contact margin under the override flag")
    o_solref = array(2, doc="contact solref under the override flag")
    o_solimp = array(5, doc="contact solimp under the override flag")
    o_friction = array(5, doc="contact friction under the override flag")
    integrator: int = static("IntegratorType")
    cone: int = static("ConeType")
    jacobian: int = static("JacobianType; no effect, the storage is chosen by the structure")
    solver: int = static(
        "SolverType; all have the same minimum; with PGS the discrete integrator leaves tendons "
        "and actuators explicit"
    )
    iterations: int = static("limit of solver iterations")
    ls_iterations: int = static("limit of line search evaluations in a solver iteration")
    noslip_iterations: int = static("limit of no-slip iterations")
    ccd_iterations: int = static("limit of convex collision iterations")
    sdf_iterations: int = static("limit of descent iterations in a distance-field collision")
    sdf_initpoints: int = static("starting points of a distance-field collision")
    disableflags: int = static("DisableBit")
    enableflags: int = static("EnableBit")
    disableactuator: int = static("bit i set: actuators of group i are off")

    def _check(self, values: Mapping[str, Any]) -> None:
        super()._check(values)
        for name, value in values.items():
            if name in self.fields and self.fields[name].static:
                _check_option(name, value)

    def _cast_to_field(self, name: str, value: Any) -> Any:
        """Return a new value in the type of its field; static ones are Python integers."""
        is_static = name in self.fields and self.fields[name].static
        return operator.index(value) if is_static else super()._cast_to_field(name, value)


class Statistic(Record):
    """Sizes and masses typical of the model, `m.stat`."""

    meaninertia = array(unit="kg or kg m^2", doc="mean of the diagonal of the mass matrix at qpos0")
    meanmass = array(unit="kg", doc="mean body mass")
    meansize = array(unit="m", doc="mean body size")
    extent = array(unit="m", doc="spatial extent")
    center = array(kind="vec", unit="m", doc="center of the model")


def _check_option(name: str, value: Any) -> None:
    """Raise ValueError for a static option that the program has no meaning for."""
    kind = CHOICES.get(name)
    if kind is not None:
        known = tuple(kind.__members__)
        if not hasattr(value, "__index__") or operator.index(value) not in tuple(kind):
            raise ValueError(
                f"{name}: expected one of {kind.__name__} ({', '.join(known)}), got "
                f"{brief_value(value)}; write jaxsim.enums.{kind.__name__}.{known[-1]}"
            )
        return
    bits = sum(FLAGS[name]) if name in FLAGS else None
    what = "a sum of bits of " + FLAGS[name].__name__ if name in FLAGS else "a whole number"
    whole = hasattr(value, "__index__") and not isinstance(value, bool | np.bool_)
    if not whole or not 0 <= operator.index(value) <= (bits or _MAX_LIMIT_VALUE):
        raise ValueError(f"{name}: expected {what}, at least 0, got {brief_value(value)}")
