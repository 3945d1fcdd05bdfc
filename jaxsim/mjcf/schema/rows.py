"""How an MJCF element and its attributes are declared: `Row`, `Attr`, and words to write them with.

The tables in this package are made of these words, one line an attribute:

    real("timestep", 0.002, "s", "length of one step"),
    real("size", (0, 0, 0), "m", "half-sizes, or radius and half-length", n=(1, 3)),
    keyword("cone", "pyramidal elliptic", "pyramidal", "shape of the friction cone"),
    ref("site", "site", "site that carries the sensor", required=True),

Units are written in SI although a model may use any consistent set. `Q` stands for the coordinate
of a joint, tendon or actuator (rad or m), `F` for its force (N·m or N), `angle` for what
`<compiler angle>` says, `deg` for degrees, `?` for a dimension that depends on other attributes.
Commas separate the units of several numbers: `s, 1`. A unit without commas is that of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

Value = int | float | str | np.ndarray

# As many numbers as are needed; the upper bound is None.
ANY = (0, None)


@dataclass(frozen=True, eq=False)
class Attr:
    """One attribute of an element.

    Attributes:
      name: as it is written in the file.
      type: `real`, `int`, `keyword`, `keywords` (several), `string`, `file`,
        `name` (defines an object), `ref` (names an object) or `refs` (names several).
      count: fewest and most numbers that may be given; most is None where there is no bound.
      default: the value when nobody gives one, of the type that reading yields, or None.
      unit: see above; empty for what has none.
      keywords: the words allowed.
      alone: for `keywords`, words that may be written instead of those, each by itself.
      ordered: for `keywords`, several must be written in the order of the table.
      kind: the kind of object that a `name` defines or a `ref` points to, such as `"body"`;
        `"@objtype"` where the attribute `objtype` says the kind.
      pattern: a regular expression that a string must match in full, or empty.
      form: what `pattern` asks for, in words.
      required: it must be written.
      doc: what it means.
      no_effect: why nothing in the engine reads it; empty if something does.
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
    """What the attributes of an element must satisfy together.

    `at_most_one`: no two of the alternatives may be begun. `one_of`: at least one alternative is
    complete. `together`: all or none. An alternative is a group of attributes. An attribute without
    text counts as given, except those in `by_value`.
    """

    kind: str
    alternatives: tuple[tuple[str, ...], ...]
    by_value: frozenset[str] = frozenset()

    @cached_property
    def names(self) -> frozenset[str]:
        """Return all attributes that the rule speaks of."""
        return frozenset(name for group in self.alternatives for name in group)


@dataclass(eq=False)
class Row:
    """One element: its attributes, what may stand inside it, how often it may stand in its parent.

    `occurs` is `"!"` exactly once, `"?"` at most once, `"*"` any number, `"R"` any number and
    inside itself. `meta` marks elements that are expanded away, beyond the 171 of the format.
    `instead` marks an element that is refused, and says what to write in its place. `loose` marks
    an element whose unknown attributes are passed over with a message in the log.
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
        """Return the row of a child element, or None if no such element may stand here."""
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
    """Declare an element; `attrs` may hold groups of attributes, at any depth."""
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


def derived(source: Row, tag: str, *, without: str = "", only: str = "") -> Row:
    """Return the `<default>` entry of an element: a part of its attributes, none of them
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
    """Return a real number; several if the default is a tuple or `n` says so."""
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
    """Return a whole number; several if the default is a tuple or `n` says so."""
    count, default = _numbers(default, n, np.int64)
    return Attr(name, "int", count, default, required=required, doc=doc, no_effect=no_effect)


def keyword(name, words, default=None, doc="", *, required=False, no_effect="") -> Attr:
    """Return one of the given words."""
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
    """Return some of the given words, each once, in their order; or one of those that stand
    alone."""
    attr = keyword(name, words, default, doc)
    return replace(attr, type="keywords", alone=tuple(alone.split()), ordered=ordered)


def boolean(name, default, doc, *, no_effect="") -> Attr:
    """Return `false` or `true`."""
    return keyword(name, "false true", default, doc, no_effect=no_effect)


def tristate(name, default, doc, *, no_effect="") -> Attr:
    """Return `false`, `true`, or `auto`: worked out from other attributes."""
    return keyword(name, "false true auto", default, doc, no_effect=no_effect)


def text(name, default, doc, *, required=False, pattern="", form="", no_effect="") -> Attr:
    """Free text, or text of a given pattern."""
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
    """Return the name of a file."""
    return Attr(name, "file", required=required, doc=doc, no_effect=no_effect)


def name_of(kind, *, required=False) -> Attr:
    """Return the attribute `name` of an element that defines an object of this kind."""
    return Attr("name", "name", kind=kind, required=required, doc=f"name of the {kind}")


def ref(name, kind, doc, *, required=False, no_effect="") -> Attr:
    """Return the name of an object of this kind."""
    return Attr(name, "ref", kind=kind, required=required, doc=doc, no_effect=no_effect)


def refs(name, kind, doc, *, required=False, no_effect="") -> Attr:
    """Return the names of objects of this kind, separated by spaces."""
    return Attr(name, "refs", kind=kind, required=required, doc=doc, no_effect=no_effect)


def at_most_one(*alternatives: str, by_value: str = "") -> Rule:
    """Only one of the alternatives may be used; `"a b"` is an alternative of two attributes."""
    groups = tuple(tuple(group.split()) for group in alternatives)
    return Rule("at_most_one", groups, frozenset(by_value.split()))


def one_of(*alternatives: str) -> Rule:
    """At least one of the alternatives must be given in full."""
    return Rule("one_of", tuple(tuple(group.split()) for group in alternatives))


def together(*names: str) -> Rule:
    """Return all of these attributes, or none."""
    return Rule("together", tuple((name,) for name in names))


def _flat(attrs: Iterable[Attrs]) -> Iterable[Attr]:
    for item in attrs:
        if isinstance(item, Attr):
            yield item
        else:
            yield from _flat(item)


def _numbers(default, n, dtype) -> tuple[tuple[int, int | None], Value | None]:
    """Return the count, as a pair, and the default in the type that reading yields."""
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
