"""The page on identification: its code runs, and every name in it exists."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxsim import identify

TEXT = (Path(__file__).resolve().parents[2] / "docs/identify.md").read_text()
CODE = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_every_name_of_the_page_exists():
    table = TEXT.split("| there | here |")[1]
    here = [row.split("|")[2] for row in table.splitlines() if row.count("|") == 3][1:]
    names = {n for cell in here for n in re.findall(r"`(\w+)[`(]", cell)}
    names |= set(re.findall(r"identify\.(\w+)\(", TEXT))
    assert len(names) > 12
    assert not [n for n in names if not hasattr(identify, n)]
    for code in CODE:
        compile(code, "identify.md", "exec")


@pytest.mark.slow
def test_the_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        for code in CODE:
            exec(compile(code, "identify.md", "exec"), names)
    fit = names["fit"]
    assert (np.abs(fit.values - [0.25, 0.1]) < 3 * fit.sd).all()
    assert "chi2" in capsys.readouterr().out
    assert (tmp_path / "fit.html").read_text().startswith("<!doctype html>")
    assert identify.build_residual_fn(names["m"], fit.parameters, names["slow"]).size == 3
