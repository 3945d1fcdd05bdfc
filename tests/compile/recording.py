"""Runs the passes one by one and notes what each reads, and which pass that was from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.passes import PASSES
from jaxsim.compile.products import Product, Products
from jaxsim.spec import Spec

PRODUCTS = {name: item for name, item in vars(Products).items() if isinstance(item, Product)}
TABLES = ("fields", "opt", "stat", "ids", "names", "elements")
SPEC = "spec"

Key = tuple[str, str]  # a table and what is in it, or "product" and its name


class Log:
    """Log of the reads and writes of passes.

    Attributes:
      step: name of the pass that runs.
      owner: pass that wrote each item last.
      needs: for each pass, the passes whose items it has read.
      gives: of each pass, what it has given or changed.
    """

    def __init__(self) -> None:
        self.step = ""
        self.owner: dict[Key, str] = {}
        self.needs: dict[str, set[str]] = defaultdict(set)
        self.gives: dict[str, set[Key]] = defaultdict(set)

    def read(self, key: Key) -> None:
        owner = self.owner.get(key, self.step)
        if owner != self.step:
            self.needs[self.step].add(owner)

    def give(self, key: Key) -> None:
        self.owner[key] = self.step
        self.gives[self.step].add(key)


class Table(dict):
    """A table of a compilation that records who reads and who writes."""

    def __init__(self, log: Log, name: str):
        super().__init__()
        self.log, self.name = log, name

    def __getitem__(self, key: str) -> Any:
        self.log.read((self.name, key))
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        if key not in self:
            return default
        return self[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.log.give((self.name, key))
        super().__setitem__(key, value)

    def update(self, *tables: Mapping[str, Any], **values: Any) -> None:
        for key, value in dict(*tables, **values).items():
            self[key] = value

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def __iter__(self) -> Iterator[str]:
        for key in super().__iter__():
            self.log.read((self.name, key))
            yield key

    def items(self):
        return [(key, self[key]) for key in self]

    def values(self):
        return [self[key] for key in self]


class Recording(Compilation):
    """A compilation whose tables and products tell who reads and who writes."""

    def __init__(self, spec: Spec, log: Log):
        super().__init__(spec)
        self.log = log
        for name in TABLES:
            setattr(self, name, Table(log, name))

    def __getattribute__(self, name: str) -> Any:
        if name in PRODUCTS:
            super().__getattribute__("log").read(("product", name))
        return super().__getattribute__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in PRODUCTS:
            self.log.give(("product", name))
        super().__setattr__(name, value)


def record(spec: Spec, log: Log) -> None:
    """Compiles a model, and adds to the log what its passes have read and given.

    An array that is changed in place counts as given by the pass that has changed it.
    """
    log.owner.clear()
    c = Recording(spec.copy(), log)
    for step in PASSES:
        log.step = step.name
        arrays, tree = _arrays(c), _tree(c.spec)
        step(c)
        c.problems.raise_if_any()
        for name, before in arrays.items():
            if before != _digest(dict.__getitem__(c.fields, name)):
                log.give(("fields", name))
        if tree != _tree(c.spec):
            log.give((SPEC, SPEC))


def _arrays(c: Recording) -> dict[str, bytes]:
    return {name: _digest(value) for name, value in dict.items(c.fields)}


def _digest(value: Any) -> bytes:
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()


def _tree(spec: Spec) -> list[tuple[int, str, dict[str, bytes]]]:
    return [
        (id(e), e.tag, {attr: _digest(value) for attr, value in e.attrs.items()})
        for e in spec.walk()
    ]


def group(key: Key) -> str | None:
    """Return the name in a declaration: that of a product or kind, or the prefix of a field.

    Sizes go with what they count and are not declared.
    """
    table, name = key
    if table == "fields":
        return None if name.startswith("n") else name.split("_")[0]
    return table if table in ("opt", "stat") else name
