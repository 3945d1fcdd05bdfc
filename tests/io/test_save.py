"""Saved models: equal bit for bit, in one piece or not at all, and faults in words."""

import contextlib
import io
import json
import os
import random
import struct

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.errors import ModelError, UnsupportedWarning
from jaxsim.io.jxm import JXM_MAGIC, _digest, pack, unpack
from jaxsim.io.save import from_bytes, to_bytes

ARM = """
<mujoco model="arm">
  <option gravity="0 0 -3.7" density="1.2"/>
  <custom><text name="t" data="words"/><numeric name="n" data="1 2.5"/></custom>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="arm" pos="0 0 1">
      <joint name="hinge" damping="0.1" range="-1 1" limited="true"/>
      <geom name="link" type="capsule" size="0.1 0.3"/>
      <body><joint/><geom size="0.1"/></body>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator>
  <sensor><jointpos joint="hinge"/></sensor>
  <keyframe><key name="home" ctrl="1"/></keyframe>
</mujoco>
"""


def arm(text: str = ARM) -> jaxsim.Model:
    return jaxsim.load_model(text)


def assert_same(a: jaxsim.Model, b: jaxsim.Model) -> None:
    """Equal in structure, in program, and in every bit of every leaf."""
    assert a.structure == b.structure
    assert hash(a.structure) == hash(b.structure)
    assert list(a.structure) == list(b.structure)
    for name in a.structure:
        assert type(getattr(a.structure, name)) is type(getattr(b.structure, name))
    leaves, tree = jax.tree.flatten(a)
    others, other = jax.tree.flatten(b)
    assert tree == other
    for x, y in zip(leaves, others, strict=True):
        assert (x.dtype, x.shape, x.weak_type) == (y.dtype, y.shape, y.weak_type)
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


@pytest.mark.parametrize("x64", [False, True])
def test_a_model_comes_back_as_it_was(tmp_path, x64):
    with jax.enable_x64(x64):
        m = arm()
        jaxsim.save_model(m, tmp_path / "arm.jxm")
        loaded = jaxsim.load_model(tmp_path / "arm.jxm")
        assert_same(loaded, m)
        assert loaded.qpos0.dtype == (jnp.float64 if x64 else jnp.float32)
        assert loaded.names == m.names
        assert to_bytes(loaded) == to_bytes(m)


def test_it_is_the_same_program():
    """A program that was traced for one model serves the other."""
    m = arm()
    traced = []
    kinetic = jax.jit(lambda m: traced.append(0) or m.body_mass.sum())
    kinetic(m)
    kinetic(from_bytes(to_bytes(m)))
    assert len(traced) == 1


def test_leaves_with_a_batch_and_special_numbers():
    m = arm()
    mass = jnp.stack([m.body_mass, 2 * m.body_mass])
    odd = jnp.array([jnp.nan, -0.0, jnp.inf, 5e-324])
    m = m.replace(
        body_mass=mass, key_time=odd[:, None], opt=m.opt.replace(timestep=0.5 * jnp.ones(2))
    )
    assert_same(from_bytes(to_bytes(m)), m)
    batch = jax.vmap(lambda s: m.replace(body_mass=s * mass[0]))(jnp.arange(3.0))
    assert_same(from_bytes(to_bytes(batch)), batch)


def test_a_model_that_lacks_a_field():
    m = arm().replace(body_user=None)
    assert_same(from_bytes(to_bytes(m)), m)


def test_streams_and_memory(tmp_path):
    m, stream = arm(), io.BytesIO()
    jaxsim.save_model(m, stream)
    data = stream.getvalue()
    assert_same(jaxsim.load_model("arm.jxm", {"arm.jxm": data}), m)
    with jaxsim.Vfs() as vfs:
        vfs["robots/arm.jxm"] = data
        assert_same(jaxsim.load_model("robots/arm.jxm", vfs), m)
    # the contents decide, not the name
    (tmp_path / "arm.xml").write_bytes(data)
    assert_same(jaxsim.load_model(str(tmp_path / "arm.xml")), m)


def test_room_for_contacts():
    data = {"arm": to_bytes(arm())}
    assert jaxsim.load_model("arm", data, contacts=7).ncontact == 7
    assert jaxsim.load_model("arm", data, contacts=1).ncontact == 1


def test_double_to_single_precision_is_what_compiling_gives():
    data = to_bytes(arm())
    with jax.enable_x64(False):
        assert_same(from_bytes(data), arm())


def test_single_to_double_precision_is_said():
    with jax.enable_x64(False):
        m = arm()
        data = to_bytes(m)
    with pytest.warns(UserWarning, match=r"arm\.jxm: saved in float32; its accuracy is not higher"):
        wide = jaxsim.load_model("arm.jxm", {"arm.jxm": data})
    assert wide.body_mass.dtype == jnp.float64
    np.testing.assert_array_equal(wide.body_mass, np.asarray(m.body_mass, np.float64))
    assert wide.structure == arm().structure


def test_what_cannot_be_simulated_stays_so(refused):
    text = ARM.replace("<option", "<option integrator='discrete'", 1)
    flags = "<option><flag sleep='enable' island='disable'/></option>"
    text = text.replace("</worldbody>", f"</worldbody>{flags}")
    with pytest.warns(UnsupportedWarning):
        data = to_bytes(arm(text))
    assert "discrete" in refused(lambda: from_bytes(data))[0]


def test_what_is_no_part_of_a_model_is_refused():
    m = arm()
    with pytest.raises(ValueError, match="of type set in a model cannot be saved"):
        to_bytes(m.replace(structure=m.structure.replace(extra=set())))
    with pytest.raises(ValueError, match="an array of type bfloat16 cannot be saved, only bool"):
        to_bytes(
            m.replace_unchecked({"qpos_spring": m.qpos_spring.astype(jnp.bfloat16)}, native=False)
        )


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "arm.jxm"
    path.write_bytes(b"before")

    def fail(*args):
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="the disk is full"):
            jaxsim.save_model(arm(), path)
    assert [p.name for p in tmp_path.iterdir()] == ["arm.jxm"]
    assert path.read_bytes() == b"before"
    jaxsim.save_model(arm(), path)
    assert [p.name for p in tmp_path.iterdir()] == ["arm.jxm"]
    assert path.read_bytes()[:8] == JXM_MAGIC
    with pytest.raises(FileNotFoundError):
        jaxsim.save_model(arm(), tmp_path / "no" / "arm.jxm")


def said(data: bytes) -> str:
    with pytest.raises(ModelError) as caught:
        from_bytes(data, "arm.jxm")
    message = str(caught.value)
    assert message.startswith("arm.jxm: ")
    return message.removeprefix("arm.jxm: ")


def test_foreign_files():
    data = to_bytes(arm())
    assert said(b"").startswith("not a model that save_model wrote: it begins with b''")
    assert said(b"PK\3\4" + bytes(100)).startswith("not a model that save_model wrote")
    text_mode = data.replace(b"\r\n", b"\n")
    assert said(text_mode).startswith("damaged: a transfer changed its line ends; copy it as a bin")


def test_damaged_files():
    data = to_bytes(arm())
    assert said(data[:30]) == "truncated: it has 30 bytes; fetch or save it again"
    assert said(data[:-1]).startswith(f"truncated: it has {len(data) - 1} bytes, {len(data)} were")
    assert said(data + b"\n").startswith(f"damaged: it has {len(data) + 1} bytes, {len(data)} were")
    changed = bytearray(data)
    changed[-70] ^= 1
    assert said(bytes(changed)).startswith("damaged: its contents do not match their checksum; ")


def test_other_versions():
    data = to_bytes(arm())
    newer = data[:8] + struct.pack("<I", 5) + data[12:]
    assert said(newer).startswith("written in version 5 of the format, this jaxsim reads version 4")
    older = data[:8] + struct.pack("<I", 3) + data[12:]
    assert said(older).startswith("damaged, or written in version 3 of the format; compile the mod")


def changed_header(change) -> bytes:
    header, arrays = unpack(to_bytes(arm()))
    change(header)
    return pack(header, arrays)


def test_the_model_of_another_jaxsim():
    other = changed_header(lambda header: header.update(jaxsim="99.0.1"))
    assert said(other).startswith("saved by jaxsim 99.0.1, this is ")
    fewer = changed_header(lambda header: header["model"].pop("body_mass"))
    assert "whose Model differs in body_mass; compile the model again and save" in said(fewer)
    more = changed_header(lambda header: header["model"]["opt"].update(magic=1))
    assert "whose Option differs in magic; compile" in said(more)


@pytest.mark.parametrize("seed", range(3))
def test_changed_bytes_are_found(seed):
    """Whatever is flipped, cut off or doubled: a ModelError, never a model."""
    data, chance = to_bytes(arm()), random.Random(seed)
    for _ in range(150):
        changed = bytearray(data)
        kind, at = chance.randrange(4), chance.randrange(len(data))
        if kind == 0:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            changed = changed[:at]
        elif kind == 2:
            changed[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 9)))
        else:  # within the front, where sizes and versions stand
            changed[chance.randrange(64)] ^= 1 << chance.randrange(8)
        with pytest.raises(ModelError):
            from_bytes(bytes(changed))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_contents_that_make_no_sense(seed):
    """A forger can make the checksum right: still a ModelError, or a model, and nothing else."""
    data, chance = to_bytes(arm()), random.Random(seed)
    text_size = struct.unpack_from("<I", data, 12)[0]
    content = json.loads(data[64 : 64 + text_size])
    for _ in range(60):
        forged = json.loads(json.dumps(content))
        holder = chance.choice([forged, forged["header"], forged["header"]["model"]])
        holder = chance.choice([holder, forged["arrays"], chance.choice(forged["arrays"])])
        key = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        holder[key] = chance.choice([None, -1, 10**30, "text", [], {}, {"array": 10**6}, 0.5])
        with contextlib.suppress(ModelError):
            from_bytes(signed(data, forged, text_size))


def test_forged_leaves_and_options():
    """Made by hand: `replace` does not let them through."""

    def changed(where, name, value) -> str:
        header, arrays = unpack(to_bytes(arm()))
        if isinstance(value, np.ndarray):
            arrays.append(value)
            value = {"array": len(arrays) - 1}
        (header["model"][where] if where else header["model"])[name] = value
        return said(pack(header, arrays))

    assert "damaged: body_mass has the shape (7,), expected (3,)" in changed(
        "", "body_mass", np.zeros(7)
    )
    assert "geom_pos has the shape (3,), expected (3, 3)" in changed("", "geom_pos", np.zeros(3))
    assert "qpos0 is array" in changed("", "qpos0", np.zeros(9, int))
    assert "timestep is 'x', expected an array of real" in changed("opt", "timestep", "x")
    assert "opt.integrator[0] is 77, expected one of" in changed("opt", "integrator", 77)
    assert "opt.iterations is -1, expected a number from 0" in changed("opt", "iterations", -1)
    assert "names" in changed("structure", "names", [["body", ["only"]]])
    assert "refusals" in changed("structure", "refusals", [[1, 2, 3]])


def signed(data: bytes, content, size: int) -> bytes:
    """A file with other contents and the checksum that belongs to them."""
    text = json.dumps(content, separators=(",", ":")).encode()
    if len(text) <= size:
        text = text.ljust(size)
    padded = text + bytes(-(64 + len(text)) % 64)
    rest = data[64 + size + -(64 + size) % 64 :]
    front = struct.pack("<8sIIQQ", JXM_MAGIC, 1, len(text), 64 + len(padded) + len(rest), 0)
    file = bytearray(front + bytes(32) + padded + rest)
    file[32:64] = _digest(file)
    return bytes(file)
