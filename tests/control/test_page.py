"""The page on control: its code runs, and its table of norms is that of the code."""

import re
from pathlib import Path

import pytest

from jaxsim.control import NORMS

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs/control.md").read_text()


@pytest.mark.slow
def test_the_python_of_the_page(monkeypatch):
    monkeypatch.chdir(ROOT)
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(code, "control.md", "exec"), names)
    assert names["found"].iterations > 0
    assert names["path"].shape == (10, 2)


def test_every_norm_is_on_the_page():
    table = PAGE[PAGE.index("| norm |") :].split("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*)\|$", table, re.MULTILINE)
    assert [name for name, _ in rows] == list(NORMS)
    for name, parameters in rows:
        written = tuple(float(p) for p in re.findall(r"= ([\d.]+)", parameters))
        assert written == NORMS[name].defaults, name
