"""The random change of a model that ranges specify."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.envs.ranges.bounds import check_range
from jaxsim.envs.ranges.draw import (
    Range,
    current_values,
    read_form,
    rotate_orientations,
    sample_leaves,
)
from jaxsim.envs.ranges.parameter import (
    Numbers,
    RangedParameter,
    find_parameter,
    mass_of,
    numbers_of,
    objects_of,
)
from jaxsim.identify import inertia
from jaxsim.identify.forms import Form
from jaxsim.identify.targets import actuators
from jaxsim.identify.targets.actuator_formulas import (
    ActuatorFormulas,
    actuator_formulas,
    entries_set,
)
from jaxsim.identify.targets.select import TARGET_PATTERN
from jaxsim.io.assemble import live_model
from jaxsim.model.model import Model

Ranges = Mapping[str, Any] | Iterable[tuple[str, Any]]
ChangeFunction = Callable[[Model, jax.Array], dict[str, Any]]


def change_of(m: Model, ranges: Ranges) -> "RandomChange":
    """Return the random change of a model that ranges specify.

    Args:
      m: the model.
      ranges: a pair (low, high), `factor`, `shift`, or a Form of identification, by name; or a
        sequence of names with ranges, in which a name may occur twice: a factor, then an offset.

    Returns:
      The function from a model and a key to new leaves by name, for `randomize`.

    Raises:
      ValueError: a name selects nothing, a range is invalid, or it allows unphysical values.
    """
    draws: list[_Draw | _DrawInertia] = []
    taken: dict[tuple[str, int], tuple[str, str, str]] = {}
    named = []
    for name, range_ in ranges.items() if isinstance(ranges, Mapping) else ranges:
        draw = _draw(m, name, range_)
        slots = [e for n in draw.sets for i in n.adr for e in entries_set(n.field, int(i))]
        for field, adr, group in slots:
            other, theirs, target = taken.get((field, adr), (None, "", ""))
            # a factor or an offset may follow on a number, but not on one that a formula replaces
            may_follow = not draw.replaces and target == _target_of(draw)
            if other is not None and not may_follow and not (group and group == theirs):
                raise ValueError(f"{name}: sets the same number as {other!r}; leave one out")
        taken |= {(f, a): (name, group, _target_of(draw)) for f, a, group in slots}
        draws.append(draw)
        found = TARGET_PATTERN.fullmatch(name)
        kind, of = (found["kind"], found["field"]) if found else (None, None)
        named.append((kind, of, [(n.field, n.adr) for n in draw.sets]))
    return RandomChange(tuple(draws), actuator_formulas(m, named))


def _target_of(draw: "_Draw | _DrawInertia") -> str:
    """Return the fields of formulas of actuators that a draw sets, "" if there are none."""
    return " ".join(n.field for n in draw.sets if n.field in actuators.FORMULA_FIELDS)


@dataclass(frozen=True, eq=False)
class RandomChange:
    """A random change of a model by ranges: a function of the model and a key."""

    draws: tuple[Any, ...]
    formulas: ActuatorFormulas

    def __call__(self, m: Model, key: jax.Array) -> dict[str, Any]:
        """Return the new leaves by name."""
        changed: dict[str, Any] = self.formulas.initial(m.qpos0.dtype)
        keys = jax.random.split(key, max(len(self.draws), 1))
        for draw, own in zip(self.draws, keys, strict=False):
            changed |= draw.leaves(m, changed, own)
        return self.formulas.evaluate(live_model(m, changed), changed)


@dataclass(frozen=True, eq=False)
class _Draw:
    """A parameter, and the form in which it is drawn."""

    p: RangedParameter
    form: Form | Range

    @property
    def sets(self) -> tuple[Numbers, ...]:
        """Return the numbers that change."""
        return (*self.p.own, *self.p.followers)

    @property
    def replaces(self) -> bool:
        """Return whether the number of the model is replaced, not multiplied or added to."""
        return self.form.kind in ("linear", "log")

    def leaves(self, m: Model, changed: Mapping[str, Any], key: jax.Array) -> dict[str, Any]:
        """Return new leaves from a model, the leaves changed so far, and a key."""
        drawn = rotate_orientations if self.p.turned else sample_leaves
        return drawn(m, changed, key, self.p, self.form)


def _draw(m: Model, name: str, form: Any) -> "_Draw | _DrawInertia":
    form = read_form(name, form)
    if form.kind == "inertia":
        return _draw_inertia(m, name, form)
    p = find_parameter(m, name)
    return _Draw(p, check_range(m, p, form))


_BODY_FIELDS = {
    "body_mass": 1,
    "body_ipos": 3,
    "body_iquat": 4,
    "body_inertia": 3,
}  # numbers of each


@dataclass(frozen=True, eq=False)
class _DrawInertia:
    """All ten inertial parameters of bodies, normal in coordinates in which every body is physical.

    Attributes:
      ids: the bodies, (n,).
      nominal: their coordinates, (n, 10).
      sd: standard deviation of each coordinate, (n, 10).
    """

    ids: np.ndarray
    nominal: np.ndarray
    sd: np.ndarray
    replaces: bool = True

    @property
    def sets(self) -> tuple[Numbers, ...]:
        """Return the numbers that change."""
        return tuple(numbers_of(n, w, self.ids, range(w)) for n, w in _BODY_FIELDS.items())

    def leaves(self, m: Model, changed: Mapping[str, Any], key: jax.Array) -> dict[str, Any]:
        """Return new leaves from a model, the leaves changed so far, and a key."""
        dtype = m.body_mass.dtype
        noise = jnp.asarray(self.sd, dtype) * jax.random.normal(key, self.nominal.shape, dtype)
        new = jax.vmap(inertia.to_body)(jnp.asarray(self.nominal, dtype) + noise)
        values = zip(_BODY_FIELDS, new, strict=True)
        return {
            **changed,
            **{n: current_values(m, changed, n).at[self.ids].set(v) for n, v in values},
        }


def _draw_inertia(m: Model, name: str, form: Form) -> _DrawInertia:
    found = TARGET_PATTERN.fullmatch(name)
    if found is None or (found["kind"], found["field"]) != ("body", "inertia"):
        raise ValueError(f"{name}: pseudo_inertia is for 'body:name/inertia'")
    try:
        bodies = objects_of(m, "body", found["name"])
        ids = mass_of(m, name, bodies, exact=False).own[0].adr
        if not len(ids):
            raise ValueError("no such body has a mass")
        numbers = zip(*(np.asarray(getattr(m, n))[ids] for n in _BODY_FIELDS), strict=True)
        nominal = np.stack([inertia.from_body(*x) for x in numbers])
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    # the standard deviation of lengths is in radii of gyration, as in identification
    unit = np.where(np.arange(10) < 4, 1.0, np.exp(nominal[:, 1:4].mean(axis=1))[:, None])
    return _DrawInertia(ids, nominal, float(form.sd or 0) * unit)
