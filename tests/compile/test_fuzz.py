"""Random models compile or raise ModelError with a reason, and nothing else, in bounded time."""

import random
import xml.etree.ElementTree as ET

import hypothesis.strategies as st
import pytest
from compile.everything import EVERYTHING
from hypothesis import HealthCheck, given, settings
from mjcf.test_fuzz import _element, _valid

from jaxsim.compile import compile_spec, compile_string
from jaxsim.errors import ModelError
from jaxsim.mjcf.schema import ROOT
from jaxsim.spec import Spec


def _compile_or_refuse(text: str) -> None:
    problems = None
    try:
        compile_string(text)
    except ModelError as error:
        problems = error.problems
    assert problems is None or (problems and all(problem.message for problem in problems))


def _few(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


WORDS = ("-1", "0", "1", "1e5", "-0.5", "nan", "inf", "1 2", "0 0 0", "1 1 1 1", "x", "a", "g0", "")


def _damaged(seed: int, changes: int) -> str:
    """The model with everything in it, with parts taken away, doubled, moved or changed."""
    draw = random.Random(seed)
    root = ET.fromstring(EVERYTHING)
    for _ in range(changes):
        elements = list(root.iter())
        parents = {child: parent for parent in elements for child in parent}
        element = draw.choice(elements[1:])
        parent = parents[element]
        what = draw.randrange(6)
        if what == 0:
            parent.remove(element)
        elif what == 1:
            parent.append(element)
        elif what == 2:
            draw.choice(elements).append(ET.fromstring(ET.tostring(element)))
        elif what == 3 and element.attrib:
            del element.attrib[draw.choice(sorted(element.attrib))]
        else:
            row = _row(element, parents)
            names = sorted(row.attrs if row is not None else element.attrib)
            names = [name for name in names if name not in ("count", "file")]
            if names:
                element.set(draw.choice(names), draw.choice(WORDS))
    return ET.tostring(root, encoding="unicode")


def _row(element, parents):
    line = [element]
    while line[-1] in parents:
        line.append(parents[line[-1]])
    row = ROOT
    for part in line[-2::-1]:
        row = row.child(part.tag) if row is not None else None
    return row


@pytest.mark.filterwarnings("ignore")
@_few(60)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_a_model_with_everything_damaged(seed, changes):
    _compile_or_refuse(_damaged(seed, changes))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@_few(60)
@given(_element(ROOT))
def test_random_trees(text):
    _compile_or_refuse(text)


@pytest.mark.filterwarnings("ignore")
@_few(100)
@given(_valid(ROOT))
def test_what_the_schema_allows(text):
    _compile_or_refuse(text)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(40))
def test_many_damages(seed):
    for i in range(50):
        _compile_or_refuse(_damaged(1000 * seed + i, 1 + i % 5))


@pytest.mark.filterwarnings("ignore")
@_few(20)
@given(st.integers(0, 2**32))
def test_what_compiles_is_written_and_compiles_again(seed):
    text = _damaged(seed, 1)
    try:
        spec = Spec.from_string(text)
        compile_spec(spec)
    except ModelError:
        return
    compile_string(spec.to_xml())
