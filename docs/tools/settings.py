"""Generate the reference page of settings: every setting of every configuration file."""

import dataclasses
import inspect
import types
import typing
from collections.abc import Iterator
from typing import Any

from jaxsim.control.closed_loop.form import ClosedLoopForm
from jaxsim.control.optimization.form import OptimizationForm as Optimization
from jaxsim.identify.study.form import Study
from jaxsim.io.config.read import TYPE_WORDS, SettingRule
from jaxsim.learn.config import Training

FORMS = {"train": Training, "optimize": Optimization, "mpc": ClosedLoopForm, "identify": Study}
HEAD = """# Settings

Generated from the forms in the code by `python docs/tools/reference.py settings`; do not edit.
A configuration is a TOML file; errors name the line. `--set NAME=VALUE` replaces a setting:
`--set worlds.count=256`. Examples are in `configs/`.
"""


def reference() -> str:
    """Return the page, in Markdown."""
    parts = [HEAD]
    for command, form in FORMS.items():
        parts += [f"## jaxsim {command}\n"]
        for table, inner in _tables(form, ""):
            if table:
                parts.append(f"### {table}\n\n{inspect.getdoc(inner)}\n")
            kinds = {f: _kind(inner, f) for f in dataclasses.fields(inner)}
            rows = [_row(f, kind) for f, kind in kinds.items() if not _form_of(kind)]
            parts += ["| setting | type | default | meaning |\n|---|---|---|---|", *rows, ""]
    return "\n".join(parts)


def _tables(form: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield a form and all forms in it, with the headers of their tables."""
    yield name, form
    for f in dataclasses.fields(form):
        kind = _kind(form, f)
        inner = _form_of(kind)
        if inner is None:
            continue
        path = name.strip("[]") + "." * bool(name) + f.name
        if typing.get_origin(kind) is dict:
            path += '."NAME"'
        yield from _tables(
            inner, f"[[{path}]]" if typing.get_origin(kind) is tuple else f"[{path}]"
        )


def _kind(form: Any, f: dataclasses.Field[Any]) -> Any:
    """Return the type of a setting, without the None of an optional one."""
    kind = typing.get_type_hints(form)[f.name]
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        kinds = [k for k in typing.get_args(kind) if k is not type(None)]
        return kinds[0] if len(kinds) == 1 else kind
    return kind


def _form_of(kind: Any) -> Any:
    """Return the form that a setting is, or is a collection of."""
    inside = [kind, *typing.get_args(kind)]
    return next((k for k in inside if dataclasses.is_dataclass(k)), None)


def _row(f: dataclasses.Field[Any], kind: Any) -> str:
    rule: SettingRule = f.metadata["rule"]
    limits = [
        f"{word} {value:g}"
        for word, value in (("from", rule.least), ("above", rule.above), ("to", rule.most))
        if value is not None
    ]
    what = ", ".join(f"`{c}`" for c in rule.choices) or _words(kind)
    return f"| `{f.name}` | {' '.join([what, *limits])} | {_default(f)} | {rule.doc} |"


def _words(kind: Any) -> str:
    inside = typing.get_args(kind)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return " or ".join(map(_words, inside))
    if typing.get_origin(kind) is tuple:
        return f"list: {_words(inside[0])}"
    if typing.get_origin(kind) is dict:
        return f"table: {_words(inside[1])}"
    return TYPE_WORDS[kind]


def _default(f: dataclasses.Field[Any]) -> str:
    if f.default_factory is not dataclasses.MISSING:
        return ""
    if f.default is dataclasses.MISSING:
        return "required"
    if f.default is None or f.default == ():
        return ""
    value = list(f.default) if isinstance(f.default, tuple) else f.default
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
