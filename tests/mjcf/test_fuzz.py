"""Trees made at random from the schema: they are read and written, or refused by ModelError."""

import string

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from mjcf.test_write import equal

from jaxsim.errors import ModelError
from jaxsim.mjcf import read_string, to_xml
from jaxsim.mjcf.schema import ROOT, walk

ROWS = [row for _, row in walk()]
TAGS = sorted({row.tag for row in ROWS})
NAMES = sorted({name for row in ROWS for name in row.attrs})
WORDS = sorted({w for row in ROWS for a in row.attrs.values() for w in (*a.keywords, *a.alone)})

_TEXT = st.text(string.printable[:95] + "äé\u0661\n\t", max_size=12)
_NUMBERS = st.lists(
    st.floats(width=64).map(repr) | st.integers(-(2**33), 2**33).map(str), max_size=7
).map(" ".join)
_VALUES = st.one_of(_NUMBERS, st.sampled_from(WORDS), _TEXT)


def _quote(text: str) -> str:
    for mark, escape in (("&", "&amp;"), ("<", "&lt;"), ('"', "&quot;"), ("\n", "&#10;")):
        text = text.replace(mark, escape)
    return f'"{text}"'


@st.composite
def _element(draw, row, depth=0):
    """Text of an element whose attributes and children are mostly those of its row."""
    tag = row.tag if row is not None else draw(st.sampled_from(TAGS))
    own = sorted(row.attrs) if row is not None else []
    names = st.sampled_from(own) if own and draw(st.integers(0, 9)) else st.sampled_from(NAMES)
    attrs = draw(st.dictionaries(names, _VALUES, max_size=4))
    children = []
    for _ in range(draw(st.integers(0, 3 if depth < 5 else 0))):
        inside = sorted(row.children) if row is not None else []
        known = inside and draw(st.integers(0, 9))
        child = row.children[draw(st.sampled_from(inside))] if known else None
        children.append(draw(_element(child, depth + 1)))
    head = " ".join([tag, *(f"{name}={_quote(value)}" for name, value in attrs.items())])
    return f"<{head}>{''.join(children)}</{tag}>"


_FUZZ = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def _read_or_refuse(data: str | bytes) -> None:
    try:
        root = read_string(data)
    except ModelError:
        pass
    else:
        assert equal(root, read_string(to_xml(root)))


@pytest.mark.slow
@_FUZZ
@given(_element(ROOT))
def test_random_trees(text):
    _read_or_refuse(text)


@_FUZZ
@given(_element(ROOT), st.integers(0, 400), st.integers(0, 400), st.text(max_size=3))
def test_damaged_text(text, start, length, put):
    _read_or_refuse(text[:start] + put + text[start + length :])


@_FUZZ
@given(st.binary(max_size=60))
def test_random_bytes(data):
    _read_or_refuse(data)


@st.composite
def _valid(draw, row, depth=0):
    """Text of an element with attributes that its row allows."""
    attrs = {}
    for attr in row.attrs.values():
        if attr.required or draw(st.integers(0, 5)) == 0:
            attrs[attr.name] = draw(_value(attr))
    inside = [r for r in row.children.values() if not r.instead and r.occurs != "?"]
    children = []
    if depth < 4 and inside:
        chosen = draw(st.lists(st.sampled_from(inside), max_size=3))
        children = [draw(_valid(child, depth + 1)) for child in chosen]
    head = " ".join([row.tag, *(f"{name}={_quote(value)}" for name, value in attrs.items())])
    return f"<{head}>{''.join(children)}</{row.tag}>"


def _value(attr):
    """Texts that the attribute allows."""
    least, most = attr.count
    counts = {"min_size": max(least, 1), "max_size": most or 9}
    if attr.type == "real":
        numbers = st.floats(allow_nan=False).map(repr)
        return st.lists(numbers, **counts).map(" ".join)
    if attr.type == "int":
        return st.lists(st.integers(-(2**31), 2**31 - 1).map(str), **counts).map(" ".join)
    if attr.keywords:
        return st.sampled_from(attr.keywords)
    if attr.pattern:
        return st.just(attr.default)
    return st.text(string.ascii_letters, min_size=1, max_size=5)


CLASHES = (
    "exclude each other",
    "as well",
    ": give ",
    "is empty; give data",
    "is the outermost class",
    "inside another needs",
    "coordinate='global' is gone",
    "has its text twice",
    "scale needs 1 or 3 numbers, got 2",
)


@_FUZZ
@given(_valid(ROOT))
def test_what_the_schema_allows_is_read(text):
    """Only the rules between attributes may speak against a tree made from the table."""
    try:
        root, problems = read_string(text), ()
    except ModelError as error:
        root, problems = None, error.problems
    assert root is None or equal(root, read_string(to_xml(root)))
    for problem in problems:
        assert any(clash in problem.message for clash in CLASHES), problem
