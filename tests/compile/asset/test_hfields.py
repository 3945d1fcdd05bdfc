"""Height fields equal MuJoCo's, from files, from the model, and under geoms."""

import numpy as np
import pytest
from compile.images import hf, png
from compile.oracle import assert_agrees, assert_refused

from jaxsim.compile import compile_string
from jaxsim.errors import ModelError

HEIGHTS = [1, 2, 3, 4, 5, 7]
FIELD = 'size="1 2 3 4"'
WRITTEN = f'<hfield name="h" nrow="2" ncol="3" {FIELD} elevation="1 2 3 4 5 7"/>'
FLAT = '<hfield name="z" nrow="2" ncol="3" size=".5 .2 .3 .1"/>'
GRAY = np.array([[0, 100, 200], [50, 60, 255]], np.uint8)
COLOR = np.stack([GRAY, GRAY[::-1], np.roll(GRAY, 1, 1)], axis=-1)
CUT_OFF = hf(2, 3, HEIGHTS)[:-4]


def model(asset: str, world: str = "") -> str:
    return f"<mujoco><asset>{asset}</asset><worldbody>{world}</worldbody></mujoco>"


@pytest.mark.parametrize(
    "attrs",
    [
        "",
        'elevation="1 2 3 4 5 7"',
        'elevation="3 3 3 3 3 3"',
        'elevation="-3 3 -1 1 0.5 2"',
    ],
)
def test_heights_in_the_model(attrs):
    assert_agrees(model(f'<hfield name="h" nrow="2" ncol="3" {FIELD} {attrs}/>{FLAT}'))


@pytest.mark.parametrize(
    ("file", "attrs", "data"),
    [
        ("a.hf", "", hf(2, 3, HEIGHTS)),
        ("a", 'nrow="7" elevation="1 2 3"', hf(2, 3, HEIGHTS)),
        ("a.png", 'content_type="image/vnd.mujoco.hfield"', hf(3, 2, HEIGHTS)),
        ("a.png", "", png(GRAY)),
        ("a.PNG", "", png(COLOR)),
        ("a.bin", 'content_type="image/png"', png(np.dstack([COLOR, 255 - GRAY]))),
        ("a.png", "", png(np.dstack([GRAY, 255 - GRAY]))),
        ("a.png", "", png(GRAY.astype(np.uint16) * 256 + 77)),
        ("a.png", "", png(GRAY > 99)),
        ("a.png", "", png(GRAY * 0 + 9)),
    ],
)
def test_heights_in_a_file(file, attrs, data):
    assert_agrees(model(f'<hfield file="{file}" {FIELD} {attrs}/>{FLAT}'), files={file: data})


@pytest.mark.parametrize(
    ("asset", "words"),
    [
        (f'<hfield name="h" nrow="1" ncol="3" {FIELD}/>', "must be 2 or more"),
        (f'<hfield name="h" {FIELD}/>', "or file be given"),
        (f'<hfield nrow="2" ncol="3" {FIELD}/>', "it needs a name"),
        ('<hfield name="h" nrow="2" ncol="3" size="1 1 0 1"/>', "four positive numbers"),
        (f'<hfield name="h" nrow="2" ncol="3" {FIELD} elevation="1 2"/>', "needs 6 numbers"),
        (f'<hfield file="a.hf" {FIELD}/>', "cannot find 'a.hf'"),
    ],
)
def test_what_mujoco_refuses_is_refused(asset, words):
    assert_refused(model(asset), words)


@pytest.mark.parametrize(
    ("file", "data", "words"),
    [
        ("a.hf", CUT_OFF, "2 x 3 heights take 32"),
        ("a.hf", hf(2, 3, [*HEIGHTS, 8]), "2 x 3 heights take 32"),
        ("a.hf", hf(2**30, 2**30, HEIGHTS), "truncated"),
        ("a.hf", hf(-2, 3, HEIGHTS), "2 x 2 is least"),
        ("a.hf", b"123", "its header alone takes 8"),
        ("a.hf", b"", "empty"),
        ("a.png", b"123", "no PNG image"),
        ("a.png", png(GRAY)[:-20], "truncated"),
        ("a.png", png(GRAY[:1]), "2 x 2 is least"),
    ],
)
def test_a_damaged_file_is_refused(file, data, words):
    assert_refused(model(f'<hfield file="{file}" {FIELD}/>'), words, files={file: data})


def test_an_unknown_media_type_is_refused():
    field = f'<hfield file="a.hf" content_type="image/jpg" {FIELD}/>'
    assert_refused(model(field), "image/jpg", files={"a.hf": hf(2, 3, HEIGHTS)})


def test_a_height_that_is_no_number_is_refused():
    with pytest.raises(ModelError, match="not a finite number"):
        compile_string(model(f'<hfield file="a" {FIELD}/>'), {"a": hf(2, 2, [1, 2, 3, np.nan])})


def test_an_absurd_size_is_refused_before_memory_is_spent():
    field = f'<hfield name="h" nrow="1000000" ncol="1000000" {FIELD}/>'
    with pytest.raises(ModelError, match="use fewer"):
        compile_string(model(field))


GEOMS = [
    '<geom type="hfield" hfield="h" pos="1 2 3" euler="0 0 30" size="9 9 9"/>',
    '<geom type="hfield" hfield="z"/>',
    '<body><geom type="hfield" hfield="h"/><geom size="1"/></body>',
    '<body><freejoint/><geom type="hfield" hfield="h" mass="3"/></body>',
    '<body><joint/><geom type="hfield" hfield="h" shellinertia="true" density="7"/></body>',
    '<body><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
    '<geom type="hfield" hfield="h"/></body>',
]


@pytest.mark.parametrize("world", GEOMS)
def test_geoms_of_type_hfield(world):
    assert_agrees(model(WRITTEN + FLAT, world))


@pytest.mark.parametrize(
    ("world", "words"),
    [
        ('<geom type="hfield"/>', "needs hfield"),
        ('<geom type="hfield" hfield="q"/>', "names no hfield"),
        ('<geom size="1" hfield="h"/>', "change the type"),
        ('<geom type="hfield" hfield="h" mesh="h"/>', "both hfield and mesh"),
        ('<geom type="hfield" hfield="h" fromto="0 0 0 1 1 1"/>', "fromto"),
        ('<site type="hfield" size="1 1 1"/>', "a site cannot be a height field"),
    ],
)
def test_geoms_that_mujoco_refuses(world, words):
    assert_refused(model(WRITTEN, world), words)
