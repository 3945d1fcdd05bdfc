"""Model archives: `.mjz` between MuJoCo and us, their limits, and damaged or hostile ones."""

import io
import os
import random
import zipfile
from collections.abc import Mapping
from pathlib import Path

import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.assets.source.limits import limits
from jaxsim.compile import compile_file, compile_spec
from jaxsim.errors import ModelError
from jaxsim.spec import Spec

TETRAHEDRON = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
TALL = TETRAHEDRON.replace(b"v 0 0 1", b"v 0 0 3")
HEIGHTS = np.array([2, 3], "i4").tobytes() + np.arange(6, dtype="f4").tobytes()
BALL = b"<mujoco><worldbody><geom size='1'/></worldbody></mujoco>"
CHILD = b"""
<mujoco model="child"><compiler meshdir="parts"/><asset><mesh file="a.obj"/></asset>
  <worldbody><body name="b"><geom type="mesh" mesh="a"/></body></worldbody></mujoco>
"""
PART = b"<mujoco><worldbody><geom type='mesh' mesh='c' pos='0 2 0'/></worldbody></mujoco>"
MAIN = b"""
<mujoco model="scene">
  <compiler meshdir="meshes"/>
  <asset>
    <mesh name="a" file="sub/a.obj"/>
    <mesh file="b.obj"/>
    <mesh name="c" file="../outer/a.obj"/>
    <hfield name="h" file="h.bin" size="1 1 1 1"/>
    <model name="child" file="models/child.xml"/>
  </asset>
  <include file="inc/part.xml"/>
  <worldbody>
    <geom type="mesh" mesh="a"/><geom type="mesh" mesh="b" pos="3 0 0"/>
    <geom type="hfield" hfield="h"/>
    <attach model="child" body="b" prefix="x"/>
  </worldbody>
</mujoco>
"""
FILES = {
    "scene.xml": MAIN,
    "meshes/sub/a.obj": TETRAHEDRON,
    "meshes/b.obj": TALL,
    "meshes/h.bin": HEIGHTS,
    "outer/a.obj": TETRAHEDRON.replace(b"v 1 0 0", b"v 2 0 0"),
    "inc/part.xml": PART,
    "models/child.xml": CHILD,
    "models/parts/a.obj": TETRAHEDRON.replace(b"v 0 1 0", b"v 0 2 0"),
}


def zipped(files: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", packing) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


@pytest.fixture
def scene(tmp_path):
    """The folder of a model with files of all kinds."""
    for name, data in FILES.items():
        path = tmp_path / "scene" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "scene" / "scene.xml"


FIELDS = ("mesh_vert", "mesh_face", "hfield_data", "geom_pos", "geom_size", "body_inertia")


def assert_same(fields, other):
    for name in FIELDS:
        a, b = (f[name] if isinstance(f, Mapping) else getattr(f, name) for f in (fields, other))
        np.testing.assert_allclose(np.ravel(a), np.ravel(b), atol=1e-6, err_msg=name)


def test_written_by_mujoco_is_read_here(scene, tmp_path):
    spec = mujoco.MjSpec.from_file(str(scene))
    m = spec.compile()
    for name in ("a.mjz", "b.zip"):
        spec.encode(str(tmp_path / name), model=m)
        assert_same(compile_file(tmp_path / name).fields, m)
    assert jaxsim.load_model(tmp_path / "a.mjz").ngeom == m.ngeom


def test_written_here_is_read_by_mujoco_and_here(scene, tmp_path):
    spec = Spec.from_file(scene)
    there = tmp_path / "out.mjz"
    spec.to_zip(there)
    with zipfile.ZipFile(there) as archive:
        assert set(archive.namelist()) == {
            "model.xml",
            "child.xml",
            "meshes/sub/a.obj",
            "meshes/b.obj",
            "meshes/h.bin",
            "outer/a.obj",
            "models/parts/a.obj",
        }
    scene.unlink()  # what is read now is in the archive
    expected = compile_spec(Spec.from_file("scene.xml", FILES)).fields
    assert_same(compile_file(there).fields, expected)
    assert_same(expected, mujoco.MjSpec.from_file(str(there)).compile())
    again = Spec.from_file(there)
    names = {e.asset_name for e in again.elements("mesh")}
    assert names == {"a", "b", "c"}

    # archives of streams, and of what was read from one
    stream = io.BytesIO()
    again.to_zip(stream)
    assert_same(compile_spec(Spec.from_zip(io.BytesIO(stream.getvalue()))).fields, expected)
    second = io.BytesIO()
    Spec.from_zip(io.BytesIO(stream.getvalue())).to_zip(second)
    assert stream.getvalue() == second.getvalue()


def test_files_from_elsewhere_are_taken_along(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "a.obj").write_bytes(TETRAHEDRON)
    (tmp_path / "other" / "a.obj").write_bytes(TALL)
    (tmp_path / "m" / "m.xml").write_text(
        f"""<mujoco><asset><mesh file="../a.obj"/><mesh name="t" file="{tmp_path}/other/a.obj"/>
        </asset><worldbody><geom type="mesh" mesh="a"/><geom type="mesh" mesh="t"/></worldbody>
        </mujoco>"""
    )
    spec = Spec.from_file(tmp_path / "m" / "m.xml")
    stream = io.BytesIO()
    spec.to_zip(stream)
    assert zipfile.ZipFile(stream).namelist() == ["model.xml", "assets/a.obj", "assets/a_2.obj"]
    there = compile_spec(Spec.from_zip(io.BytesIO(stream.getvalue())))
    assert_same(there.fields, compile_spec(spec).fields)
    memory = Spec.from_string("<mujoco/>", {"a.obj": TETRAHEDRON})
    memory.at("asset").add("mesh", file="x/a.obj")
    memory.at("asset").add("mesh", file="b.obj", name="b")
    with pytest.raises(ModelError, match=r"<mesh name='b'>: file='b\.obj': cannot find 'b\.obj'"):
        memory.to_zip(stream)


NAMES = [
    ("model.xml", "arm.xml", "arm/arm.xml", "arm/model.xml"),
    ("arm.xml", "arm/arm.xml", "arm/model.xml"),
    ("arm/arm.xml", "arm/model.xml", "other.xml"),
    ("arm/model.xml", "other.xml"),
    ("any/name.xml", "arm.obj"),
    ("robot.urdf",),
]


@pytest.mark.parametrize("names", NAMES)
def test_the_model_of_an_archive_is_found_in_the_order_of_mujoco(names, tmp_path):
    path = tmp_path / "arm.mjz"
    bad = dict.fromkeys(names[:0:-1], b"<mujoco>")
    good = b"<robot name='r'><link name='l'/></robot>" if names[0].endswith("urdf") else BALL
    path.write_bytes(zipped({**bad, names[0]: good}))
    assert compile_file(path).fields["nbody"] >= 1
    if len(names) > 2:
        assert mujoco.MjSpec.from_file(str(path)).compile().ngeom == 1


def test_archives_without_one_model(tmp_path):
    path = tmp_path / "arm.mjz"
    path.write_bytes(zipped({"a.xml": BALL, "b.xml": BALL}))
    with pytest.raises(ModelError, match=r"several model files, 'a\.xml', 'b\.xml', and none is"):
        jaxsim.load_model(path)
    path.write_bytes(zipped({"a.npy": b""}))
    with pytest.raises(ModelError, match=r"has no model file, it has 'a\.npy'; put the model in"):
        jaxsim.load_model(path)
    with pytest.raises(ModelError, match=r"has no model file, it has no file"):
        jaxsim.load_model("a.zip", {"a.zip": zipped({})})


REFERENCE = b"""<mujoco><asset><mesh name="a" file="%s"/></asset><worldbody>
<geom type="mesh" mesh="a"/></worldbody></mujoco>"""


@pytest.mark.parametrize("how", ["above", "absolute", "here"])
def test_a_model_in_an_archive_opens_no_other_file(tmp_path, how, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.obj").write_bytes(TETRAHEDRON)
    name = {"above": "../secret.obj", "absolute": f"{tmp_path}/secret.obj", "here": "secret.obj"}
    files = {"model.xml": REFERENCE % name[how].encode()}
    (tmp_path / "arm.mjz").write_bytes(zipped(files))
    with pytest.raises(ModelError, match=r"in the archive 'arm\.mjz', which must have all files"):
        compile_file("arm.mjz")
    included = {"model.xml": f"<mujoco><include file='{name[how]}'/></mujoco>".encode()}
    (tmp_path / "arm.mjz").write_bytes(zipped(included))
    (tmp_path / "secret.obj").write_bytes(PART)
    with pytest.raises(ModelError, match="cannot find '"):
        compile_file("arm.mjz")


def test_files_in_memory_come_before_those_of_an_archive(tmp_path):
    files = {"model.xml": REFERENCE % b"m/a.obj", "m/a.obj": TETRAHEDRON}
    (tmp_path / "arm.mjz").write_bytes(zipped(files))
    highest = [
        np.ptp(compile_file(tmp_path / "arm.mjz", given).fields["mesh_vert"], axis=0).max()
        for given in (None, {"m/a.obj": TALL})
    ]
    assert highest[1] > 2 * highest[0]


@pytest.mark.parametrize("name", ["../a.xml", "/a.xml", "a/../../b.xml", "..\\a.xml", "C:\\a.xml"])
def test_names_that_lead_out_of_an_archive(name, tmp_path):
    (tmp_path / "a.mjz").write_bytes(zipped({"model.xml": BALL, name: b""}))
    with pytest.raises(ModelError, match=r"a\.mjz: the name '.*' leads out of the archive"):
        jaxsim.load_model(tmp_path / "a.mjz")


def test_archives_that_unpack_to_too_much(tmp_path):
    path = tmp_path / "a.mjz"
    path.write_bytes(zipped({"model.xml": BALL, "zeros.bin": bytes(100_000)}))
    size = 100_000 + len(BALL)
    message = rf"a\.mjz: {size} bytes that an archive unpacks to, the limit is 99999: .*--limit"
    with limits(archive_bytes=99_999), pytest.raises(ModelError, match=message):
        jaxsim.load_model(path)
    with limits(archive_bytes=size):
        assert compile_file(path).fields["ngeom"] == 1


def test_damaged_archives_have_one_error():
    chance = random.Random(3)
    whole = zipped({"model.xml": REFERENCE % b"a.obj", "a.obj": TETRAHEDRON})
    refused = 0
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.2:
            data = data[: chance.randrange(len(data))]
        try:
            compile_file("a.mjz", {"a.mjz": bytes(data)})
        except ModelError:
            refused += 1
    assert refused > 150


OTHERS = {
    "gzip": b"\x1f\x8b\x08\0",
    "bzip2": b"BZh91AY",
    "xz": b"\xfd7zXZ\0\0",
    "zstandard": b"\x28\xb5\x2f\xfd\0",
    "7-Zip": b"7z\xbc\xaf\x27\x1c\0",
    "RAR": b"Rar!\x1a\x07\0",
    "tar": b"arm.xml".ljust(257, b"\0") + b"ustar\x0000",
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_archives_are_told_the_way(kind, tmp_path):
    (tmp_path / "arm.xml").write_bytes(OTHERS[kind])
    with pytest.raises(ModelError, match=rf"arm\.xml: this is an? {kind} archive; pack its files"):
        jaxsim.load_model(tmp_path / "arm.xml")


def test_an_archive_that_attaches_an_archive(tmp_path):
    inner = zipped({"model.xml": CHILD, "parts/a.obj": TETRAHEDRON})
    outer = b"""<mujoco><asset><model name="c" file="c.mjz"/></asset><worldbody>
      <attach model="c" body="b" prefix="x"/></worldbody></mujoco>"""
    (tmp_path / "c.mjz").write_bytes(inner)
    (tmp_path / "outer.xml").write_bytes(outer)
    (tmp_path / "outer.mjz").write_bytes(zipped({"model.xml": outer, "c.mjz": inner}))
    for name in ("outer.xml", "outer.mjz"):
        assert compile_file(tmp_path / name).fields["nmeshvert"] == 4
        spec = Spec.from_file(tmp_path / name)
        stream = io.BytesIO()
        spec.to_zip(stream)
        again = Spec.from_zip(io.BytesIO(stream.getvalue()))
        assert compile_spec(again).fields["nmeshvert"] == 4
        flat = jaxsim.flatten(spec)
        os.chdir(tmp_path)
        assert compile_spec(flat).fields["nmeshvert"] == 4


def test_places_in_an_archive_are_those_of_its_files(tmp_path):
    (tmp_path / "a.mjz").write_bytes(zipped({"model.xml": b"<mujoco>\n<worldbod/>\n</mujoco>"}))
    with pytest.raises(ModelError, match=r"a\.mjz/model\.xml:2: .*did you mean"):
        jaxsim.load_model(tmp_path / "a.mjz")


def test_an_archive_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    spec = Spec.from_string("<mujoco><worldbody><geom size='.1'/></worldbody></mujoco>")
    path = tmp_path / "a.mjz"
    spec.to_zip(path)
    old = path.read_bytes()
    real = Path.write_bytes

    def full(self, data):
        real(self, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        spec.to_zip(path)
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["a.mjz"]
