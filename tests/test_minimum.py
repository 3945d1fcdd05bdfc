"""The lowest versions that pyproject.toml names are one for each package, and are tested."""

import importlib.metadata
import os
import re
import shlex
from pathlib import Path

import pytest
from minimum import LEFT_OUT, lowest, minimum, requirements

ROOT = Path(__file__).resolve().parents[1]
# set by `make test-minimum`
IN_MINIMUM = bool(os.environ.get("TEST_MINIMUM"))


def test_a_package_has_one_lowest_version():
    versions: dict[str, set[str]] = {}
    for given in requirements().values():
        for name, version in map(lowest, given):
            versions.setdefault(name, set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_what_is_tested_is_in_an_extra_of_its_own():
    """No extra requires less than the tests install."""
    lists = requirements()
    tested = {lowest(r)[0] for r in lists["test"]}
    users = {
        n for e, rs in lists.items() if e not in ("test", *LEFT_OUT) for n, _ in map(lowest, rs)
    }
    assert users - tested - {lowest(r)[0] for r in lists[""]} == set()


def test_a_requirement_without_lowest_version_is_refused():
    for wrong in ("jax", "jax<1", "jax<1,>=0.10"):
        with pytest.raises(ValueError, match="expected a name, >= and the lowest version"):
            lowest(wrong)


def test_the_tests_of_the_lowest_versions_exist():
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    found = re.search(r"^MINIMUM_TESTS := (.*)$", text, re.MULTILINE)
    assert found
    for name in shlex.split(found[1]):
        file, *test = name.split("::")
        assert (ROOT / file).is_file(), name
        for function in test:
            assert f"def {function.partition('[')[0]}(" in (ROOT / file).read_text(), name
    assert "make test-minimum" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.skipif(not IN_MINIMUM, reason="make test-minimum sets TEST_MINIMUM")
def test_the_lowest_versions_are_installed():
    def same(installed: str, wanted: str) -> bool:
        parts = [[int(n) for n in v.split(".")] for v in (installed, wanted)]
        length = max(map(len, parts))
        one, other = (p + [0] * (length - len(p)) for p in parts)
        return one == other

    installed = {name: importlib.metadata.version(name) for name in minimum()}
    wrong = {n: v for n, v in installed.items() if not same(v, minimum()[n])}
    assert wrong == {}
