"""The example of the page on looking and touching runs, and pulls what is in its picture."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_python_of_the_page(monkeypatch):
    monkeypatch.chdir(ROOT)
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs/view.md").read_text(), re.DOTALL)
    names: dict = {}
    exec(compile(code[1], "docs/view.md", "exec"), names)
    body, d = int(names["found"].body), names["d"]
    assert body > 0
    assert d.xfrc_applied[body, 2] > 1  # upwards
    assert np.isfinite(d.qpos).all()
