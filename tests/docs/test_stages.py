"""The reference page of stages is current, and has a row for each stage."""

from pathlib import Path

from tools.stages import reference

from jaxsim.physics.stage import STAGES

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/stages.md"


def test_the_page_is_current():
    assert PAGE.read_text() == reference(), "write it again: python docs/tools/reference.py stages"
    assert all(f"| `{name}` |" in reference() for name in STAGES)
