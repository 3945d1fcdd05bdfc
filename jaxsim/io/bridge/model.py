"""Convert a compiled `mujoco.MjModel` to a Model with the structure that loading would give."""

import re
from typing import Any

import numpy as np

from jaxsim.compile.reference.constants import Constants
from jaxsim.compile.reference.statistics import statistics
from jaxsim.extend.registry import engine_plugin
from jaxsim.io.assemble import assemble, freed_model
from jaxsim.io.bridge.mjx_arguments import check_choices, move_to_device
from jaxsim.io.smooth_contacts import set_straight_through
from jaxsim.model.derived import STATISTICS
from jaxsim.model.model import Model
from jaxsim.model.option import Option, Statistic
from jaxsim.model.serialization.name_text import NAME_TABLES
from jaxsim.model.switch.switches import Free
from jaxsim.physics.public.arguments import check_capacity, check_smooth

# Fields of a Model that are array leaves.
_LEAF_FIELDS = frozenset(n for n, f in Model.fields.items() if not f.static and f.nested is None)

# Integer tables that this compiler does not make either: bounding volumes, buffers, text addresses,
# layouts of the C library's sparse matrices.
_IGNORED_FIELD_PATTERN = re.compile(
    r"bvh_.*|name_.*adr|names_map|.*_(pathadr|bvhadr|bvhnum)"
    r"|n(buffer|narena|names|names_map|paths|signature|bvh.*|efm.*|J(?!fe|ten).*)"
    r"|signature|narena|njmax|nconmax|_.*|[BD]_.*|map[DM]2[DM]|efm.*"
)


def put_model(
    model: Any,
    device: Any = None,
    *,
    impl: Any = None,
    contacts: int | None = None,
    pairs: int | None = None,
    free: Free = (),
    smooth: float | None = None,
    straight_through: bool = False,
) -> Model:
    """Return the Model of a compiled MuJoCo model.

    Args:
      model: a `mujoco.MjModel`.
      device: device of its arrays; None: JAX's default.
      impl: "jax", accepted for MJX programs: there is one implementation.
      contacts: contact capacity of a world; None: chosen from the candidate pairs.
      pairs: capacity of near pairs in each group, as for `load_model`.
      free: real fields that may change from zero, as for `load_model`.
      smooth: smoothing length of contacts [m], as for `load_model`.
      straight_through: contacts are smooth in derivatives alone, as for `load_model`.

    Returns:
      The same model, with every field this package knows.

    Warns:
      UnsupportedWarning: the physics cannot run this model; `make_data` will raise.
    """
    check_choices("put_model", impl, {})
    check_capacity(contacts, pairs)
    smooth = check_smooth(smooth)
    fields: dict[str, Any] = {}
    for name in dir(model):
        value = getattr(model, name)
        if name in _LEAF_FIELDS or (
            _is_integer_table(value) and not _IGNORED_FIELD_PATTERN.fullmatch(name)
        ):
            fields[name] = value
    fields |= {"text_data": model.text_data, "stat_given": _statistics_given(fields, model.stat)}
    m = assemble(
        fields,
        {name: getattr(model.opt, name) for name in Option.fields},
        {name: getattr(model.stat, name) for name in Statistic.fields},
        {kind: _names(model, table) for kind, table in NAME_TABLES.items()},
        contacts=contacts,
        pairs=pairs,
        smooth=smooth,
        plugins=[engine_plugin(number) for number in model.plugin],
    )
    return move_to_device(set_straight_through(freed_model(m, free), straight_through), device)


def _names(model: Any, table: str) -> tuple[str, ...]:
    text = model.names
    addresses = getattr(model, f"name_{table}adr")
    return tuple(text[a : text.index(b"\0", a)].decode() for a in addresses)


def _statistics_given(fields: dict[str, Any], stat: Any) -> np.ndarray:
    """Return which of `STATISTICS` differ from the computed ones, which means that the file set
    them."""
    measured = statistics(Constants(fields))
    same = (np.allclose(getattr(stat, n), measured[n], rtol=1e-6, atol=1e-9) for n in STATISTICS)
    return ~np.fromiter(same, bool)


def _is_integer_table(value: Any) -> bool:
    """Return whether a value is a count, or a table of integers or flags."""
    table = isinstance(value, np.ndarray) and value.dtype.kind in "iub"
    return table or isinstance(value, int | np.integer)
