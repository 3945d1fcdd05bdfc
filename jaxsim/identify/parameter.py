"""Parameters of an identification: one flat vector of unknowns, and the model that it defines.

`parameters(m, {...})` builds them from names (targets/select.py) and forms (forms.py). All
functions of the unknowns are pure: `Parameters.model(m, theta)` works under jit, vmap and grad.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.identify import inertia
from jaxsim.identify.forms import Form, Map, make_map
from jaxsim.identify.targets.actuator_formulas import (
    ActuatorFormulas,
    actuator_formulas,
    entries_set,
    real_fields,
)
from jaxsim.identify.targets.geometry import DENSITY_FIELD, OF_BODY, SIZE_FIELD, with_reshaped_geoms
from jaxsim.identify.targets.select import (
    TARGET_PATTERN,
    ParameterTarget,
    current_value,
    select_target,
)
from jaxsim.io.assemble import live_model
from jaxsim.math.rotation import Quat
from jaxsim.math.vector import Vec
from jaxsim.model.model import Model
from jaxsim.physics.constants.set_const import set_const
from jaxsim.transforms.platform import quick_jit

# Fields without derived constants, by the ends of their names.
INDEPENDENT = (
    *("damping", "dampingpoly", "frictionloss", "stiffness", "stiffnesspoly", "friction"),
    *("solref", "solimp", "solreffriction", "solmix", "gainprm", "biasprm", "dynprm"),
    *("forcerange", "ctrlrange", "actfrcrange", "jnt_range", "adhesion", "surfacevel"),
    *("gravcomp", "_user", "_rgba"),
)

_NO_FORMULAS = ActuatorFormulas()


@dataclass(frozen=True)
class Parameter:
    """One named parameter: one unknown, or several of the same form.

    Attributes:
      name: the name that selects it.
      target: the numbers that it sets.
      form: form of the parameter.
      map: map from unknowns to numbers.
      nominal: for an inertia, the ten coordinates of the body of the model.
    """

    name: str
    target: ParameterTarget
    form: Form
    map: Map
    nominal: np.ndarray

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the name of each of its values."""
        if self.form.kind == "inertia":
            return tuple(f"{self.name}.{n}" for n in inertia.PHYSICAL_NAMES)
        return (self.name,) if self.form.share else self.target.labels

    @property
    def size(self) -> int:
        """Return the number of values, which is that of unknowns if it is not frozen."""
        return len(self.map.start)

    @property
    def is_shape(self) -> bool:
        """Return whether it is a size or density of geoms, from which inertias follow."""
        return any(write.field in (SIZE_FIELD, DENSITY_FIELD) for write in self.target.writes)

    @property
    def items(self) -> np.ndarray:
        """Return the geoms of a size or density."""
        return np.concatenate(
            [w.addresses // (3 if w.field == SIZE_FIELD else 1) for w in self.target.writes]
        )

    def coordinates(self, u: jax.Array) -> jax.Array:
        """Return the ten coordinates of an inertia, (10,)."""
        return jnp.asarray(self.nominal, u.dtype) + jnp.asarray(
            _lengths(self), u.dtype
        ) * self.map.value(u)

    def value(self, u: jax.Array) -> jax.Array:
        """Return the values in physical units, (size,)."""
        if self.form.kind == "inertia":
            return inertia.physical_values(self.coordinates(u))
        return self.map.value(u)

    def numbers(self, u: jax.Array) -> jax.Array:
        """Return the numbers of all objects that the name selects."""
        value = self.map.value(u)
        if not self.form.share:
            return value
        if self.form.kind == "scale":
            return value * jnp.asarray(self.target.nominal, u.dtype)
        return jnp.broadcast_to(value, (len(self.target.labels),))


class Parameters(Mapping[str, Parameter]):
    """Parameters by name, with their unknowns as one vector `theta`, (size,).

    Frozen parameters have no unknowns: they stay at their first guess.
    """

    def __init__(
        self,
        m: Model,
        parts: Mapping[str, Parameter],
        formulas: ActuatorFormulas = _NO_FORMULAS,
    ):
        self._parts = dict(parts)
        self._formulas = formulas
        self._dtype = m.qpos0.dtype
        sizes = [0 if p.form.frozen else p.size for p in self._parts.values()]
        self._ends = np.cumsum([0, *sizes])

    def __getitem__(self, name: str) -> Parameter:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return f"Parameters({self.size} unknowns: {', '.join(self._parts)})"

    @property
    def size(self) -> int:
        """Return the number of unknowns."""
        return int(self._ends[-1])

    @property
    def names(self) -> tuple[str, ...]:
        """Return the name of each value, (size,)."""
        return tuple(n for p in self._parts.values() if not p.form.frozen for n in p.labels)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Return the name of each unknown, (size,): a value, or a coordinate of an inertia."""
        found: list[str] = []
        for p in self._parts.values():
            if p.form.kind == "inertia":
                found += (
                    [] if p.form.frozen else [f"{p.name}.{n}" for n in inertia.INERTIA_COORDINATES]
                )
            else:
                found += [] if p.form.frozen else p.labels
        return tuple(found)

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the fields of the model that are set, "opt.density" for one of the options."""
        writes = (w for p in self._parts.values() for w in p.target.writes)
        return tuple(name for w in writes for name in real_fields(w.field))

    def nominal(self) -> jax.Array:
        """Return the unknowns of the first guess, (size,)."""
        starts = [p.map.start for p in self._parts.values() if not p.form.frozen]
        return jnp.asarray(np.concatenate([np.zeros(0), *starts]), self._dtype)

    def draw(self, key: jax.Array, starts: int) -> jax.Array:
        """Return the nominal unknowns, then random ones, (starts, size)."""

        def one(key):
            keys = jax.random.split(key, max(len(self), 1))
            drawn = [
                p.map.draw(k)
                for p, k in zip(self.values(), keys, strict=False)
                if not p.form.frozen
            ]
            return jnp.concatenate([jnp.zeros(0), *drawn]).astype(self._dtype)

        others = jax.vmap(one)(jax.random.split(key, max(starts - 1, 1)))[: starts - 1]
        return jnp.concatenate([self.nominal()[None], others])

    def numbers(self, theta: jax.Array) -> jax.Array:
        """Return the values in physical units, in the order of `names`, (size,)."""
        values = [p.value(u) for p, u in self._split(theta) if not p.form.frozen]
        return jnp.concatenate([theta[:0], *values])

    @functools.cached_property
    def _numbers_program(self) -> Callable[[jax.Array], jax.Array]:
        return quick_jit(self.numbers)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: a program is compiled again when it is needed."""
        return {n: v for n, v in vars(self).items() if n != "_numbers_program"}

    def host_numbers(self, theta: Any) -> np.ndarray:
        """Return `numbers` on the host, (size,) float64."""
        return np.asarray(self._numbers_program(theta), np.float64)

    def by_name(self, theta: jax.Array) -> dict[str, float]:
        """Return the values in physical units by name."""
        return dict(zip(self.names, map(float, self.host_numbers(theta)), strict=True))

    def vector(self, values: Mapping[str, Any]) -> jax.Array:
        """Return the unknowns of given values by name; other parameters stay at the first guess.

        Args:
          values: numbers (size,) of a parameter, or one for all of them. An inertia takes the ten
            coordinates of `from_body`.

        Raises:
          ValueError: a parameter is not known or frozen, or a value is out of its bounds.
        """
        theta = np.asarray(self.nominal(), np.float64).copy()
        for name, value in values.items():
            if name not in self or self[name].form.frozen:
                raise ValueError(f"{name}: is not among the parameters that are searched")
            p, i = self[name], list(self).index(name)
            wanted = np.broadcast_to(np.asarray(value, np.float64), (p.size,))
            if p.form.kind == "inertia":
                wanted = (wanted - p.nominal) / _lengths(p)
            with np.errstate(invalid="ignore", divide="ignore"):
                theta[self._ends[i] : self._ends[i + 1]] = p.map.unknown(wanted)
            if not np.isfinite(theta).all():
                raise ValueError(f"{name}: {value} is not within the bounds of {p.form}")
        return jnp.asarray(theta, self._dtype)

    def slope(self, theta: jax.Array) -> jax.Array:
        """Return the derivatives of numbers by their unknowns; 1 for those of an inertia, (size,).

        Forces are linear in masses, gains, damping and friction, but not in their logarithms or in
        bounded unknowns, so steps of a search are better chosen for the numbers.
        """
        parts = [_slope(p, u) for p, u in self._split(theta) if not p.form.frozen]
        return jnp.concatenate([theta[:0], *parts])

    def apply_change(self, theta: jax.Array, change: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the unknowns after a change of the numbers, in the units of `slope`.

        Args:
          theta: the unknowns, (size,).
          change: change of the numbers, (size,).

        Returns:
          The unknowns (size,), and the change that they amount to, as bounds may limit it.
        """
        free = [(p, u) for p, u in self._split(theta) if not p.form.frozen]
        sizes = np.cumsum([p.size for p, _ in free])[:-1]
        parts = jnp.split(change, sizes) if free else []
        moved = [_apply_change(p, u, c) for (p, u), c in zip(free, parts, strict=True)]
        ends, changes = zip(*moved, strict=True) if moved else ((), ())
        return jnp.concatenate([theta[:0], *ends]), jnp.concatenate([theta[:0], *changes])

    def prior(self, theta: jax.Array) -> jax.Array:
        """Return the weighted rows of all priors, (rows,)."""
        rows = [p.map.prior(u) for p, u in self._split(theta) if not p.form.frozen]
        return jnp.concatenate([theta[:0], *rows])

    def signals(self, theta: jax.Array) -> dict[tuple[str, str], jax.Array]:
        """Return offsets, gains and delays by signal and name: {("sensor:gyro", "offset"): ()}."""
        found: dict[tuple[str, str], jax.Array] = {}
        for p, u in self._split(theta):
            if p.target.kind == "signal":
                found |= zip(p.target.signals, p.numbers(u), strict=True)
        return found

    def model(self, m: Model, theta: jax.Array) -> Model:
        """Return the model with these unknowns; recompute derived constants where they change.

        Fields that were compiled out, as they were zero, are traced in it.

        Args:
          m: the model that the parameters belong to.
          theta: the unknowns, (size,).
        """
        # sizes and densities first: other parameters of their bodies then override the result, or
        # multiply it
        shapes: dict[str, jax.Array] = {}
        parts = list(self._split(theta))
        for p, u in parts:
            shapes |= _written_fields(m, shapes, p, u) if p.is_shape else {}
        if shapes:
            m = with_reshaped_geoms(
                m, shapes, np.concatenate([p.items for p, _ in parts if p.is_shape])
            )
        changed: dict[str, jax.Array] = self._formulas.initial(self._dtype)
        for p, u in parts:
            changed |= {} if p.is_shape else _written_fields(m, changed, p, u)
        m = live_model(m, changed)
        # then what follows by formulas of actuators, from the mass matrix among others
        changed = self._formulas.evaluate(m, changed)
        options = {n.partition(".")[2]: v for n, v in changed.items() if n.startswith("opt.")}
        fields = {n: v for n, v in changed.items() if not n.startswith("opt.")}
        m = m.replace(opt=m.opt.replace(**options), **fields) if options else m.replace(**fields)
        follows = shapes or not all(n.endswith(INDEPENDENT) for n in fields)
        return set_const(m) if follows else m

    def _split(self, theta: jax.Array) -> Iterator[tuple[Parameter, jax.Array]]:
        """Yield each parameter with its unknowns."""
        for p, start, end in zip(self.values(), self._ends, self._ends[1:], strict=False):
            frozen = p.form.frozen
            yield p, jnp.asarray(p.map.start, theta.dtype) if frozen else theta[start:end]


def parameters(m: Model, forms: Mapping[str, Form]) -> Parameters:
    """Return parameters of a model, by names and forms.

    Args:
      m: the model.
      forms: form of each parameter by its name (syntax: `identify/targets/select.py`).

    Raises:
      ValueError: a name selects nothing, a number needs a slot that the model does not have (with
        the remedy), two parameters set the same number, or the form does not allow a first guess.

    Example:
      >>> from jaxsim.identify import linear, log, parameters, scale
      >>> P = parameters(m, {"body:arm/mass": scale(0.5, 2), "joint:hinge/armature": log(0.01, 1)})
      >>> P.names
      ('body:arm/mass', 'joint:hinge/armature')
      >>> round(float(P.model(m, P.nominal()).dof_armature[0]), 3)
      0.1
    """
    if not isinstance(m, Model):
        raise ValueError(f"parameters: m: expected a Model, got {type(m).__name__}")
    parts: dict[str, Parameter] = {}
    taken: dict[tuple, tuple[str, str]] = {}
    for name, form in forms.items():
        if not isinstance(form, Form):
            raise ValueError(f"{name}: expected linear, log, scale or pseudo_inertia, got {form!r}")
        parts[name] = make_parameter(m, name, form)
        for *place, group in _set_entries(parts[name].target):
            other, theirs = taken.get(tuple(place), (name, ""))
            if other != name and not (group and group == theirs):
                raise ValueError(f"{name}: sets the same number as {other!r}")
            taken[tuple(place)] = (name, group)
    return Parameters(m, parts, actuator_formulas(m, map(_named_entries, parts.values())))


def make_parameter(m: Model, name: str, form: Form) -> Parameter:
    """Return one parameter of a model."""
    if form.kind == "inertia":
        target = select_target(m, name, inertia=True)
        (body,) = target.writes[0].addresses
        fields = (m.body_mass, m.body_ipos, m.body_iquat, m.body_inertia)
        try:
            nominal = inertia.from_body(*(np.asarray(a)[body] for a in fields))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        return Parameter(name, target, form, make_map(name, form, np.zeros(10)), nominal)
    target = select_target(m, name)
    nominal = target.nominal
    if form.share:
        nominal = np.ones(1) if form.kind == "scale" else nominal[:1]
    return Parameter(name, target, form, make_map(name, form, nominal), nominal)


def _named_entries(p: Parameter) -> tuple:
    """Return kind and field of a parameter's name, and the fields and addresses that it sets."""
    found = TARGET_PATTERN.fullmatch(p.name)
    kind, field = (found["kind"], found["field"]) if found else (None, None)
    return kind, field, [(w.field, w.addresses) for w in p.target.writes]


def _slope(p: Parameter, u: jax.Array) -> jax.Array:
    return jnp.ones_like(u) if p.form.kind == "inertia" else p.map.slope(u)


def _apply_change(p: Parameter, u: jax.Array, change: jax.Array) -> tuple[jax.Array, jax.Array]:
    return (u + change, change) if p.form.kind == "inertia" else p.map.apply_change(u, change)


def _lengths(p: Parameter) -> np.ndarray:
    """Return the units of the unknowns of an inertia: lengths are in radii of gyration."""
    return np.where(np.arange(10) < 4, 1.0, np.exp(p.nominal[1:4].mean()))


def _set_entries(target: ParameterTarget) -> Iterator[tuple]:
    """Yield keys of the numbers that a parameter sets, to detect two that set the same.

    The last item of each is a group, within which several parameters may set a number.
    """
    yield from ((*signal, "") for signal in target.signals)
    for write in target.writes:
        for place in write.addresses:
            if write.field == "inertia":
                ends = (("mass", 1), ("ipos", 3), ("iquat", 4), ("inertia", 3))
                yield from (
                    (f"body_{n}", int(place) * k + i, "") for n, k in ends for i in range(k)
                )
            elif target.kind == "rotation":
                yield from ((write.field, int(place) * 4 + i, "") for i in range(4))
            else:
                yield from entries_set(write.field, int(place))


def _written_fields(m: Model, changed: Mapping[str, jax.Array], p: Parameter, u: jax.Array) -> dict:
    """Return the fields that a parameter sets."""

    def now(field: str) -> jax.Array:
        return changed[field] if field in changed else jnp.asarray(current_value(m, field))

    if p.target.kind == "signal":
        return {}
    (first, *_) = p.target.writes
    if p.form.kind == "inertia":
        names = ("body_mass", "body_ipos", "body_iquat", "body_inertia")
        body = int(first.addresses[0])
        values = inertia.to_body(p.coordinates(u))
        return {n: now(n).at[body].set(v) for n, v in zip(names, values, strict=True)}
    if p.target.kind == "rotation":
        item, quat = int(first.addresses[0]), now(first.field)
        frame_rotation = Quat.from_rotation_vector(Vec(*p.numbers(u)))
        return {
            first.field: quat.at[item].set(jnp.stack((Quat(*quat[item]) * frame_rotation).parts))
        }
    numbers, found = p.numbers(u), {}
    for write in p.target.writes:
        array = now(write.field)
        flat = array.reshape(-1)
        if p.form.kind == "scale" and p.form.share and write.field in OF_BODY:
            # a shared factor multiplies what follows from sizes and densities
            flat = flat.at[write.addresses].set(p.value(u) * flat[write.addresses])
        else:
            own = numbers if write.owner is None else numbers[write.owner]
            flat = flat.at[write.addresses].set(jnp.asarray(write.sign, u.dtype) * own)
        found[write.field] = flat.reshape(array.shape)
    return found
