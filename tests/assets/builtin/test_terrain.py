"""Terrain: heights in meters where they belong, equal for equal seeds, flat where it must be."""

import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.assets.builtin import terrain
from jaxsim.compile import compile_spec
from jaxsim.spec import Spec

SIZE = (4.0, 3.0)
KINDS = {
    "flat": terrain.flat(SIZE),
    "rough": terrain.rough(SIZE, low=-0.1, high=0.3, scale=0.5, seed=3),
    "slope": terrain.slope(SIZE, slope=0.5, platform=1.0),
    "stairs": terrain.stairs(SIZE, step_height=0.1, step_width=0.3),
    "pit": terrain.stairs(SIZE, step_height=-0.1, step_width=0.3),
    "stones": terrain.stepping_stones(SIZE, jitter=0.1),
    "wave": terrain.wave(SIZE, amplitude=0.2, wavelength=1.5),
}


@pytest.mark.parametrize("kind", KINDS)
def test_ray_from_above_hits_the_height_field(kind):
    """In MuJoCo, from the text that is written: units, sides and signs."""
    ground, spec = KINDS[kind], Spec()
    ground.add_to(spec, "ground", pos=(1, 2, 0.5))
    m = mujoco.MjModel.from_xml_string(spec.to_xml())
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    chance = np.random.default_rng(0)
    for x, y in chance.uniform(-0.9, 0.9, (30, 2)) * np.array(SIZE) / 2:
        # a point of the grid, where two triangles cannot say otherwise
        x, y = (round(a / ground.spacing) * ground.spacing for a in (x, y))
        hit = np.zeros(1, np.int32)
        down = mujoco.mj_ray(
            m, d, [x + 1 + 1e-7, y + 2 + 1e-7, 9], [0, 0, -1], None, 1, -1, hit, None
        )
        assert 9 - down == pytest.approx(0.5 + ground.at(x, y), abs=2e-5)
    assert compile_spec(spec).fields["hfield_size"][0][:2] == pytest.approx([2, 1.5])


def test_heights_match_their_parameters():
    rough, slope, stairs = (KINDS[k] for k in ("rough", "slope", "stairs"))
    assert rough.height.shape == (31, 41)
    assert -0.1 <= rough.height.min() < -0.05
    assert 0.25 < rough.height.max() <= 0.3
    assert slope.at(0, 0) == slope.at(0.4, -0.4) == pytest.approx(0.5 * 1.0)
    assert slope.at(0, -1.0) == pytest.approx(0.25)
    for ground in (slope, stairs):
        edge = np.concatenate([ground.height[[0, -1]].ravel(), ground.height[:, [0, -1]].ravel()])
        assert not edge.any()
    assert set(np.round(stairs.height.ravel(), 9)) == {0, 0.1, 0.2, 0.3}
    assert np.allclose(np.diff(np.unique(np.round(stairs.height, 9))), 0.1)
    np.testing.assert_array_equal(KINDS["pit"].height, -stairs.height)
    wave = KINDS["wave"]
    x, y = 0.3, -0.7
    assert wave.at(x, y) == pytest.approx(
        0.1 * (np.sin(2 * np.pi * x / 1.5) + np.sin(2 * np.pi * y / 1.5))
    )
    stepped = terrain.rough((2, 2), low=-0.1, high=0.1, step=0.05)
    levels = np.unique(np.round(stepped.height, 9))
    np.testing.assert_allclose(levels, [-0.1, -0.05, 0, 0.05, 0.1], atol=1e-9)


def test_stones_have_their_width_and_the_middle_is_safe():
    stones = terrain.stepping_stones((7, 7), stone=0.5, gap=0.3, depth=2, platform=1.0)
    assert set(stones.height.ravel()) == {0.0, -2.0}
    assert stones.at(0, 0) == stones.at(0.5, 0.5) == 0
    row = stones.height[0] == 0
    np.testing.assert_array_equal(row[:16], [True] * 5 + [False] * 3 + [True] * 5 + [False] * 3)


def test_seeds():
    for make in (terrain.rough, terrain.stepping_stones):
        how = {"jitter": 0.1} if make is terrain.stepping_stones else {}
        one, same, other = (make(SIZE, seed=s, **how).height for s in (1, 1, 2))
        np.testing.assert_array_equal(one, same)
        assert (one != other).any()


def test_a_border_is_flat():
    for ground in (terrain.rough(SIZE, border=0.5), terrain.wave(SIZE, border=0.5)):
        assert not ground.height[:5].any()
        assert not ground.height[:, -5:].any()
        assert ground.height[5:-5, 5:-5].any()


def test_boxes_are_as_high_as_the_height_field():
    boxes = terrain.stairs_of_boxes((4, 4), step_height=0.1, step_width=0.3, platform=1.0)
    field = terrain.stairs((4, 4), step_height=0.1, step_width=0.3, platform=1.0)
    spec = Spec()
    boxes.add_to(spec, "step", pos=(0, 0, 1), rgba=[1, 0, 0, 1])
    m = mujoco.MjModel.from_xml_string(spec.to_xml())
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    for x in np.arange(-1.85, 0, 0.3):
        hit = np.zeros(1, np.int32)
        down = mujoco.mj_ray(m, d, [x, 0.01, 9], [0, 0, -1], None, 1, -1, hit, None)
        top = 9 - down - 1 if down >= 0 else 0
        assert top == pytest.approx(field.at(x, 0), abs=1e-9)
    stones = terrain.stones_of_boxes((4, 2), stone=0.5, gap=0.5, depth=1, jitter=0.1, seed=1)
    assert len(stones.pos) == 4 * 2
    tops = stones.pos[:, 2] + stones.size[:, 2]
    assert 0 < np.abs(tops).max() <= 0.1
    np.testing.assert_allclose(np.unique(stones.pos[:, 0]), [-1.5, -0.5, 0.5, 1.5])


def test_tiles_of_a_curriculum():
    kinds = [
        lambda level, seed: terrain.slope((4, 4), slope=level),
        lambda level, seed: terrain.rough((4, 4), low=0, high=0.1 * level, seed=seed),
    ]
    ground, origins = terrain.curriculum(kinds, levels=3)
    assert ground.size == (8, 12)
    assert origins.shape == (3, 2, 3)
    np.testing.assert_allclose(origins[:, 0], [(-2, -4, 0), (-2, 0, 0.75), (-2, 4, 1.5)])
    assert ground.at(2, -3) == 0
    with pytest.raises(ValueError, match="expected all of shape"):
        terrain.join([[terrain.flat((1, 1)), terrain.flat((1, 2))]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: terrain.flat((1, 0)), "size: expected positive multiples"),
        (lambda: terrain.flat((1, 1.05)), "size: expected positive multiples of the spacing 0.1"),
        (lambda: terrain.flat(3), "size: expected extents along x and y"),
        (lambda: terrain.flat((1, 1), spacing=0), "spacing: expected a positive number"),
        (lambda: terrain.flat((1e4, 1e4), spacing=0.1), "heights in one height field"),
        (lambda: terrain.rough((1, 1), low=1, high=0), "low: expected at most high"),
        (lambda: terrain.stairs((1, 1), step_width=0.05), "step_width: expected at least"),
        (lambda: terrain.stepping_stones((1, 1), gap=0), "gap: expected at least the spacing"),
        (lambda: terrain.wave((1, 1), wavelength=0), "wavelength: expected a positive number"),
        (lambda: terrain.stairs_of_boxes((1, 1)), "is too small for a step"),
    ],
)
def test_numbers_that_are_out_of_range(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_ball_rests_on_a_step():
    spec = Spec()
    terrain.stairs((4, 4)).add_to(spec, "stairs")
    ball = spec.at("worldbody").add("body", pos=[0, 0, 2])
    ball.add("freejoint")
    ball.add("geom", size=0.1)
    assert jaxsim.load_model(spec).ngeom == 2
