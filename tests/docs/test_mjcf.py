"""The reference page is that of the schema, and names everything in it."""

from pathlib import Path

from tools.mjcf import reference

from jaxsim.mjcf.schema import walk

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/mjcf.md"


def test_the_page_is_current():
    assert PAGE.read_text() == reference(), "write it again: python docs/tools/reference.py mjcf"


def test_every_element_and_attribute_is_named():
    text = reference()
    titles = {line.lstrip("# ") for line in text.splitlines() if line.startswith("#")}
    titled = {row for path, row in walk() if path in titles}
    for path, row in walk():
        assert row in titled, path
        for attr in row.attrs.values():
            assert f"| {attr.name} |" in text or f"| **{attr.name}** |" in text, attr.name


def test_what_has_no_effect_says_why():
    text = reference()
    for _, row in walk():
        for attr in row.attrs.values():
            assert not attr.no_effect or f"No effect: {attr.no_effect}" in text
