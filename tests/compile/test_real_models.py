"""Whole models from dm_control's suite: every field equals MuJoCo's."""

import importlib.util
from pathlib import Path

import pytest
from compile.oracle import assert_file_agrees

SUITE = (
    "acrobot ball_in_cup cartpole cheetah finger fish hopper humanoid humanoid_CMU manipulator"
    " pendulum point_mass quadruped reacher stacker swimmer walker"
).split()


def _package(name: str) -> Path | None:
    """The folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(name)
    places = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(places))) if places else None


@pytest.mark.parametrize("model", SUITE)
def test_suite(model):
    package = _package("dm_control")
    if package is None:
        pytest.skip("dm_control is not installed (tests/model_packages.txt)")
    assert_file_agrees(str(package / "suite" / f"{model}.xml"))
