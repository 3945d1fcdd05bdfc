"""The nearest word: what messages propose for a name that nothing has."""

import pytest

from jaxsim.spelling import is_misspelling, remedy, suggest

_KNOWN = ("elbow", "shoulder", "Wrist")


@pytest.mark.parametrize(
    ("word", "meant"),
    [("elbo", "elbow"), ("ELBOW", "elbow"), ("wrist", "Wrist"), ("knee", None), ("", None)],
)
def test_the_nearest_word(word, meant):
    assert suggest(word, iter(_KNOWN)) == meant


def test_the_end_of_a_message():
    assert remedy("sholder", _KNOWN) == "; did you mean 'shoulder'?"
    assert remedy("knee", _KNOWN) == ""
    assert remedy("knee", _KNOWN, "; there are three") == "; there are three"


@pytest.mark.parametrize(
    ("word", "slip"), [("elbwo", True), ("Elbow", True), ("bow", False), ("eel", False)]
)
def test_a_slip_is_nearer_than_what_is_proposed(word, slip):
    assert is_misspelling(word, _KNOWN) == slip
