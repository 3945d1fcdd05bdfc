"""A type checker knows the fields of Model and Data in the program of a user."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = """
import jaxsim

m = jaxsim.load_model("<mujoco/>")
d = jaxsim.step(m, jaxsim.make_data(m))
reveal_type(d.qpos)
reveal_type(d.sensordata)
reveal_type(d.ncon)
reveal_type(m.body_mass)
reveal_type(m.opt.timestep)
reveal_type(m.smooth)
d.qpos.position
"""
ARRAYS = 5  # of the fields that are revealed; `smooth` may be None


@pytest.mark.slow
def test_mypy_knows_arrays_of_real_numbers(tmp_path, monkeypatch):
    api = pytest.importorskip("mypy.api")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)  # the settings are those of a user
    text, errors, _ = api.run([str(program), "--cache-dir", str(tmp_path)])
    assert not errors
    types = re.findall(r'Revealed type is "(.*)"', text)
    assert [name.rpartition(".")[2] for name in types] == ["Array"] * ARRAYS + ["Any"], text
    assert '"Array" has no attribute "position"' in text
