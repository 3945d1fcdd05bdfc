"""The API pages of the site list every public name, and every name has a docstring."""

import importlib
import inspect

import pytest
from tools.site import NAMESPACES, Name, groups, pages, public_names

import jaxsim
from jaxsim.batch import scan

PACKAGES = ("jaxsim", *(f"jaxsim.{name}" for name in NAMESPACES))
NAMES = [name for package in PACKAGES for name in public_names(package)]


def value_of(name: Name) -> object:
    package, _, attribute = name.path.rpartition(".")
    return getattr(importlib.import_module(package), attribute)


def test_pages_list_every_name_of_the_package():
    offered = {f"jaxsim.{name}" for name in jaxsim.__all__} - {"jaxsim.terrain"}
    assert {n.path for n in public_names("jaxsim")} | {"jaxsim.__version__"} == offered
    assert {n for names in groups().values() for n in names} == {*public_names("jaxsim")}
    text = "\n".join(pages().values())
    missing = [n.path for n in NAMES if text.count(f"::: {n.identifier}\n") < 1]
    assert not missing
    assert value_of(next(n for n in NAMES if n.path == "jaxsim.rollout")) is scan.rollout


@pytest.mark.parametrize("name", NAMES, ids=lambda n: n.path)
def test_public_name_has_a_docstring(name):
    assert inspect.getdoc(value_of(name))
