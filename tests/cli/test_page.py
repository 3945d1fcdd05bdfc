"""The reference page of the public names is current, and has what a user can call."""

import inspect
from pathlib import Path

import pytest

import jaxsim
from jaxsim.cli.page import public_names, reference

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/api.md"
NAMES = public_names()


def test_the_page_is_current():
    assert PAGE.read_text() == reference(), (
        "write it again: python -m jaxsim.cli.page > docs/reference/api.md"
    )


def test_the_names_are_those_of_the_package():
    """Everything that `jaxsim` itself offers, apart from its modules."""
    offered = {
        name
        for name, value in vars(jaxsim).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert {n.name for n in NAMES} == offered


@pytest.mark.parametrize("name", NAMES, ids=lambda n: n.name)
def test_a_name_has_its_arguments_and_a_summary(name):
    part = reference().partition(f"\n### {name.name}\n")[2].partition("\n##")[0]
    assert inspect.getdoc(name.value).split("\n")[0] in part
    if inspect.isfunction(name.value):
        for argument in inspect.signature(name.value).parameters:
            assert argument in part
