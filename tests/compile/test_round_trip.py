"""A model that is written as MJCF and read again compiles to the same arrays, bit for bit."""

import importlib.util
from pathlib import Path

import mujoco
import numpy as np
import pytest

from jaxsim.compile import compile_spec, flatten
from jaxsim.errors import ModelError
from jaxsim.spec import Spec

ROOT = Path(__file__).resolve().parents[2]


def _benchmark():
    spec = importlib.util.spec_from_file_location("round_trip", ROOT / "benchmarks/round_trip.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


round_trip = _benchmark().round_trip
differences = _benchmark().differences

CONFIGS = sorted((ROOT / "configs").glob("*.xml"))


def _models_of(package: str, pattern: str) -> list[Path]:
    found = importlib.util.find_spec(package)
    places = found.submodule_search_locations if found else None
    return sorted(Path(places[0]).glob(pattern)) if places else []


def _name(path: Path) -> str:
    return "/".join(path.with_suffix("").parts[-3:])


SUITE = _models_of("dm_control", "suite/*.xml")


@pytest.mark.parametrize("path", CONFIGS + SUITE, ids=_name)
def test_written_and_read(path):
    assert round_trip(str(path)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    _models_of("mujoco", "testdata/**/*.xml") + _models_of("metaworld", "assets/**/*.xml")[::5],
    ids=_name,
)
def test_written_and_read_with_meshes(path):
    try:
        changed = round_trip(str(path))
    except ModelError:
        # parts of models, which MuJoCo refuses too; whatever else we refuse is a fault
        with pytest.raises(ValueError, match=r"\w"):
            mujoco.MjModel.from_xml_path(str(path))
        return
    assert changed == []


@pytest.mark.parametrize("path", CONFIGS, ids=_name)
def test_flat_models(path):
    spec = Spec.from_file(path)
    assert differences(compile_spec(spec), compile_spec(flatten(spec))) == []


EXPANDED = """
    <mujoco>
      <default><geom size=".1"/></default>
      <worldbody>
        <body name="arm"><joint name="j"/><geom name="g"/></body>
        <replicate count="3" offset="1 0 0" euler="0 0 10">
          <body name="link"><joint name="k"/><geom/><site name="tip"/></body>
        </replicate>
        <frame pos="0 0 2"><attach body="arm" prefix="other-"/></frame>
      </worldbody>
      <sensor><framepos objtype="site" objname="tip"/></sensor>
      <keyframe><key qpos="1 2 3 4 5"/></keyframe>
    </mujoco>"""


def test_flat_model_has_no_shorthand_elements():
    spec = Spec.from_string(EXPANDED)
    flat = flatten(spec)
    assert not {"replicate", "attach"} & {e.tag for e in flat.walk()}
    assert differences(compile_spec(spec), compile_spec(Spec.from_string(flat.to_xml()))) == []
    theirs = mujoco.MjModel.from_xml_string(flat.to_xml())
    np.testing.assert_allclose(compile_spec(spec).fields["body_quat"], theirs.body_quat, atol=1e-15)


SCALED = """
    <mujoco>
      <worldbody>
        <frame scale="2" massscale="3">
          <body name="arm">
            <joint name="j" range="0 1" damping="1"/><geom size=".1"/><site name="s" pos="0 0 1"/>
          </body>
        </frame>
      </worldbody>
      <actuator><position joint="j" kp="3" ctrlrange="-1 1"/><motor joint="j" gear="2"/></actuator>
      <keyframe><key ctrl="1 2"/></keyframe>
    </mujoco>"""


def test_scaled_frames():
    spec = Spec.from_string(SCALED)
    flat = flatten(spec)
    before, after = compile_spec(spec), compile_spec(Spec.from_string(flat.to_xml()))
    assert differences(before, after) == []
