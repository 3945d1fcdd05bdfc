"""Declarations of MJCF elements and attributes: `Row`, `Attr`, and functions that build them.

The tables of this package consist of such declarations, one line per attribute:

    real("timestep", 0.002, "s", "length of one step"),
    real("size", (0, 0, 0), "m", "half-sizes, or radius and half-length", n=(1, 3)),
    keyword("cone", "pyramidal elliptic", "pyramidal", "shape of the friction cone"),
    ref("site", "site", "site that carries the sensor", required=True),

Units are written in SI although a model may use any consistent set. `Q` is the unit of the
coordinate of a joint, tendon or actuator (rad or m), `F` that of its force (N·m or N), `angle` the
unit set by `<compiler angle>`, `deg` degrees, `?` a dimension that depends on other attributes.
Commas separate the units of several numbers: `s, 1`. A unit without commas applies to each of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

Value = int | float | str | np.ndarray

# Any number of values; None: no upper bound.
ANY_COUNT = (0, None)


@dataclass(frozen=True, eq=False)
class Attr:
    """One attribute of an element.

    Attributes:
      name: as it is written in the file.
      type: `real`, `int`, `keyword`, `keywords` (several), `string`, `file`,
        `name` (defines an object), `ref` (names an object) or `refs` (names several).
      count: smallest and largest number of values; the latter is None if there is no bound.
      default: the value of an omitted attribute, of the type that reading yields, or None.
      unit: see the module; empty for values without a unit.
      keywords: the words allowed.
      alone: for `keywords`, words that may be written instead of those, each by itself.
      ordered: for `keywords`, several must be written in the order of the table.
      kind: the kind of object that a `name` defines or a `ref` points to, such as `"body"`;
        `"@objtype"` if the attribute `objtype` gives the kind.
      pattern: a regular expression that a string must match in full, or empty.
      form: the requirement of `pattern` in words.
      required: it must be written.
      doc: its meaning.
      no_effect: why the physics does not depend on it; empty if it does.
    """

    name: str
    type: str
    count: tuple[int, int | None] = (1, 1)
    default: Value | None = None
    unit: str = ""
    keywords: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    ordered: bool = True
    kind: str = ""
    pattern: str = ""
    form: str = ""
    required: bool = False
    doc: str = ""
    no_effect: str = ""

    @property
    def is_number(self) -> bool:
        """Return whether the value is one or more numbers."""
        return self.type in ("real", "int")

    @property
    def is_array(self) -> bool:
        """Return whether the value is an array of numbers, rather than a single number or a
        string."""
        return self.is_number and self.count[1] != 1

    @property
    def variable_length(self) -> bool:
        """Return whether any number of values may be given."""
        return self.is_number and self.count[1] is None


@dataclass(frozen=True)
class Rule:
    """A constraint on the combination of attributes of an element.

    `at_most_one`: attributes of at most one alternative may be given. `one_of`: at least one
    alternative is complete. `together`: all or none. An alternative is a group of attributes. An
    attribute without text counts as given, except those in `by_value`.
    """

    kind: str
    alternatives: tuple[tuple[str, ...], ...]
    by_value: frozenset[str] = frozenset()

    @cached_property
    def names(self) -> frozenset[str]:
        """Return all attributes that the rule mentions."""
        return frozenset(name for group in self.alternatives for name in group)


@dataclass(eq=False)
class Row:
    """One element: its attributes, its children, and how often it may occur in its parent.

    `occurs` is `"!"` exactly once, `"?"` at most once, `"*"` any number, `"R"` any number and
    recursively. `meta` marks elements that are expanded by the compiler, beyond the 171 of the
    format. `instead` marks an element that is rejected, and names its replacement. `loose` marks an
    element whose unknown attributes are skipped with a message in the log.
    """

    tag: str
    occurs: str
    doc: str
    attrs: dict[str, Attr] = field(default_factory=dict)
    children: dict[str, Row] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    meta: bool = False
    instead: str = ""
    loose: bool = False

    def attribute(self, name: str) -> Attr | None:
        """Return the attribute with this name, or None."""
        return self.attrs.get(name)

    def child(self, tag: str) -> Row | None:
        """Return the row of a child element, or None if it is not allowed here."""
        return self.children.get(tag)

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Return the names of the attributes that must be written."""
        return tuple(a.name for a in self.attrs.values() if a.required)


Attrs = Attr | Iterable["Attrs"]


def row(
    tag: str,
    occurs: str,
    doc: str,
    *attrs: Attrs,
    children: Iterable[Row] = (),
    rules: Iterable[Rule] = (),
    meta: bool = False,
    instead: str = "",
    loose: bool = False,
) -> Row:
    """Return the declaration of an element; `attrs` may hold groups of attributes, at any depth."""
    return Row(
        tag=tag,
        occurs=occurs,
        doc=doc,
        attrs={attr.name: attr for attr in _flat(attrs)},
        children={child.tag: child for child in children},
        rules=tuple(rules),
        meta=meta,
        instead=instead,
        loose=loose,
    )


def default_row(source: Row, tag: str, *, without: str = "", only: str = "") -> Row:
    """Return the `<default>` entry of an element: a subset of its attributes, none of them
    required."""
    dropped, kept = set(without.split()), set(only.split())
    missing = (dropped | kept) - set(source.attrs)
    assert not missing, f"<{source.tag}> has no {sorted(missing)}"
    attrs = (
        replace(attr, required=False)
        for attr in source.attrs.values()
        if attr.name not in dropped and (not kept or attr.name in kept)
    )
    entry = row(tag, "?", f"Defaults of <{tag}> for the elements of a class.", *attrs)
    entry.rules = tuple(rule for rule in source.rules if rule.names <= set(entry.attrs))
    return entry


def real(name, default=None, unit="", doc="", *, n=None, required=False, no_effect="") -> Attr:
    """Return the declaration of a real attribute; of several numbers if the default is a tuple or
    `n` is given."""
    count, default = _numbers(default, n, np.float64)
    return Attr(
        name,
        "real",
        count,
        default,
        unit=unit,
        required=required,
        doc=doc,
        no_effect=no_effect,
    )


def integer(name, default=None, doc="", *, n=None, required=False, no_effect="") -> Attr:
    """Return the declaration of an integer attribute; of several numbers if the default is a tuple
    or `n` is given."""
    count, default = _numbers(default, n, np.int64)
    return Attr(name, "int", count, default, required=required, doc=doc, no_effect=no_effect)


def keyword(name, words, default=None, doc="", *, required=False, no_effect="") -> Attr:
    """Return the declaration of an attribute that takes one of the given words."""
    return Attr(
        name,
        "keyword",
        default=default,
        keywords=tuple(words.split()),
        required=required,
        doc=doc,
        no_effect=no_effect,
    )


def keywords(name, words, default=None, doc="", *, alone="", ordered=True) -> Attr:
    """Return the declaration of an attribute that takes several of the given words, each once and
    in their order, or one of `alone`."""
    attr = keyword(name, words, default, doc)
    return replace(attr, type="keywords", alone=tuple(alone.split()), ordered=ordered)


def boolean(name, default, doc, *, no_effect="") -> Attr:
    """Return the declaration of an attribute that is `false` or `true`."""
    return keyword(name, "false true", default, doc, no_effect=no_effect)


def tristate(name, default, doc, *, no_effect="") -> Attr:
    """Return the declaration of an attribute that is `false`, `true`, or `auto`: inferred from
    other attributes."""
    return keyword(name, "false true auto", default, doc, no_effect=no_effect)


def text(name, default, doc, *, required=False, pattern="", form="", no_effect="") -> Attr:
    """Return the declaration of a text attribute, free or matching a pattern."""
    return Attr(
        name,
        "string",
        default=default,
        pattern=pattern,
        form=form,
        required=required,
        doc=doc,
        no_effect=no_effect,
    )


def file(name, doc, *, required=False, no_effect="") -> Attr:
    """Return the declaration of a file name."""
    return Attr(name, "file", required=required, doc=doc, no_effect=no_effect)


def name_attr(kind, *, required=False) -> Attr:
    """Return the declaration of the attribute `name` of an element that defines an object of this
    kind."""
    return Attr("name", "name", kind=kind, required=required, doc=f"name of the {kind}")


def ref(name, kind, doc, *, required=False, no_effect="") -> Attr:
    """Return the declaration of an attribute that names an object of this kind."""
    return Attr(name, "ref", kind=kind, required=required, doc=doc, no_effect=no_effect)


def refs(name, kind, doc, *, required=False, no_effect="") -> Attr:
    """Return the declaration of an attribute that names objects of this kind, separated by
    spaces."""
    return Attr(name, "refs", kind=kind, required=required, doc=doc, no_effect=no_effect)


def at_most_one(*alternatives: str, by_value: str = "") -> Rule:
    """Return a rule: at most one of the alternatives; `"a b"` is an alternative of two
    attributes."""
    groups = tuple(tuple(group.split()) for group in alternatives)
    return Rule("at_most_one", groups, frozenset(by_value.split()))


def one_of(*alternatives: str) -> Rule:
    """Return a rule: at least one of the alternatives must be complete."""
    return Rule("one_of", tuple(tuple(group.split()) for group in alternatives))


def together(*names: str) -> Rule:
    """Return a rule: all of these attributes, or none."""
    return Rule("together", tuple((name,) for name in names))


def _flat(attrs: Iterable[Attrs]) -> Iterable[Attr]:
    for item in attrs:
        if isinstance(item, Attr):
            yield item
        else:
            yield from _flat(item)


def _numbers(default, n, dtype) -> tuple[tuple[int, int | None], Value | None]:
    """Return the allowed number of values, as a pair, and the default in the type that reading
    yields."""
    if n is None:
        n = len(default) if isinstance(default, tuple) else 1
    count = (n, n) if isinstance(n, int) else n
    if default is None:
        return count, None
    if count == (1, 1):
        return count, dtype(default).item()
    array = np.atleast_1d(np.array(default, dtype))
    array.setflags(write=False)
    return count, array
