"""Errors name the location, list every fault, and survive pickling."""

import pickle

import pytest

from jaxsim.errors import SHOWN, ModelError, Place, Problem, Problems


def test_places():
    assert str(Place("arm.xml", 12)) == "arm.xml:12"
    assert str(Place("arm.xml")) == "arm.xml"
    assert str(Place(None, 12)) == "<model>:12"
    assert str(Place()) == "<model>"


def test_problems_are_raised_together_in_order():
    problems = Problems()
    problems.raise_if_any()
    problems.add(Place("arm.xml", 12), "first")
    problems.add(None, "second")
    assert len(problems) == 2
    with pytest.raises(ModelError) as caught:
        problems.raise_if_any()
    assert str(caught.value) == "arm.xml:12: first\n<model>: second"
    assert [p.message for p in caught.value.problems] == ["first", "second"]


def test_a_long_list_is_cut_when_printed():
    error = ModelError(Problem(Place("a.xml", i), "no") for i in range(SHOWN + 7))
    assert len(error.problems) == SHOWN + 7
    assert str(error).splitlines()[-1] == "... and 7 more"


def test_pickling():
    error = ModelError(Problem(Place("arm.xml", 12), "no"))
    assert pickle.loads(pickle.dumps(error)).problems == error.problems
