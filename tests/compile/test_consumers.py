"""Every attribute of the schema is read by the compiler, or the schema gives the reason why not.

The reading of attributes is recorded while models with every element are compiled: what code asks
for by name counts, whether the model has it or not; walking over all attributes, as writing and
renaming do, does not. Entries of default classes are read wherever their elements are.
"""

import ast
import sys
from pathlib import Path

import pytest
from compile.everything import EVERYTHING, FILES, REFUSED, REST

from jaxsim.compile import compile_string
from jaxsim.errors import ModelError
from jaxsim.mjcf.schema import ROOT, walk
from jaxsim.mjcf.schema.option import COMPILER
from jaxsim.spec import Spec, SpecElement

PACKAGE = Path(__file__).resolve().parents[2] / "jaxsim"


# Code that asks for attributes whatever they are called.
GENERIC = ("expand/check_elements.py", "element.py", "write.py")


class _Asked(dict):
    """Attributes of an element that record which of them are read by name."""

    def __init__(self, attrs, row, notes):
        super().__init__(attrs)
        self.row, self.notes = row, notes

    def __getitem__(self, name):
        self.notes.add((self.row, name))
        return super().__getitem__(name)

    def get(self, name, default=None):
        self.notes.add((self.row, name))
        return super().get(name, default)

    def __contains__(self, name):
        if Path(sys._getframe(1).f_code.co_filename).name not in GENERIC:
            self.notes.add((self.row, name))
        return super().__contains__(name)


@pytest.fixture
def asked(monkeypatch) -> set:
    """Return pairs of a row and a name, as the compiler reads them."""
    notes: set = set()
    make, settings = SpecElement.__init__, Spec.settings

    def tracked(self, *args, **kwargs):
        make(self, *args, **kwargs)
        self.attrs = _Asked(self.attrs, self.row, notes)

    def noting(method):
        def call(self, name):
            notes.add((self.row, name))
            return method(self, name)

        return call

    def merged(self, tag, child=None):
        row = ROOT.child(tag)
        return _Asked(settings(self, tag, child), row.child(child) if child else row, notes)

    monkeypatch.setattr(SpecElement, "__init__", tracked)
    monkeypatch.setattr(Spec, "settings", merged)
    for name in ("own", "get", "is_set"):
        monkeypatch.setattr(SpecElement, name, noting(getattr(SpecElement, name)))
    return notes


def _words() -> set[str]:
    """Every word in a text of the compiler's code."""
    trees = [ast.parse(path.read_text()) for path in (PACKAGE / "compile").rglob("*.py")]
    texts = [
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return {word for text in texts for word in text.split()}


def _slots():
    """Every attribute that may have an effect, with the path of its element."""
    seen = set()
    for path, row in walk():
        entry = "/default/" in path and not path.endswith("default")
        if row not in seen and not entry:
            seen.add(row)
            for attr in row.attrs.values():
                if not attr.no_effect and not row.instead:
                    yield path, row, attr


def _passed_on(path, name):
    """Return whether a flexcomp passes the attribute on to its flex or its bodies."""
    if "/flexcomp/" not in path:
        return None
    row = ROOT.child("worldbody").child("body")
    row = row if "/plugin" in path else ROOT.child("deformable").child("flex")
    for tag in path.split("/flexcomp/")[1].split("/"):
        row = row.child(tag) if row is not None else None
    return row, name


# Asked for outside the compiler: the name of a model is what another one attaches it by, and what
# `Spec.modelname` gives.
ELSEWHERE = {"mujoco model"}
# A row of `<compiler>` is read as a whole; there the name must occur in the code.
BY_NAME = (COMPILER,)


@pytest.mark.filterwarnings("ignore")
def test_every_attribute_has_a_consumer_or_a_reason(asked):
    for text in (EVERYTHING, *REST):
        compile_string(text, FILES)
    for text in REFUSED:
        with pytest.raises(ModelError):
            compile_string(text, FILES)
    words = _words()
    silent = [
        f"{path} {attr.name}"
        for path, row, attr in _slots()
        if (attr.name not in words if row in BY_NAME else (row, attr.name) not in asked)
        and _passed_on(path, attr.name) not in asked
    ]
    silent = [slot for slot in silent if slot not in ELSEWHERE]
    assert not silent, "\n".join(silent)


def test_a_reason_is_a_sentence():
    for path, row in walk():
        for attr in row.attrs.values():
            assert not attr.no_effect or len(attr.no_effect.split()) > 2, (path, attr.name)
