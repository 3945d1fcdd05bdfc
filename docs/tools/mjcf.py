"""Generate the reference page of MJCF from the schema: every element, every attribute."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsim.mjcf.schema import INCLUDE, ROOT, Attr, Row, Rule, walk
from jaxsim.mjcf.write import format_value

_HEAD = """# MJCF, as jaxsim reads it

Generated from the schema table (`jaxsim/mjcf/schema`) by `python docs/tools/reference.py mjcf`;
do not edit.

Each element is described once, at its first occurrence. "How often" gives the number of
occurrences in the parent: `!` one, `?` at most one, `*` any number, `R` any number, nested too.
Numbers are separated by spaces; the column "type" gives how many: `3` three, `1-3` one to three,
`1+` one or more. Units are SI, though a model may use any consistent set: `Q` is the unit of the
coordinate of a joint, tendon or actuator, `F` the unit of its force, `angle` the unit that
`<compiler angle>` selects; `?` depends on other attributes. An attribute marked "No effect" is
read, checked and written, but the physics does not depend on it; the reason is given.
"""

_HOW_OFTEN = {
    "at_most_one": "At most one of {}.",
    "one_of": "At least one of {}.",
    "together": "Together or not at all: {}.",
}


def reference() -> str:
    """Return the page, in Markdown."""
    parts = [_HEAD, *_index()]
    seen: set[Row] = set()
    for path, row in [("include (anywhere)", INCLUDE), *walk()]:
        if row not in seen:
            parts += _element(path, row)
        seen.add(row)
    return "\n".join(parts) + "\n"


def _index() -> Iterator[str]:
    """Yield the list of the children of `<mujoco>`, with links."""
    yield "| section | |\n|---|---|"
    for row in ROOT.children.values():
        yield f"| [{row.tag}](#{ROOT.tag}{row.tag}) | {row.doc} |"
    yield ""


def _element(path: str, row: Row) -> Iterator[str]:
    depth = min(path.count("/"), 3) + 2
    yield f"{'#' * depth} {path}\n"
    yield f"{row.doc} How often: `{row.occurs}`." + (" Expanded away." if row.meta else "") + "\n"
    if row.instead:
        yield f"`<{row.tag}>` {row.instead}.\n"
    if row.attrs:
        yield "| attribute | type | default | unit | |\n|---|---|---|---|---|"
        yield from (_attribute(attr) for attr in row.attrs.values())
        yield ""
    for rule in row.rules:
        yield _rule(rule) + "\n"
    if row.children:
        yield "Inside: " + ", ".join(f"`{tag}`" for tag in row.children) + ".\n"


def _attribute(attr: Attr) -> str:
    name = f"**{attr.name}**" if attr.required else attr.name
    default = "required" if attr.required else ""
    if attr.default is not None and not attr.required:
        default = f"`{format_value(attr.default)}`" if format_value(attr.default) else ""
    doc = attr.doc + (f" *No effect: {attr.no_effect}.*" if attr.no_effect else "")
    cells = (name, _type(attr), default, attr.unit, doc)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _type(attr: Attr) -> str:
    """Return the type in words: the number of values, the keywords, the kind of name."""
    least, most = attr.count
    if attr.is_number:
        many = f"{least}-{most}" if most and least != most else str(most or f"{max(least, 1)}+")
        return attr.type if many == "1" else f"{attr.type} {many}"
    if attr.keywords:
        words = ", ".join(f"`{word}`" for word in (*attr.keywords, *attr.alone))
        return f"some of {words}" if attr.type == "keywords" else words
    if attr.type in ("ref", "refs"):
        of = attr.kind if not attr.kind.startswith("@") else f"what `{attr.kind[1:]}` says"
        return f"name{'s' * (attr.type == 'refs')} of {of}"
    return {"string": "text", "file": "file", "name": "name"}[attr.type]


def _rule(rule: Rule) -> str:
    groups = " or ".join(" and ".join(f"`{name}`" for name in g) for g in rule.alternatives)
    return _HOW_OFTEN[rule.kind].format(groups)
