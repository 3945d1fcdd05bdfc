"""The reference page of MuJoCo's functions is current, and has every function of its header."""

import importlib
import importlib.util
import pkgutil
import re
from pathlib import Path

import mujoco
import mujoco.batch
import pytest
from tools.functions import (
    BATCH,
    FAMILIES,
    INSTEAD,
    PACKAGE,
    absent,
    named,
    pythonic,
    reference,
    value_of,
)

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/functions.md"
HEADER = Path(mujoco.__file__).parent / "include/mujoco/mujoco.h"
NAMED = [row for rows in named().values() for row in rows]


def functions() -> list[str]:
    """Names of all functions that MuJoCo's header declares."""
    return re.findall(r"MJAPI[^;(]*?\b(mj[a-z]*_\w+)\(", HEADER.read_text())


def test_the_page_is_current():
    assert PAGE.read_text() == reference(), (
        "write it again: python docs/tools/reference.py functions"
    )


def test_every_function_of_the_header_has_a_row():
    families = tuple(FAMILIES)
    asked = {n for n in functions() if not n.startswith(families)}
    assert len(asked) > 280
    rows = [row.mujoco for row in (*NAMED, *absent())] + [*INSTEAD]
    assert len(rows) == len(set(rows)), "a function is listed twice"
    assert asked - set(rows) == set()
    assert {n for n in rows if not n.startswith(families)} - asked == set()
    assert all(any(n.startswith(f) for n in functions()) for f in families)


@pytest.mark.parametrize("row", NAMED, ids=lambda row: row.mujoco)
def test_what_is_named_exists_and_says_what_it_is(row):
    assert value_of(row.here).__doc__


def test_what_takes_the_place_of_a_function_exists():
    for text in (*INSTEAD.values(), *PACKAGE.values(), *BATCH.values()):
        for dotted in re.findall(r"jaxsim\.[\w.]*\w", text):
            module = ".".join(dotted.split(".")[:2])
            if importlib.util.find_spec(module):
                importlib.import_module(module)
            value_of(dotted)


def test_every_function_of_many_worlds_has_a_row():
    theirs = {name for name in vars(mujoco.batch.Batch) if not name.startswith("_")}
    assert theirs == set(BATCH)
    assert len(theirs) >= 25


def test_every_module_of_the_package_has_a_row():
    modules = {m.name for m in pkgutil.iter_modules(mujoco.__path__)}
    ours = {m for m in modules if not m.startswith("_") and not m.endswith("_test")}
    functions = {"from_zip", "to_zip", "set_mjcb_control", "set_mju_user_warning"}
    assert all(hasattr(mujoco, name) for name in functions)
    assert {m for m in ours if m not in PACKAGE and m not in PACKAGE["rendering"]} == set()
    assert PACKAGE.keys() - ours == functions


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mj_jacSubtreeCom", "jac_subtree_com"),
        ("mj_mulJacTVec", "mul_jac_t_vec"),
        ("mj_solveM2", "solve_m2"),
        ("mj_applyFT", "apply_ft"),
        ("mju_quatZ2Vec", "quat_z_to_vec"),
        ("mju_axisAngle2Quat", "axis_angle_to_quat"),
        ("mju_Halton", "halton"),
        ("mj_name2id", "name2id"),
    ],
)
def test_names_in_python(name, expected):
    assert pythonic(name) == expected
