"""Errors name the location, list every fault, and survive pickling."""

import pickle

import pytest

from jaxsim.errors import MAX_SHOWN_PROBLEMS, LocatedProblem, ModelError, Problems, SourceLocation


def test_places():
    assert str(SourceLocation("arm.xml", 12)) == "arm.xml:12"
    assert str(SourceLocation("arm.xml")) == "arm.xml"
    assert str(SourceLocation(None, 12)) == "<model>:12"
    assert str(SourceLocation()) == "<model>"


def test_problems_are_raised_together_in_order():
    problems = Problems()
    problems.raise_if_any()
    problems.add(SourceLocation("arm.xml", 12), "first")
    problems.add(None, "second")
    assert len(problems) == 2
    with pytest.raises(ModelError) as caught:
        problems.raise_if_any()
    assert str(caught.value) == "arm.xml:12: first\n<model>: second"
    assert [p.message for p in caught.value.problems] == ["first", "second"]


def test_a_long_list_is_cut_when_printed():
    error = ModelError(
        LocatedProblem(SourceLocation("a.xml", i), "no") for i in range(MAX_SHOWN_PROBLEMS + 7)
    )
    assert len(error.problems) == MAX_SHOWN_PROBLEMS + 7
    assert str(error).splitlines()[-1] == "... and 7 more"


def test_pickling():
    error = ModelError(LocatedProblem(SourceLocation("arm.xml", 12), "no"))
    assert pickle.loads(pickle.dumps(error)).problems == error.problems
