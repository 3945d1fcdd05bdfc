"""Headers that claim what a file cannot hold: one error, at once, without memory for it."""

import base64
import json
import struct
import tracemalloc

import numpy as np
import pytest

import jaxsim

pytest.importorskip("trimesh", reason="the extra meshes is not installed")
POINTS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], "<f4")
FACES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]], "<i4")


def ply(vertices=4, faces=4, form="ascii", kind="float"):
    head = (
        f"ply\nformat {form} 1.0\nelement vertex {vertices}\nproperty {kind} x\n"
        f"property {kind} y\nproperty {kind} z\nelement face {faces}\n"
        "property list uchar int vertex_indices\nend_header\n"
    )
    if form == "ascii":
        rows = [
            *(" ".join(f"{x:g}" for x in p) for p in POINTS),
            *(f"3 {a} {b} {c}" for a, b, c in FACES),
        ]
        return (head + "\n".join(rows)).encode()
    return head.encode() + POINTS.tobytes() + b"".join(b"\3" + f.tobytes() for f in FACES)


def off(vertices=4, faces=4):
    rows = [
        *(" ".join(f"{x:g}" for x in p) for p in POINTS),
        *(f"3 {a} {b} {c}" for a, b, c in FACES),
    ]
    return f"OFF\n{vertices} {faces} 0\n".encode() + "\n".join(rows).encode()


def tree(count=4, view=True, nodes=1):
    """A tetrahedron that some nodes show."""
    data = POINTS.tobytes() + FACES.astype("<u2").tobytes()
    points = {"componentType": 5126, "count": count, "type": "VEC3"} | (
        {"bufferView": 0} if view else {}
    )
    corners = {"bufferView": 1, "componentType": 5123, "count": 12, "type": "SCALAR"}
    return {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": list(range(nodes))}],
        "nodes": [{"mesh": 0}] * nodes,
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "accessors": [points, corners],
        "bufferViews": [
            {"buffer": 0, "byteLength": 48},
            {"buffer": 0, "byteOffset": 48, "byteLength": 24},
        ],
        "buffers": [{"byteLength": len(data)}],
    }, data  # fmt: skip


def gltf(**changes):
    found, data = tree(**changes)
    uri = "data:application/octet-stream;base64," + base64.b64encode(data).decode()
    found["buffers"][0]["uri"] = uri
    return json.dumps(found).encode()


def glb(total=None, **changes):
    found, data = tree(**changes)
    text = json.dumps(found).encode()
    text += b" " * (-len(text) % 4)
    body = struct.pack("<II", len(text), 0x4E4F534A) + text
    body += struct.pack("<II", len(data), 0x004E4942) + data
    return struct.pack("<4sII", b"glTF", 2, total or 12 + len(body)) + body


BINARY = "binary_little_endian"
GOOD = {
    "a.ply": ply(),
    "b.ply": ply(form=BINARY),
    "a.off": off(),
    "a.gltf": gltf(),
    "a.glb": glb(),
}
BAD = {
    **{f"vertices {n} {f}": ("a.ply", ply(n, form=f)) for n in (10**12, 10**9, -1, 10**20, "x", 9)
       for f in ("ascii", BINARY)},
    **{f"faces {n} {f}": ("a.ply", ply(4, n, f)) for n in (10**12, 10**9, -1, 10**20)
       for f in ("ascii", BINARY)},
    "off vertices": ("a.off", off(10**12)),
    "off faces": ("a.off", off(4, 10**9)),
    "gltf count": ("a.gltf", gltf(count=10**12)),
    "gltf without a buffer": ("a.gltf", gltf(count=10**9, view=False)),
    "gltf negative": ("a.gltf", gltf(count=-4)),
    "glb count": ("a.glb", glb(count=10**12)),
    "glb length": ("a.glb", glb(total=2**32 - 1)),
    "gltf nodes": ("a.gltf", gltf(nodes=2000)),
    "stl": ("a.stl", bytes(80) + struct.pack("<I", 2**32 - 1) + bytes(50)),
    "obj": ("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 1000000000000\n"),
    "msh": ("a.msh", struct.pack("<4i", 2**31 - 1, 0, 0, 2**31 - 1)),
    "entities": ("a.dae", b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><COLLADA/>'),
}  # fmt: skip


def load(name, data):
    text = f"""<mujoco><asset><mesh name="m" file="{name}"/></asset><worldbody><body>
    <geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
    return jaxsim.load_model(text, {name: data})


@pytest.mark.parametrize("name", GOOD)
def test_files_with_true_counts_are_read(name):
    m = load(name, GOOD[name])
    assert m.nmeshvert == 4
    assert m.nmeshface == 4


@pytest.mark.parametrize("name", BAD)
def test_false_counts_in_headers_are_rejected_before_allocation(name):
    tracemalloc.start()
    try:
        with (
            jaxsim.extend.limits(mesh_vertices=7000),
            pytest.raises(jaxsim.ModelError, match="mesh name='m'"),
        ):
            load(*BAD[name])
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()
