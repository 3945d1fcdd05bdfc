"""`python -m jaxsim.mjx program.py`: a program whose imports are those of MJX."""

import subprocess
import sys
from pathlib import Path

import pytest

from jaxsim.mjx.__main__ import lacking_names, main

PROGRAM = """
import sys

import mujoco
import mujoco.mjx as aliased
from mujoco import mjx
from mujoco.mjx._src import math
from mujoco.mjx._src.dataclasses import PyTreeNode
from mujoco.mjx._src.types import JointType

model = mujoco.MjModel.from_xml_string(
    "<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>"
)
m = mjx.put_model(model)
d = mjx.step(m, mjx.make_data(m))
assert aliased is mjx and type(d) is mjx.Data
assert mujoco.mjx._src.math.quat_inv(d.xquat[1]).shape == (4,)
print(sys.argv[1:], type(m).__module__, JointType.HINGE.name, float(d.time))
if len(sys.argv) > 2:
    mjx.device_put(model)
"""
LACKING = """
from mujoco import mjx
import mujoco.mjx._src.nothing
from mujoco.mjx._src.mesh import convex, box
from mujoco.mjx._src import smooth as s

mjx.device_put(1)
s.tendon_dot(mjx.Model.nothing, s.kinematics)
other.mjx.nothing
"""


def run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "jaxsim.mjx", str(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_program_runs_as_it_is(tmp_path):
    done = run(tmp_path, "--fast")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['--fast'] jaxsim.model.model HINGE 0.0020000000949949026\n"
    done = run(tmp_path, "--fast", "--old")
    assert done.returncode == 1
    assert "AttributeError: jaxsim.mjx has no 'device_put': put_model(model)" in done.stderr
    line = PROGRAM.splitlines().index("    mjx.device_put(model)") + 1
    assert f"program.py:{line}: jaxsim.mjx has no 'device_put'" in done.stderr


def test_names_without_a_counterpart_are_listed_with_their_lines(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(LACKING)
    found = [(line, text.partition(":")[0]) for line, text in lacking_names(program)]
    assert found == [
        (3, "jaxsim.mjx._src has no 'nothing'"),
        (4, "jaxsim.mjx._src.mesh has no 'convex'"),
        (4, "jaxsim.mjx._src.mesh has no 'box'"),
        (7, "jaxsim.mjx has no 'device_put'"),
        (8, "jaxsim.mjx._src.smooth has no 'tendon_dot'"),
    ]


def test_usage_is_printed_without_a_program(tmp_path, capsys):
    assert main([]) == 2
    assert main(["--help"]) == 0
    assert main([str(tmp_path / "none")]) == 2
    said = capsys.readouterr().err
    assert said.count("usage: python -m jaxsim.mjx PROGRAM.py") == 3
    assert "none: no such file" in said
