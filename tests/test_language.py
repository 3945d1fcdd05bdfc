"""Docstrings, comments, messages and pages use the terms of docs/glossary.md."""

import json
import re

import pytest
from language import FRAGMENT, PATTERNS, ROOT, TERMS, budget, counts, findings, findings_of, project

FOUND = list(findings(project()))
KINDS = ("words", "fragments")


@pytest.mark.parametrize("folder", sorted({f.folder for f in FOUND} | budget().keys()))
def test_folder_stays_within_its_budget(folder):
    """Rewrite what is listed; afterwards lower the budget by `python tests/language.py --lower`."""
    limits, found = budget().get(folder, {}), counts(FOUND).get(folder, {})
    for kind in KINDS:
        if found.get(kind, 0) > limits.get(kind, 0):
            listed = "\n".join(str(f) for f in FOUND if f.folder == folder and f.kind == kind)
            pytest.fail(f"{folder}: {found[kind]} {kind}, budget {limits.get(kind, 0)}\n{listed}")


def matched(text: str) -> list[str]:
    return [write for pattern, write in PATTERNS.items() if pattern.search(text)]


@pytest.mark.parametrize(
    "text",
    [
        "one turn of the solver",
        "there is room for 8 contacts",
        "the value stands in a table",
        "the user is asked for a name",
        "this tells the sign",
        "MuJoCo is faster beside it",
        "contacts that have places",
        "many things",
        "M falls apart",
        "optimise the program, which is normalised",
    ],
)
def test_paraphrase_is_found(text):
    assert matched(text)


@pytest.mark.parametrize(
    "text",
    [
        "turn on the flag; turns out; in turn; turns the flag off",
        "takes place before; changes arrays in place; six decimal places",
        "nothing, something, everything",
        "a precise, concise premise otherwise raises",
        "a mushroom",
    ],
)
def test_ordinary_use_is_allowed(text):
    assert not matched(text)


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ('"""Whether it runs."""\n', ["fragments"]),
        ('"""Return the sign."""\n', []),
        ("x = 1  # one more turn\n", ["words"]),
        ('def f():\n    raise ValueError(f"{1}: no room")\n', ["words"]),
        ('x = "no room"\n', []),
        ('"""Return the word `room`, "things"."""\n', []),
    ],
)
def test_kinds_of_text_that_are_read(tmp_path, source, kinds):
    path = (tmp_path / "source").with_suffix(".py")
    path.write_text(source)
    assert [f.kind for f in findings_of(path)] == kinds


def test_code_of_a_page_is_not_read(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("```\na thing\n```\n\n    a thing\n\n`thing` and a thing\n")
    assert [f.line for f in findings_of(path)] == [7]


def test_text_of_a_notebook_is_read(tmp_path):
    path = tmp_path / "notebook.ipynb"
    source = ["# A title\n", "one thing"]
    cells = [{"cell_type": kind, "source": source} for kind in ("markdown", "code")]
    path.write_text(json.dumps({"cells": cells}))
    assert [f.kind for f in findings_of(path)] == ["words"]


def test_every_paraphrase_has_a_row_in_the_glossary():
    rows = (ROOT / "docs/glossary.md").read_text().partition("| instead of | write |")[2]
    listed = [row.split("|")[1] for row in rows.splitlines() if row.startswith("| ")]
    missing = [t for t in TERMS if not any(re.search(t, row, re.IGNORECASE) for row in listed)]
    assert not missing
    assert FRAGMENT.match("What it is")
