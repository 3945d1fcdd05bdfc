"""The page on control: its code runs, and its table of norms is that of the code."""

import dataclasses
import re
import typing
from pathlib import Path

import pytest

from jaxsim.control import NORMS
from jaxsim.control.optimization.form import OPTIMIZATION_METHODS, CostForm, OptimizationForm
from jaxsim.control.optimization.quantity import FRAME_FIELDS, QUANTITY_KINDS

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs/control.md").read_text()


@pytest.mark.slow
def test_the_python_of_the_page(monkeypatch):
    monkeypatch.chdir(ROOT)
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(code, "control.md", "exec"), names)
    assert names["found"].iterations > 0
    assert names["path"].shape == (10, 2)


def test_every_norm_is_on_the_page():
    table = PAGE[PAGE.index("| norm |") :].split("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*)\|$", table, re.MULTILINE)
    assert [name for name, _ in rows] == list(NORMS)
    for name, parameters in rows:
        written = tuple(float(p) for p in re.findall(r"= ([\d.]+)", parameters))
        assert written == NORMS[name].defaults, name


def settings(form) -> set[str]:
    """Names of the settings of a form, those of its tables too."""
    kinds = typing.get_type_hints(form)
    tables = {n for n, kind in kinds.items() if dataclasses.is_dataclass(kind)}
    return (kinds.keys() - tables).union(*(settings(kinds[n]) for n in tables))


def table(head: str) -> str:
    return PAGE[PAGE.index(f"| {head} |") :].split("\n\n")[0]


def test_every_setting_and_quantity_of_an_optimisation_is_on_the_page():
    found = set(re.findall(r"(\w+)(?:\.[A-Z]+)?`", table("setting")))
    assert settings(OptimizationForm) - found == set()
    assert set(OPTIMIZATION_METHODS) - found == set()
    names = {f.name for f in dataclasses.fields(CostForm)}
    assert all(re.search(rf"\b{name}\b", PAGE) for name in names)
    quantities = table("`of`, `minus`")
    assert all(f"`{kind}" in quantities for kind in QUANTITY_KINDS)
    assert all(f".{field}`" in quantities for fields in FRAME_FIELDS.values() for field in fields)


@pytest.mark.slow
def test_the_python_of_the_page_on_planning_in_real_time(monkeypatch):
    monkeypatch.chdir(ROOT)
    names: dict = {}
    page = (ROOT / "docs/mpc.md").read_text()
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(code, "mpc.md", "exec"), names)
    assert names["run"].records["ctrl"].shape == (10, 1)
