"""Parameters of actuators from which numbers of the model follow by a formula.

    diameter of a cylinder     area = pi / 4 diameter^2
    attributes of a DC motor   constants of model/motor_constants.py (motors.py)
    dampratio of a servo       kv = dampratio 2 sqrt(kp m), with m the inertia it drives at qpos0

A formula field is such a parameter of all actuators under a name that no model has
(actuators.py:FORMULA_FIELDS). The formulas are evaluated after all other parameters, the damping
ratio last: it depends on kp and, through the mass matrix at `qpos0`, on masses, inertias, lengths,
armatures and gears. What the compiler derives from an attribute of an actuator follows that
attribute: a servo whose file gives `dampratio` keeps its ratio where its `kp`, `gear`, `armature`
or `cranklength` changes, a motor whose K follows from `nominal` and `damping` changes K with its
damping. Parameters of bodies and joints alone leave the damping of servos as it is, as `set_const`
does.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import GainType
from jaxsim.identify.targets import actuators, motors
from jaxsim.identify.targets.actuators import BIAS, DIAMETER_FIELD, GAIN, RATIO_FIELD
from jaxsim.math.guard import safe_sqrt
from jaxsim.model.derived import DAMPING_RATIO
from jaxsim.model.model import Model
from jaxsim.physics.constants.set_const import reference_mobility

# Parameters of an actuator on which the damping of a given ratio depends.
_RATIO_DEPENDS_ON = ("kp", "gear", "armature", "cranklength")
_RATIO_SLOT = 2  # index of kv, negated, in actuator_biasprm
_REAL_FIELDS = {RATIO_FIELD: (BIAS,), DIAMETER_FIELD: (GAIN,)}
_MOTOR_FIELDS = (GAIN, "actuator_dynprm", "actuator_forcerange")

# A parameter: kind and field of its name, with the fields and flat addresses that it sets.
NamedEntries = tuple[str | None, str | None, Iterable[tuple[str, np.ndarray]]]


@dataclass(frozen=True, eq=False)
class ActuatorFormulas:
    """Formulas of the actuators that some parameters change.

    Attributes:
      start: values of the formula fields in the model, by name.
      diameters: cylinders whose diameter is set, ids.
      driven: by id of each motor, its attributes in the file, and the names of those that
        parameters set.
      ratios: servos whose damping follows from its ratio, ids.
    """

    start: Mapping[str, np.ndarray] = field(default_factory=dict)
    diameters: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    driven: Mapping[int, tuple[motors.MotorOrigin, tuple[str, ...]]] = field(default_factory=dict)
    ratios: np.ndarray = field(default_factory=lambda: np.zeros(0, int))

    def initial(self, dtype: Any) -> dict[str, jax.Array]:
        """Return the formula fields before any parameter changes them."""
        return {name: jnp.asarray(value, dtype) for name, value in self.start.items()}

    def evaluate(self, m: Model, changed: Mapping[str, Any]) -> dict[str, Any]:
        """Return changed fields of the model, computed from changed fields and formula fields.

        Args:
          m: the model, with sizes and densities changed.
          changed: changed fields and formula fields, by name.
        """
        # Separate formula fields; then diameters, motors, and damping ratios last.
        given = {n: v for n, v in changed.items() if n in actuators.FORMULA_FIELDS}
        found = {n: v for n, v in changed.items() if n not in given}
        if self.diameters.size:
            gain = jnp.asarray(found[GAIN] if GAIN in found else getattr(m, GAIN))
            diameter = given[DIAMETER_FIELD][self.diameters]
            found[GAIN] = gain.at[self.diameters, 0].set(np.pi / 4 * diameter**2)
        if self.driven:
            values = {n.removeprefix("actuator_"): v for n, v in given.items()}
            found |= motors.motor_fields(m, self.driven, values, found)
        if self.ratios.size:
            found[BIAS] = self._damped(m, found, given[RATIO_FIELD])
        return found

    def _damped(self, m: Model, found: Mapping[str, Any], ratio: jax.Array) -> jax.Array:
        """Return the bias of servos with kv = ratio 2 sqrt(kp m)."""
        fields = {n: v for n, v in found.items() if "." not in n}
        bias = jnp.asarray(found[BIAS] if BIAS in found else getattr(m, BIAS))
        # A field without a slot in the program does not change the mass matrix either.
        mass = driven_mass(m.tree_replace(fields))[self.ratios]
        kv = ratio[self.ratios] * 2 * safe_sqrt(-bias[self.ratios, 1] * mass)
        return bias.at[self.ratios, _RATIO_SLOT].set(-kv.astype(bias.dtype))


def actuator_formulas(m: Model, parameters: Iterable[NamedEntries]) -> ActuatorFormulas:
    """Return the formulas that parameters need.

    Args:
      m: the model, with known numbers.
      parameters: kind and field of each parameter, and the entries that it sets.
    """
    parameters = [(k, n, [(f, np.asarray(a)) for f, a in e]) for k, n, e in parameters]
    # Actuators whose entries of each formula field are set.
    owners: dict[str, set[int]] = {}
    for name, adr in (entry for _, _, entries in parameters for entry in entries):
        if name in actuators.FORMULA_FIELDS:
            ids = adr // actuators.FORMULA_FIELDS[name]
            owners.setdefault(name, set()).update(map(int, ids))
    # Add servos and motors whose derived constants follow from other parameters.
    ratios = owners.get(RATIO_FIELD, set()) | _following_ratios(m, parameters)
    driven: dict[int, list[str]] = {i: [] for i in _following_motors(m, parameters)}
    for name in motors.MOTOR_PARAMETERS:
        for i in owners.get(f"actuator_{name}", ()):
            driven.setdefault(i, []).append(name)
    fields = {*owners, *([RATIO_FIELD] if ratios else [])}
    return ActuatorFormulas(
        {name: formula_values(m, name) for name in sorted(fields)},
        np.array(sorted(owners.get(DIAMETER_FIELD, ())), int),
        {i: (motors.origin_of(m, i), tuple(names)) for i, names in sorted(driven.items())},
        np.array(sorted(ratios), int),
    )


def formula_values(m: Model, name: str) -> np.ndarray:
    """Return the numbers of a formula field in a model, (nactuator,) or (nactuator, count).

    Entries of actuators that have no such parameter are 0.
    """
    count = len(m.actuator_gaintype)
    if name == DIAMETER_FIELD:
        area = np.asarray(m.actuator_gainprm, np.float64)[:, 0]
        return np.sqrt(np.maximum(area, 0) * 4 / np.pi)
    if name == RATIO_FIELD:
        bias = np.asarray(m.actuator_biasprm, np.float64)
        critical = 2 * np.sqrt(np.maximum(-bias[:, 1] * np.asarray(driven_mass(m)), 0))
        return np.divide(-bias[:, _RATIO_SLOT], critical, out=np.zeros(count), where=critical > 0)
    attribute, width = name.removeprefix("actuator_"), actuators.FORMULA_FIELDS[name]
    rows = np.zeros((count, width))
    for i in np.flatnonzero(m.actuator_gaintype == GainType.DCMOTOR):
        rows[i] = motors.attributes_of(m, int(i))[attribute]
    return rows[:, 0] if width == 1 else rows


def driven_mass(m: Model) -> jax.Array:
    """Return the inertia that each actuator drives at `qpos0`, (nactuator,) [kg or kg m^2].

    Its inverse, the mobility, is the mean of J M^-1 J^T over the outputs of the actuator; where no
    dof moves the outputs, the inertia is returned as 0.
    """
    of_outputs, count = reference_mobility(m), len(m.actuator_outnum)
    sums = jax.ops.segment_sum(of_outputs, np.repeat(np.arange(count), m.actuator_outnum), count)
    mobility = sums / jnp.maximum(m.actuator_outnum, 1).astype(sums.dtype)
    moves = mobility > 0
    return jnp.where(moves, 1 / jnp.where(moves, mobility, 1), 0)


def entries_set(name: str, adr: int) -> Iterable[tuple[str, int, str]]:
    """Yield the entries of the model that an entry of a field sets, with the group of the setter.

    Two parameters set the same number unless both are of the same group, which is not empty:
    attributes of one motor determine its constants together.

    Args:
      name: the field.
      adr: flat address in it.
    """
    yield name, adr, ""
    if name not in actuators.FORMULA_FIELDS:
        return
    owner = adr // actuators.FORMULA_FIELDS[name]
    if name == RATIO_FIELD:
        yield BIAS, owner * 10 + _RATIO_SLOT, ""
    elif name == DIAMETER_FIELD:
        yield GAIN, owner * 10, ""
    else:
        group = f"motor {owner}"
        for constant in ("K", "R", "TAU", "RATE", "THERMAL_R", "THERMAL_C"):
            where = GAIN if constant in "KR" else "actuator_dynprm"
            yield where, owner * 10 + getattr(motors.motor, constant), group


def real_fields(name: str) -> tuple[str, ...]:
    """Return the fields of the model that a formula field sets; other fields set themselves."""
    if name not in actuators.FORMULA_FIELDS:
        return (name,)
    return _REAL_FIELDS.get(name, _MOTOR_FIELDS)


def _following_ratios(m: Model, parameters: list) -> set[int]:
    """Return the servos whose given damping ratio makes kv follow from other parameters."""
    table = m.actuator_origin if "actuator_origin" in m.structure else ()
    given = {i for i, origin in enumerate(table) if origin == DAMPING_RATIO}
    if not given:
        return set()
    changed = {i for ids in _owners(m, parameters, _RATIO_DEPENDS_ON) for i in ids}
    # A parameter that sets kv itself takes precedence.
    set_kv: set[int] = set()
    for _, _, entries in parameters:
        for name, adr in entries:
            if name == BIAS:
                set_kv.update((adr[adr % 10 == _RATIO_SLOT] // 10).ravel().tolist())
    return given & changed - set_kv


def _following_motors(m: Model, parameters: list) -> set[int]:
    """Return the motors whose K follows from their damping, where that changes."""
    found = {i for ids in _owners(m, parameters, ("damping",)) for i in ids}
    found = {i for i in found if m.actuator_gaintype[i] == GainType.DCMOTOR}
    return {i for i in found if motors.origin_of(m, i).find_attribute("damping") is not None}


def _owners(m: Model, parameters: list, names: tuple[str, ...]) -> Iterable[set[int]]:
    """Yield, for each field that parameters with these names set, the actuators concerned.

    Rows of `actuator_gear` are outputs, rows of all other fields are actuators.
    """
    owner_of_output = np.repeat(np.arange(len(m.actuator_outnum)), m.actuator_outnum)
    for kind, name, entries in parameters:
        if kind == "actuator" and name in names:
            for where, adr in entries:
                shape = np.shape(getattr(m, where))
                rows = adr // int(np.prod(shape[1:], dtype=int))
                by_output = where == "actuator_gear"
                yield set(map(int, owner_of_output[rows] if by_output else rows))
