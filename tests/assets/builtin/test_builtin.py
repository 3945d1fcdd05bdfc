"""Built-in meshes have MuJoCo's points, triangles and sensor frames, and its ranges."""

import mujoco
import numpy as np
import pytest
from tolerance import STORED_SINGLE

from jaxsim.assets.builtin.builtin import builtin_surface, has_no_volume
from jaxsim.errors import AssetError

SAME = """
    sphere 0 | sphere 1 | sphere 4 | sphere 1.7
    hemisphere 0 | hemisphere 1 | hemisphere 2 | hemisphere 10
    cone 4 0 | cone 3 .5 | cone 7 1
    supersphere 3 1 1 | supersphere 4 .5 2 | supersphere 10 .3 .7 | supersphere 6 0 0
    supertorus 3 .5 1 1 | supertorus 4 .5 .5 2 | supertorus 11 .2 .3 3
    wedge 1 1 90 45 0 | wedge 2 3 90 45 .5 | wedge 5 3 180 60 1
    plate 2 3 | plate 4 5 | plate 1.5 2
    grid 2 2 2 1 1 1 | grid 3 3 3 1 2 .5 | grid 3 2 1 1 1 1 2
    box 2 2 2 1 1 1 | box 3 2 4 .1 .2 .3 | box 3 4 5 .1 .2 .3 2 | box 2 2 2 1 1 1 2.5
    cylinder 3 2 4 .1 .2 .3 | cylinder 3 4 5 .1 .2 .3 2
    ellipsoid 3 2 4 .1 .2 .3 | ellipsoid 3 4 5 .1 .2 .3 2
    square 3 2 1 .1 .2 .3 | disc 3 4 1 .1 .2 .3 | disc 5 5 1 .1 .1 .1
"""

REFUSED = """
    sphere 5 | sphere -1 | sphere 1 2 | hemisphere 11 | hemisphere -1 | cone 2 1 | cone 3 1.1
    cone 3 -1 | cone 3 | plate 0 1 | plate 3 | wedge 0 1 90 45 0 | wedge 1 1 0 45 0
    wedge 1 1 190 45 0 | wedge 1 1 90 91 0 | wedge 1 1 90 45 2 | wedge 1 1 90 45
    supersphere 2 1 1 | supersphere 3 -1 1 | supersphere 3 1 -1 | supersphere 3 1
    supertorus 2 .5 1 1 | supertorus 3 0 1 1 | supertorus 3 1.5 1 1 | supertorus 3 .5 0 1
    supertorus 3 .5 1 0 | supertorus 3 .5 1 | grid 3 2 2 1 1 1 2 | grid 1 1 1 1 1 1
    grid 0 2 2 1 1 1 | grid 2 2 2 1 1 1 1 | grid 2 2 2 1 1 | box 1 2 2 1 1 1
    box 2 2 2 1 1 1 1 | square 2 2 2 1 1 1 | square 1 2 1 1 1 1 | disc 3 2 2 1 1 1
    square 2 2 1 1 1 1 2
"""


def cases(text: str) -> list[tuple[str, str]]:
    return [
        tuple(case.split(None, 1)) for case in text.replace("\n", "|").split("|") if case.strip()
    ]


def oracle(kind: str, params: str) -> tuple[mujoco.MjSpec, mujoco.MjsMesh]:
    """A spec, to be kept, and its mesh before it is compiled; ValueError if MuJoCo refuses it."""
    mesh = f'<mesh name="m" builtin="{kind}" params="{params}"/>'
    spec = mujoco.MjSpec.from_string(f"<mujoco><asset>{mesh}</asset></mujoco>")
    return spec, spec.meshes[0]


def ours(kind: str, params: str):
    return builtin_surface(kind, np.array(params.split(), float))


@pytest.mark.parametrize(("kind", "params"), cases(SAME))
def test_builtin_mesh_equals_mujoco(kind, params):
    surface = ours(kind, params)
    _, mesh = oracle(kind, params)
    np.testing.assert_allclose(surface.vertex.ravel(), mesh.uservert, **STORED_SINGLE)
    np.testing.assert_array_equal(surface.face.ravel(), mesh.userface)
    given = np.zeros(0) if surface.normal is None else surface.normal.ravel()
    np.testing.assert_allclose(given, mesh.usernormal, **STORED_SINGLE)


@pytest.mark.parametrize(("kind", "params"), cases(REFUSED))
def test_parameters_rejected_by_mujoco_are_rejected(kind, params):
    with pytest.raises(ValueError):  # noqa: PT011 - the oracle's own texts
        oracle(kind, params)
    with pytest.raises(AssetError, match=kind):
        ours(kind, params)


@pytest.mark.parametrize(("kind", "params"), cases(SAME))
def test_sheets_and_open_shells_have_no_volume(kind, params):
    _, mesh = oracle(kind, params)
    shell = mesh.inertia == mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    assert has_no_volume(kind, np.array(params.split(), float)) == shell


@pytest.mark.parametrize(
    ("kind", "params"), [("cone", "1e9 1"), ("grid", "5e3 5e3 5e3 1 1 1"), ("plate", "1e5 1e5")]
)
def test_too_large_sizes_are_rejected_before_allocation(kind, params):
    with pytest.raises(
        AssetError, match="points of a built-in mesh or a scene, the limit is 5000000: use fewer"
    ):
        ours(kind, params)


@pytest.mark.parametrize("params", ["nan", "inf"])
def test_parameters_are_finite(params):
    with pytest.raises(AssetError, match="must be finite"):
        ours("sphere", params)


def test_an_unknown_shape_is_refused_with_the_known_ones():
    with pytest.raises(AssetError, match="no built-in mesh 'ball'; there are box, cone"):
        ours("ball", "1")
