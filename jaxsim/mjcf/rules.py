"""Rules between the attributes of one element: exclusions, requirements and alternatives.

They are checked on the text of a file, and on elements that were made or changed in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set

from jaxsim.mjcf.schema import Row, Rule


def broken_rules(row: Row, written: Set[str], empty: Set[str] = frozenset()) -> Iterator[str]:
    """Yield a message for each rule that an element with these attributes violates.

    Args:
      row: the element's row.
      written: names of its attributes.
      empty: those of them that have no text.
    """
    for rule in row.rules:
        broken = _RULES[rule.kind](rule, written - (empty & rule.by_value))
        if broken:
            yield broken


def _check_at_most_one(rule: Rule, written: Set[str]) -> str | None:
    if len(rule.names & written) < 2:
        return None
    begun = [group for group in rule.alternatives if any(name in written for name in group)]
    if len(begun) < 2:
        return None
    named = [name for group in begun for name in group if name in written]
    return f"{', '.join(named)} exclude each other; keep one" + _alternatives(rule)


def _check_one_of(rule: Rule, written: Set[str]) -> str | None:
    if any(all(name in written for name in group) for group in rule.alternatives):
        return None
    return "give " + ", or ".join(" and ".join(group) for group in rule.alternatives)


def _check_together(rule: Rule, written: Set[str]) -> str | None:
    given = [group[0] for group in rule.alternatives if group[0] in written]
    missing = [group[0] for group in rule.alternatives if group[0] not in written]
    if not given or not missing:
        return None
    return f"{', '.join(given)} needs {', '.join(missing)} as well"


def _alternatives(rule: Rule) -> str:
    if all(len(group) == 1 for group in rule.alternatives):
        return ""
    return ": " + ", or ".join(" and ".join(group) for group in rule.alternatives)


_RULES: dict[str, Callable[[Rule, Set[str]], str | None]] = {
    "at_most_one": _check_at_most_one,
    "one_of": _check_one_of,
    "together": _check_together,
}
