"""The motion of `clips.py`, prepared once for all formats."""

import pytest
from view.export.clips import MODEL, WORLDS, motion

import jaxsim
from jaxsim.view.export.clip import clip_of


@pytest.fixture(scope="session")
def recorded():
    return motion()


@pytest.fixture(scope="session")
def clip(recorded):
    pytest.importorskip("trimesh", reason="the extra export is not installed")
    return clip_of(jaxsim.load_model(MODEL), recorded, worlds=WORLDS)
