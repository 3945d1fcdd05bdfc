"""`jaxsim export`: a file, mistakes, exit codes."""

import json

import numpy as np
import pytest

from jaxsim.batch.trajectory import TrajectoryWriter
from jaxsim.cli import main
from jaxsim.cli.arguments import make_parser
from jaxsim.view.export.formats import FORMATS

ARM = """
<mujoco><worldbody><body name="arm"><joint name="elbow" axis="0 1 0"/>
  <geom name="arm" type="box" size="0.3 .1 .1"/></body></worldbody></mujoco>
"""


@pytest.fixture
def motion(tmp_path):
    (tmp_path / "arm.xml").write_text(ARM)
    path = tmp_path / "motion.npz"
    header = {"model": "arm.xml", "timestep": 0.04, "every": 1, "worlds": 2}
    with TrajectoryWriter(path, header) as writer:
        qpos = np.linspace(0, 0.5, 10).reshape(5, 2, 1)
        qpos[4] = np.nan
        writer.append({"qpos": qpos})
    return path


def test_a_file_next_to_the_motion(motion, capsys):
    for module in FORMATS["gltf"].modules:
        pytest.importorskip(module, reason="the extra export is not installed")
    assert main(["export", str(motion), "--to", "gltf"]) == 0
    out = capsys.readouterr().out
    assert "motion.glb: 4 frames, 2 bodies, " in out
    assert "left out    frames from 0.16 s on: poses are not finite\n" in out
    assert "left out    recorded fields: qpos\n" in out
    content = motion.with_suffix(".glb").read_bytes()
    length = int.from_bytes(content[12:16], "little")
    assert json.loads(content[20 : 20 + length])["nodes"][0]["name"] == "arm.xml"
    before = sorted(motion.parent.iterdir())
    assert main(["export", str(motion), "--to", "gltf", "--worlds", "3"]) == 2
    assert "asked for 3, the motion has 2" in capsys.readouterr().err
    assert sorted(motion.parent.iterdir()) == before
    assert motion.with_suffix(".glb").read_bytes() == content


@pytest.mark.parametrize("to", FORMATS)
def test_a_missing_extra_is_named(motion, capsys, monkeypatch, to):
    import jaxsim.optional as optional

    def missing(name):
        raise ImportError(f"No module named '{name}'")

    monkeypatch.setattr(optional.importlib, "import_module", missing)
    from jaxsim.cli.display.export import export

    args = make_parser().parse_args(["export", str(motion), "--to", to])
    with pytest.raises(optional.MissingExtra, match="install the extra 'export': pip install '"):
        export(args)


def test_another_ending_is_refused(motion, capsys):
    assert main(["export", str(motion), "--to", "usd", "--out", "motion.glb"]) == 2
    err = capsys.readouterr().err
    assert "--out: 'motion.glb' ends in none of .usdz, .usd, .usdc, .usda" in err


def test_the_command_offers_all_formats():
    commands = make_parser().commands.choices["export"]
    (to,) = (a for a in commands._actions if a.dest == "to")
    assert list(to.choices) == list(FORMATS)
