"""Textures and materials equal MuJoCo's, pixel by pixel."""

import random
import struct
import sys
import tracemalloc
import zlib

import numpy as np
import pytest
from compile.images import png, with_chunk
from compile.oracle import assert_agrees, assert_file_agrees, assert_refused, refusal

from jaxsim.assets.source.limits import limits
from jaxsim.compile import compile_string
from jaxsim.errors import ModelError

RNG = np.random.default_rng(0)
COLOR = RNG.integers(0, 255, (4, 4, 3), dtype=np.uint8)
GRAY = COLOR[..., 0]
SKY = RNG.integers(0, 255, (6, 8, 3), dtype=np.uint8)
SIDES = {f"{side}.png": png(COLOR[:, :, [i % 3] * 3]) for i, side in enumerate("rludfb")}
SIX = " ".join(
    f'file{side}="{side[0]}.png"' for side in ("right", "left", "up", "down", "front", "back")
)
LAYOUT = 'gridsize="3 4" gridlayout=".U..LFRB.D.."'


def model(asset: str, compiler: str = "") -> str:
    return f"<mujoco>{compiler}<asset>{asset}</asset></mujoco>"


def texture(attrs: str) -> str:
    return model(f"<texture {attrs}/>")


@pytest.mark.parametrize("kind", ["2d", "cube", "skybox"])
@pytest.mark.parametrize("builtin", ["flat", "checker", "gradient"])
@pytest.mark.parametrize("mark", ["none", "edge", "cross", "random"])
def test_patterns(kind, builtin, mark):
    colors = 'rgb1=".1 .5 .9" rgb2="0.321 1 .3" markrgb="1 .01 .6" random=".2"'
    attrs = f'type="{kind}" builtin="{builtin}" mark="{mark}" {colors}'
    many = "".join(
        f'<texture name="{w}-{h}" width="{w}" height="{h}" {attrs}/>'
        for w, h in ((64, 64), (5, 7), (80, 33), (2, 2), (1, 1))
    )
    assert_agrees(model(many))


@pytest.mark.parametrize(
    "attrs",
    [
        'name="t" builtin="flat" width="2"',
        'name="t" type="2d" builtin="flat" width="3" height="2" rgb1="2 -1 .5"',
        'name="t" type="2d" builtin="checker" hflip="true" width="3" height="3"',
        'name="t" type="2d" builtin="flat" colorspace="sRGB" width="3" height="2"',
        'name="t" type="2d" builtin="flat" width="2" height="2" gridsize="5 5"',
        'name="t" type="2d" builtin="flat" width="2" height="2" file="absent.png"',
        'type="skybox" builtin="flat" width="3" height="2"',
    ],
)
def test_pattern_attributes(attrs):
    assert_agrees(texture(attrs))


FLIPS = ("", 'hflip="true"', 'vflip="true"', 'hflip="true" vflip="true"')


@pytest.mark.parametrize("flip", FLIPS)
@pytest.mark.parametrize("kind", ["2d", "cube", "skybox"])
def test_one_image(kind, flip):
    assert_agrees(texture(f'type="{kind}" {flip} file="a.png"'), files={"a.png": png(COLOR)})


@pytest.mark.parametrize("nchannel", [1, 3, 4])
@pytest.mark.parametrize(
    "data",
    [
        png(COLOR),
        png(np.dstack([COLOR, 255 - GRAY])),
        png(GRAY),
        png(np.dstack([GRAY, 255 - GRAY])),
        png(GRAY.astype(np.uint16) * 256 + 99),
        png(GRAY > 100),
        png(COLOR, transparency=tuple(int(x) for x in COLOR[0, 0])),
    ],
    ids=["color", "opacity", "gray", "gray opacity", "deep", "bits", "transparent color"],
)
def test_channels(data, nchannel):
    assert_agrees(texture(f'type="2d" nchannel="{nchannel}" file="a.png"'), files={"a.png": data})


@pytest.mark.parametrize("colorspace", ["auto", "linear", "sRGB"])
@pytest.mark.parametrize("chunk", [(b"sRGB", b"\0"), (b"gAMA", b"\0\0\xb1\x8f")])
def test_color_space(colorspace, chunk):
    files = {"a.png": with_chunk(png(COLOR), *chunk)}
    assert_agrees(texture(f'type="2d" colorspace="{colorspace}" file="a.png"'), files=files)


@pytest.mark.parametrize("flip", FLIPS)
@pytest.mark.parametrize(
    "attrs",
    [
        f'name="t" {SIX}',
        'name="t" fileright="r.png" fileup="u.png" fileback="b.png" rgb1=".1 .5 .9"',
        'type="skybox" fileleft="l.png"',
        f'name="t" type="skybox" file="sky.png" {LAYOUT} rgb1=".1 .1 .1"',
        'name="t" file="sky.png" gridsize="3 4" gridlayout="RR.........."',
        'name="t" file="sky.png" gridsize="3 4"',
        'name="t" file="r.png" fileright="l.png"',
    ],
)
def test_sides_of_a_cube(attrs, flip):
    assert_agrees(texture(f"{attrs} {flip}"), files={**SIDES, "sky.png": png(SKY)})


@pytest.mark.parametrize("attrs", ["", 'nchannel="4"', 'colorspace="sRGB"'])
def test_ktx_is_kept_as_it_is(attrs):
    assert_agrees(texture(f'type="2d" file="a.ktx" {attrs}'), files={"a.ktx": b"abcdefghij"})


def test_media_types_decide():
    assert_agrees(texture('type="2d" file="a" content_type="image/png"'), files={"a": png(COLOR)})
    assert_agrees(texture('type="2d" file="a.png" content_type="image/ktx"'), files={"a.png": b"a"})


@pytest.mark.parametrize("passthrough", ["none", "textures"])
@pytest.mark.parametrize("embed", ["auto", "true", "false"])
def test_textures_by_reference(tmp_path, passthrough, embed):
    (tmp_path / "a.png").write_bytes(png(COLOR))
    asset = (
        f'<texture name="a" file="a.png" embed="{embed}"/>'
        '<texture name="b" builtin="flat" width="2"/>'
        '<texture name="c" file="a.png" hflip="true"/>'
    )
    path = tmp_path / "model.xml"
    path.write_text(model(asset, f'<compiler passthrough="{passthrough}"/>'))
    assert_file_agrees(str(path))


@pytest.mark.parametrize(
    ("attrs", "words"),
    [
        ('name="t"', "needs a file"),
        ('type="2d" name="t"', "needs a file"),
        ('type="2d" name="t" fileright="r.png"', "needs a file"),
        ('type="2d" builtin="flat" width="3" height="2"', "needs a name"),
        ('fileright="r.png"', "needs a name"),
        ('name="t" type="2d" builtin="flat" width="0" height="1"', "at least 1"),
        ('name="t" type="2d" builtin="flat" width="3"', "width and height"),
        ('name="t" builtin="flat" width="-2"', "at least 1"),
        ('name="t" type="2d" builtin="flat" width="3" height="2" nchannel="4"', "must be 3"),
        ('type="2d" file="r.png" nchannel="2"', "none of 1, 3, 4"),
        ('file="r.png" nchannel="1"', "nchannel='3'"),
        ('type="2d" file="absent.png"', "cannot find 'absent.png'"),
        ('name="t" fileright="absent.png"', "cannot find 'absent.png'"),
        ('type="2d" file="a.jpg"', "convert it to PNG"),
        ('type="2d" file="r.png" content_type="image/jpg"', "content_type='image/jpg'"),
        ('file="a.ktx"', "made of PNG images"),
        ('type="2d" file="a.ktx" hflip="true"', "cannot be flipped"),
        ('type="2d" file="empty.ktx"', "is empty"),
        ('file="wide.png"', "do not make 1 x 1 squares"),
        ('name="t" fileright="r.png" fileleft="wide.png"', "6 x 8 pixels"),
        ('name="t" file="wide.png" gridsize="2 5"', "do not make 2 x 5 squares"),
        ('name="t" file="wide.png" gridsize="4 4"', "from 1 to 12 cells"),
        ('name="t" file="wide.png" gridsize="3 4" gridlayout="RL"', "2 cells"),
        ('name="t" file="r.png" embed="false"', "is in memory"),
        ('name="t" builtin="flat" width="2" embed="false"', "built-in pattern"),
    ],
)
def test_what_mujoco_refuses_is_refused(attrs, words):
    files = {**SIDES, "wide.png": png(SKY), "a.jpg": b"a", "a.ktx": b"a", "empty.ktx": b""}
    assert_refused(texture(attrs), words, files=files)


def test_absurd_sizes_are_refused_before_memory_is_spent():
    with pytest.raises(ModelError, match="use fewer"):
        compile_string(texture('name="t" builtin="flat" width="1000000"'))


def broken(kind: bytes, change) -> bytes:
    """A PNG file with one chunk changed, and the checksum that belongs to it."""
    data = png(COLOR)
    at = data.index(kind) - 4
    end = at + 8 + int.from_bytes(data[at : at + 4])
    body = change(data[at + 8 : end])
    check = zlib.crc32(kind + body).to_bytes(4)
    return data[:at] + len(body).to_bytes(4) + kind + body + check + data[end + 4 :]


DAMAGED = {
    "text": (b"abc", "no PNG image"),
    "end": (png(COLOR)[:-20], "truncated"),
    "half": (png(COLOR)[:60], "truncated"),
    "checksum": (png(COLOR)[:-1] + b"\0", "does not match its checksum"),
    "kind": (with_chunk(png(COLOR), b"ab1d", b""), "the kind 'ab1d'"),
    "critical": (with_chunk(png(COLOR), b"ABCD", b""), "must not be ignored"),
    "colors": (broken(b"IHDR", lambda b: b[:9] + b"\5" + b[10:]), "no color type 5 with 8 bits"),
    "empty": (broken(b"IHDR", lambda b: bytes(4) + b[4:]), "has 4 x 0 pixels"),
    "rows": (broken(b"IHDR", lambda b: b[:7] + b"\5" + b[8:]), "5 x 4 need 65"),
    "packed": (broken(b"IDAT", lambda b: b[:-3]), "need 52"),
    "adler": (broken(b"IDAT", lambda b: b[:-1] + b"\0"), "pixels of the PNG image are damaged"),
    "filter": (broken(b"IDAT", lambda b: zlib.compress(b"\5" + bytes(51))), "has filter 5"),
    "more": (broken(b"IDAT", lambda b: zlib.compress(bytes(60))), "need 52"),
    "gamma": (with_chunk(png(COLOR), b"gAMA", b"\0"), "gAMA of the PNG image has 1 bytes"),
    "text chunk": (with_chunk(png(COLOR), b"zTXt", b"key\0\0no"), "zTXt of the PNG image is"),
    "profile": (with_chunk(png(COLOR), b"iCCP", b"key\0\0" + zlib.compress(b"")), "is empty"),
}


@pytest.mark.parametrize(("data", "words"), DAMAGED.values(), ids=DAMAGED)
@pytest.mark.parametrize("kind", ["2d", "cube"])
def test_a_damaged_image_is_refused_where_mujoco_refuses_it(kind, data, words):
    assert_refused(texture(f'type="{kind}" file="a.png"'), words, files={"a.png": data})


IMAGES_OF_ALL_KINDS = [
    png(COLOR),
    png(np.dstack([COLOR, GRAY])),
    png(GRAY),
    png(GRAY > 100),
    png(GRAY.astype(np.uint16) * 200),
    png(COLOR, transparency=(1, 2, 3)),
]
CHUNKS = (
    "tRNS bKGD tEXt zTXt iTXt iCCP sBIT tIME pHYs gAMA cHRM sRGB eXIf cICP mDCV cLLI sPLT".split()
)
BODIES = [
    b"",
    *(bytes(n) for n in (1, 2, 3, 4, 6, 7, 8, 9, 24, 32)),
    b"key\0\0" + zlib.compress(b"text"),
    b"key\0\0\0\0\0text",
    b"key\0\1\0en\0word\0" + zlib.compress(b"text"),
    b"key\0\1\0en\0word\0no",
    b"\0text",
    80 * b"k" + b"\0text",
]


@pytest.mark.parametrize("seed", range(4))
def test_rejected_files_are_those_mujoco_rejects(seed):
    """Files with bytes changed or left out, and with chunks that may not fit."""
    chance = random.Random(seed)
    for _ in range(150):
        data = bytearray(chance.choice(IMAGES_OF_ALL_KINDS))
        kind, at = chance.randrange(4), chance.randrange(len(data))
        if kind == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            data = data[:at]
        else:
            chunk = chance.choice(CHUNKS).encode()
            data = bytearray(with_chunk(bytes(data), chunk, chance.choice(BODIES)))
        files = {"a.png": bytes(data)}
        text = texture('type="2d" file="a.png"')
        theirs = refusal(text, files)
        try:
            compile_string(text, files)
            ours = None
        except ModelError as error:
            ours = str(error)
        assert (ours is None) == (theirs is None), (ours, theirs, bytes(data))


def test_a_large_image_is_refused_until_the_limit_is_raised():
    data = png(np.zeros((64, 64, 3), np.uint8))
    text = texture('type="2d" file="a.png"')
    remedy = r"12288 bytes of pixels in one image, the limit is 12287: .*\(image_bytes=12288\)"
    with limits(image_bytes=12287), pytest.raises(ModelError, match=remedy):
        compile_string(text, {"a.png": data})
    with limits(image_bytes=12288):
        compile_string(text, {"a.png": data})


def test_an_image_that_claims_to_be_large_takes_no_memory():
    data = broken(b"IHDR", lambda b: struct.pack(">II", 2**30, 2**30) + b[8:])
    with pytest.raises(ModelError, match="bytes of pixels in one image"):
        compile_string(texture('type="2d" file="a.png"'), {"a.png": data})


@pytest.mark.parametrize("kind", ["2d", "cube"])
@pytest.mark.parametrize("look", ["gradient", "checker", "flat", 'flat" mark="random'])
def test_drawing_takes_little_more_memory_than_the_pixels(kind, look):
    text = texture(f'name="t" type="{kind}" builtin="{look}" width="1000" height="1000"')
    tracemalloc.start()
    try:
        size = compile_string(text).fields["ntexdata"]
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # the pixels, their copy among those of all textures, and the parts that are worked on
    assert most < 3 * size + 2**25


def test_without_pillow_a_model_compiles_and_the_note_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.PngImagePlugin", None)
    files = {"a.png": SIDES["r.png"]}
    compiled = compile_string(texture('type="2d" file="a.png"'), files)
    assert b"install the extra 'images': pip install '" in compiled.fields["tex_notes"]
    field = '<hfield file="a.png" size="1 1 1 1"/>'
    with pytest.raises(ModelError, match="install the extra 'images'"):
        compile_string(model(field), files)


IMAGES = "".join(
    f'<texture name="{name}" type="2d" builtin="flat" width="2" height="2"/>' for name in "ab"
)


@pytest.mark.parametrize(
    "material",
    [
        "",
        '<material name="m"/><material name="n" texture="b"/>',
        '<material name="m" rgba="2 0 0 1" specular="3" shininess="-1" texrepeat="0 -1"/>',
        '<material name="m" texuniform="true" metallic="2" roughness=".1" reflectance=".3"/>',
        '<material name="m" texture="" emission=".1"/>',
        '<material name="m"><layer texture="a" role="normal"/><layer texture="b" role="orm"/>'
        "</material>",
        '<material name="m"><layer texture="a" role="rgb"/><layer texture="b" role="rgb"/>'
        "</material>",
    ],
)
def test_materials(material):
    assert_agrees(model(IMAGES + material))


@pytest.mark.parametrize(
    ("material", "words"),
    [
        ('<material name="m" texture="zz"/>', "names no texture"),
        ('<material name="m"><layer texture="zz" role="rgb"/></material>', "names no texture"),
        ('<material texture="a"/>', "name"),
        (
            '<material name="m" texture="a"><layer texture="a" role="rgb"/></material>',
            "exclude each other",
        ),
    ],
)
def test_materials_that_mujoco_refuses(material, words):
    assert_refused(model(IMAGES + material), words)
