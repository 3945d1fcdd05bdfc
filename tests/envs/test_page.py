"""The Python of the page on environments runs as it stands."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "envs.md"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*Box.*")
def test_the_python_of_the_page():
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(code, "envs.md", "exec"), names)
    assert np.isfinite(names["mean_reward"])
    axes = names["axes"]
    moved = [n for n, f in type(axes).fields.items() if not f.static and getattr(axes, n) == 0]
    assert len(moved) == 15
    assert names["different"].obs.shape == (64, 7)
    assert names["reward"].shape == (16,)
    assert names["obs"].dtype == names["m"].body_mass.dtype


@pytest.mark.slow
def test_the_python_of_the_readme():
    text = (PAGE.parents[1] / "README.md").read_text()
    code = next(c for c in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "envs" in c)
    names: dict = {"jax": jax, "jnp": jnp}
    exec(compile(code, "README.md", "exec"), names)
    assert names["state"].obs.shape == (256, 5)
