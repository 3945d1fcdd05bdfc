"""The reference page of stages is current, and has a row for each stage."""

from pathlib import Path

from tools.functions import named
from tools.stages import reference

from jaxsim.physics.pipeline.stages import STAGES

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/stages.md"


def test_the_page_is_current():
    assert PAGE.read_text() == reference(), "write it again: python docs/tools/reference.py stages"
    assert all(f"| `{name}` |" in reference() for name in STAGES)


# Functions of MuJoCo's source that its header does not declare.
INTERNAL = {"mj_tendonBias", "mj_xfrcAccumulate"}


def test_counterparts_are_functions_of_mujoco():
    known = {row.mujoco for rows in named().values() for row in rows}
    assert {row.mujoco for row in STAGES.values()} - {"", *INTERNAL} <= known
