"""The example of the page on looking and touching runs, and pulls what is in its picture."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_python_of_the_page(monkeypatch):
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs/view.md").read_text().partition("\n## As functions\n")[2]
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict = {}
    exec(compile(code[1], "docs/view.md", "exec"), names)
    body, d = int(names["found"].body), names["d"]
    assert body > 0
    assert d.xfrc_applied[body, 2] > 1  # upwards
    assert np.isfinite(d.qpos).all()


@pytest.mark.slow
def test_the_python_of_the_viewer(monkeypatch, tmp_path):
    pytest.importorskip("viser", reason="the extra view is not installed")
    page = (ROOT / "docs/view.md").read_text().partition("\n## As functions\n")[0]
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    code = code.replace("configs/humanoid.xml", str(ROOT / "configs/humanoid.xml"))
    names: dict = {}
    exec(compile(code, "docs/view.md", "exec"), names)
    assert float(names["d"].time) > 1
    assert (tmp_path / "motion.html").stat().st_size > 800_000
