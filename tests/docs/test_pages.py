"""The Python of pages that have no other test runs as it is written."""

import re
from pathlib import Path

import numpy as np
import pytest

from jaxsim.enums import SolverType

ROOT = Path(__file__).resolve().parents[2]


def run(page: str) -> dict:
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL):
        exec(compile(code, page, "exec"), names)
    return names


def test_the_python_of_the_quickstart():
    assert run("docs/quickstart.md")["motion"]["qpos"].shape == (100, 1)


def test_the_python_of_the_page_on_the_solver(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert run("docs/physics/solver.md")["m"].opt.solver == SolverType.NEWTON


@pytest.mark.slow
def test_the_python_of_the_page_on_capacities():
    assert run("docs/developer/capacities.md")["m"].ncontact == 19


@pytest.mark.slow
def test_the_python_of_the_page_on_transformations(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert run("docs/developer/transforms.md")["calls"]


@pytest.mark.slow
def test_the_python_of_the_index(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert np.isfinite(run("docs/index.md")["d"].qpos).all()


@pytest.mark.slow
def test_the_python_of_the_page_on_ways_to_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    names = run("docs/running.md")
    assert names["worlds"].qpos.shape == (8, names["m"].nq)
    assert np.isfinite(names["loop"].data.qpos).all()


@pytest.mark.slow
def test_the_python_of_the_page_on_processes(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert run("docs/distributed.md")["motion"]["qpos"].shape == (5, 8, 2)


def test_figures_of_the_page_are_those_of_the_performance_page():
    figures = (ROOT / "docs/performance.md").read_text()
    page = (ROOT / "docs/running.md").read_text().partition("## What it costs")[2]
    numbers = re.findall(r"\d{1,3}(?:,\d{3})+|\b\d{2,3}\b", page)
    missing = [n for n in numbers if n not in figures]
    assert len(numbers) > 20
    assert not missing
