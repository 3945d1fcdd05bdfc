"""Skins equal MuJoCo's, from files and from the model."""

import struct

import pytest
from compile.images import skn
from compile.oracle import assert_agrees, assert_refused

VERTEX, FACE, TEXCOORD = [[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], [[0, 0], [1, 0], [0, 1]]
REST = ([0, 0, 0], [1, 0, 0, 0])
BONE = ("b", [1, 2, 3], [2, 0, 0, 0], [0, 1, 2], [1, 1, 0.5])
GOOD = skn(VERTEX, TEXCOORD, FACE, [BONE])
WRITTEN = 'vertex="0 0 0 1 0 0 0 1 0" face="0 1 2"'
BONES = '<bone body="b" bindpos="1 2 3" bindquat="0 2 0 0" vertid="0 1 2" vertweight="1 1 2"/>'


def model(skin: str, section: str = "asset") -> str:
    body = '<body name="b"><geom size="1"/></body>'
    return f"<mujoco><{section}>{skin}</{section}><worldbody>{body}</worldbody></mujoco>"


def file(*bones, face=FACE, texcoord=()) -> bytes:
    return skn(VERTEX, texcoord, face, bones)


@pytest.mark.parametrize("section", ["asset", "deformable"])
@pytest.mark.parametrize(
    "data",
    [
        GOOD,
        file(("world", *REST, [0, 1, 2], [1, 1, 1])),
        file(("b", [0, 0, 0], [0, 0, 0, 0], [0, 1, 2], [1, 1, 1])),
        file(("b", *REST, [0, 1, 2, 2], [1, 1, 2, -1])),
        file(("b", *REST, [0, 1, 2], [1, 1, 3]), ("world", *REST, [2], [1])),
    ],
)
def test_skins_from_files(data, section):
    assert_agrees(model('<skin file="a.skn"/>', section), files={"a.skn": data})


@pytest.mark.parametrize(
    "skin",
    [
        f'<skin name="s" {WRITTEN}>{BONES}</skin>',
        f'<skin {WRITTEN} texcoord="0 0 1 0 0 1">{BONES}</skin>',
        '<material name="m"/>'
        '<skin file="a.skn" material="m" rgba="1 0 0 .5" inflate=".1" group="3"/>',
        f'<skin name="s" {WRITTEN}>{BONES}</skin><skin file="a.skn"/>'
        f'<skin name="u" {WRITTEN} texcoord="0 0 1 0 0 1">{BONES}</skin>',
        f'<skin name="s" {WRITTEN}>{BONES}</skin></asset><deformable>'
        f'<skin name="u" {WRITTEN}>{BONES}</skin></deformable><asset>',
    ],
)
def test_skins_in_the_model(skin):
    assert_agrees(model(skin), files={"a.skn": GOOD})


def test_those_of_the_assets_are_first():
    first = f'<skin name="u" {WRITTEN}>{BONES}</skin></deformable><asset>'
    second = f'<skin name="s" {WRITTEN}>{BONES}</skin></asset><deformable>'
    compiled = assert_agrees(model(first + second, "deformable"))
    assert compiled.names["skin"] == ("s", "u")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (file(("b", *REST, [0, 1], [1, 1])), "no bone moves vertex 2"),
        (file(("b", *REST, [0, 1, 2], [1, 1, 0])), "no bone moves vertex 2"),
        (file(("b", *REST, [0, 1, 3], [1, 1, 1])), "none of the 3"),
        (file(("q", *REST, [0, 1, 2], [1, 1, 1])), "a bone's body='q' names no body"),
        (file(BONE, face=[[0, 1, 3]]), "a face has a vertex"),
        (file(BONE, face=[]), "needs vertices, faces and bones"),
        (file(), "needs vertices, faces and bones"),
        (file(BONE, texcoord=TEXCOORD[:2]), "2 texture coordinates"),
        (GOOD[:-1], "ends 1 bytes early"),
        (GOOD[:60], "it is truncated"),
        (GOOD[:10], "its header alone takes 16"),
        (GOOD + b"1234", "4 bytes more"),
        (b"", "0 bytes"),
        (struct.pack("<4i", -1, 0, 0, 0), "negative count"),
        (struct.pack("<4i", 2**30, 0, 0, 0), "truncated"),
    ],
)
def test_a_damaged_file_is_refused(data, words):
    assert_refused(model('<skin file="a.skn"/>'), words, files={"a.skn": data})


@pytest.mark.parametrize(
    ("skin", "words"),
    [
        ('<skin name="s"/>', "needs vertices, faces and bones"),
        (f'<skin name="s" {WRITTEN}/>', "needs vertices, faces and bones"),
        (f'<skin name="s" {WRITTEN} texcoord="0 0">{BONES}</skin>', "texture coordinates"),
        (f'<skin name="s" vertex="0 0 0 1" face="0 1 2">{BONES}</skin>', "vertex has 4 numbers"),
        (f'<skin name="s" {WRITTEN} file="a.skn"/>', "both file='a.skn' and data"),
        (f'<skin name="s" file="a.skn">{BONES}</skin>', "both file='a.skn' and data"),
        ('<skin file="a.foo"/>', "must end in .skn"),
        ('<skin file="a.skn" group="6"/>', "between 0 and 5"),
        ('<skin file="a.skn" material="m"/>', "names no material"),
        ('<skin file="absent.skn"/>', "cannot find 'absent.skn'"),
        (
            f'<skin name="s" {WRITTEN}>{BONES.replace("1 1 2", "1 1")}</skin>',
            "3 vertices and 2 weights",
        ),
    ],
)
def test_what_mujoco_refuses_is_refused(skin, words):
    assert_refused(model(skin), words, files={"a.skn": GOOD, "a.foo": GOOD})
