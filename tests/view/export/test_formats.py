"""A file of each format, read back by the library of the format."""

import json
from io import BytesIO

import numpy as np
import pytest
from view.export.clips import RECORDS, SOFT, STEP, oracle, triangles

from jaxsim.view.export.formats import FORMATS

FRAME = 3
_MISSING = "the extra export is not installed"


def written(clip, to, path):
    for module in FORMATS[to].modules:
        pytest.importorskip(module, reason=_MISSING)
    return FORMATS[to].write(clip, path)


def pose(recorded, name, frame=FRAME):
    """Position and rotation matrix of a body of the first world, by MuJoCo."""
    m, d = oracle(recorded["qpos"][frame, 0])
    body = m.body(name).id
    return d.xpos[body], d.xmat[body].reshape(3, 3)


def rotation(quat):
    """Rotation matrix of a quaternion (x, y, z, w)."""
    x, y, z, w = quat
    v, cross = np.array([x, y, z]), np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return (w * w - v @ v) * np.eye(3) + 2 * np.outer(v, v) + 2 * w * cross


class Glb:
    """A glTF file, with the arrays of its accessors."""

    def __init__(self, path):
        import pygltflib

        self.file = pygltflib.GLTF2().load(str(path))
        self.blob = self.file.binary_blob()

    def solid(self, name):
        """Node of a geom or site of the first world."""
        return next(n for n in self.file.nodes if n.name == name and n.mesh is not None)

    def body(self, name):
        """Index of the node of a body of the first world."""
        nodes = enumerate(self.file.nodes)
        return next(k for k, n in nodes if n.name == name and n.mesh is None)

    def array(self, index):
        accessor = self.file.accessors[index]
        view = self.file.bufferViews[accessor.bufferView]
        kind = {5126: np.float32, 5125: np.uint32}[accessor.componentType]
        width = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}[accessor.type]
        values = np.frombuffer(self.blob, kind, accessor.count * width, view.byteOffset)
        return values.reshape(-1, width)

    def channel(self, name, path):
        """Times and values of the animation of a node of the first world."""
        (animation,), node = self.file.animations, self.body(name)
        (channel,) = (
            c for c in animation.channels if (c.target.node, c.target.path) == (node, path)
        )
        sampler = animation.samplers[channel.sampler]
        return self.array(sampler.input)[:, 0], self.array(sampler.output)


def test_gltf_has_nodes_meshes_and_an_animation(clip, recorded, tmp_path):
    left_out = written(clip, "gltf", tmp_path / "a.glb")
    assert [text.partition(":")[0] for text in left_out] == [*SOFT, "recorded fields"]
    glb = Glb(tmp_path / "a.glb")
    # A root, two worlds, their bodies, and their geoms and sites; the floor is shared.
    solids = len(clip.solids_of(0)) + len(clip.solids_of(1))
    assert len(glb.file.nodes) == 1 + 2 + 2 * len(clip.bodies) + solids
    root = glb.file.nodes[glb.file.scenes[0].nodes[0]]
    np.testing.assert_allclose(rotation(root.rotation) @ [0, 0, 1], [0, 1, 0], atol=1e-12)
    m, _ = oracle(recorded["qpos"][0, 0])
    for name, number in triangles(m).items():
        primitive = glb.file.meshes[glb.solid(name).mesh].primitives[0]
        assert len(glb.array(primitive.indices)) == 3 * number
    pos, mat = pose(recorded, "ball")
    time, moved = glb.channel("ball", "translation")
    np.testing.assert_allclose(time, STEP * np.arange(RECORDS), atol=1e-7)
    np.testing.assert_allclose(moved[FRAME], pos, atol=1e-6)
    np.testing.assert_allclose(rotation(glb.channel("ball", "rotation")[1][FRAME]), mat, atol=1e-6)
    assert len(glb.file.animations[0].channels) == 2 * 2 * clip.moving.sum()


def test_gltf_has_materials_and_images(clip, tmp_path):
    written(clip, "gltf", tmp_path / "a.glb")
    from PIL import Image

    glb = Glb(tmp_path / "a.glb")
    ball = glb.file.meshes[glb.solid("ball").mesh].primitives[0]
    glass = glb.file.materials[ball.material]
    assert glass.alphaMode == "BLEND"
    assert glass.pbrMetallicRoughness.baseColorFactor[3] == pytest.approx(0.5)
    floor = glb.file.meshes[glb.solid("floor").mesh].primitives[0]
    texture = glb.file.materials[floor.material].pbrMetallicRoughness.baseColorTexture.index
    view = glb.file.bufferViews[glb.file.images[glb.file.textures[texture].source].bufferView]
    png = glb.blob[view.byteOffset : view.byteOffset + view.byteLength]
    with Image.open(BytesIO(png)) as image:
        assert image.size == (8, 8)
    assert floor.attributes.TEXCOORD_0 is not None


def test_trimesh_reads_the_gltf_at_its_first_frame(clip, recorded, tmp_path):
    written(clip, "gltf", tmp_path / "a.glb")
    import trimesh

    scene = trimesh.load(tmp_path / "a.glb")
    m, d = oracle(recorded["qpos"][0, 0])
    matrix, _ = scene.graph.get("post")
    x, y, z = d.xpos[m.body("post").id]
    np.testing.assert_allclose(matrix[:3, 3], [x, z, -y], atol=1e-6)


def messages(path):
    """Messages of an MCAP file by topic: times in seconds and decoded content."""
    from mcap.reader import make_reader
    from mcap_protobuf.decoder import DecoderFactory

    found: dict = {}
    with path.open("rb") as stream:
        for schema, channel, message in make_reader(stream).iter_messages():
            if channel.message_encoding == "json":
                content = json.loads(message.data)
            else:
                content = DecoderFactory().decoder_for("protobuf", schema)(message.data)
            found.setdefault(channel.topic, []).append((message.log_time / 1e9, content))
    return found


def test_mcap_has_frames_triangles_and_fields(clip, recorded, tmp_path):
    pytest.importorskip("mcap.reader", reason=_MISSING)
    left_out = written(clip, "mcap", tmp_path / "a.mcap")
    assert left_out == ["images of 1 textured objects"]
    found = messages(tmp_path / "a.mcap")
    fields = ("qpos", "ctrl", "sensordata", "reward")
    topics = {f"/world {k}/{name}" for k in range(2) for name in fields}
    assert set(found) == {"/tf", "/tf_static", "/scene", "/deformables"} | topics
    time, moved = found["/tf"][FRAME]
    assert time == pytest.approx(FRAME * STEP)
    assert len(moved.transforms) == 2 * clip.moving.sum()
    ball = next(t for t in moved.transforms if t.child_frame_id == "world 0/ball")
    pos, mat = pose(recorded, "ball")
    at, q = ball.translation, ball.rotation
    np.testing.assert_allclose([at.x, at.y, at.z], pos, atol=1e-12)
    np.testing.assert_allclose(rotation([q.x, q.y, q.z, q.w]), mat, atol=1e-12)
    still = [t.child_frame_id for t in found["/tf_static"][0][1].transforms]
    assert still == [f"world {k}/{name}" for k in range(2) for name in ("world", "post")]
    ((_, scene),) = found["/scene"]
    entities = {e.id: e for e in scene.entities}
    assert {e.frame_id for e in scene.entities} <= {
        *still,
        *(t.child_frame_id for t in moved.transforms),
    }
    m, _ = oracle(recorded["qpos"][0, 0])
    for name, number in triangles(m).items():
        assert len(entities[f"world 0/{name}"].triangles[0].indices) == 3 * number
    assert entities["world 0/ball"].triangles[0].color.a == pytest.approx(0.5)


def test_mcap_has_flexes_in_each_frame_and_numbers_that_are_missing(clip, tmp_path):
    pytest.importorskip("mcap.reader", reason=_MISSING)
    written(clip, "mcap", tmp_path / "a.mcap")
    found = messages(tmp_path / "a.mcap")
    assert len(found["/deformables"]) == RECORDS
    cloth, rope = found["/deformables"][FRAME][1].entities[:2]
    assert (cloth.id, rope.id) == ("world 0/flex cloth", "world 0/flex rope")
    point = cloth.triangles[0].points[5]
    np.testing.assert_allclose([point.x, point.y, point.z], clip.softs[0].vertex[FRAME, 0, 5])
    assert rope.lines[0].thickness == pytest.approx(0.04)
    assert [x["reward"] for _, x in found["/world 0/reward"]] == pytest.approx(
        [0, 0.1, 0.2, 0.3, None]
    )
    assert found["/world 1/ctrl"][FRAME][1]["motor"] == pytest.approx(1 + np.sin(FRAME * STEP))


def chunks(path):
    """Columns of a recording of Rerun by entity: lists of dictionaries."""
    from rerun.chunk import RrdReader

    found: dict = {}
    for chunk in RrdReader(path).stream().to_chunks():
        columns = chunk.to_record_batch().to_pydict()
        found.setdefault(chunk.entity_path, {}).update(columns)
    return found


def test_rerun_has_transforms_triangles_and_scalars(clip, recorded, tmp_path):
    pytest.importorskip("rerun.chunk", reason=_MISSING)
    assert written(clip, "rerun", tmp_path / "a.rrd") == []
    found = chunks(tmp_path / "a.rrd")
    bodies = [
        p for p in found if p.startswith("/world\\ 0/") and "/" not in p[10:].replace("\\/", "")
    ]
    assert len(bodies) == len(clip.bodies) + len(clip.softs)
    assert found["/"]["ViewCoordinates:xyz"] == [[[3, 5, 1]]]  # right, forward, up
    ball = found["/world\\ 0/ball"]
    assert [t.total_seconds() for t in ball["time"]] == pytest.approx(STEP * np.arange(RECORDS))
    pos, mat = pose(recorded, "ball")
    np.testing.assert_allclose(ball["Transform3D:translation"][FRAME][0], pos, atol=1e-6)
    quat = ball["Transform3D:quaternion"][FRAME][0]
    np.testing.assert_allclose(rotation(quat), mat, atol=1e-6)
    m, _ = oracle(recorded["qpos"][0, 0])
    for name, number in triangles(m).items():
        body = "world" if name in ("floor", "hill") else "arm\\/1"
        mesh = found[f"/world\\ 0/{body}/{name}"]
        assert len(mesh["Mesh3D:triangle_indices"][0]) == number
    assert "Mesh3D:albedo_texture_buffer" in found["/world\\ 0/world/floor"]
    np.testing.assert_allclose(
        found["/curves/world\\ 1/sensordata"]["Scalars:scalars"], recorded["sensordata"][:, 1]
    )
    assert found["/curves/world\\ 1/sensordata"]["SeriesLines:names"] == [["angle [rad]"]]


def test_rerun_has_the_vertices_of_flexes_in_each_frame(clip, tmp_path):
    pytest.importorskip("rerun.chunk", reason=_MISSING)
    written(clip, "rerun", tmp_path / "a.rrd")
    from rerun.chunk import RrdReader

    rows = {}
    for chunk in RrdReader(tmp_path / "a.rrd").stream().to_chunks():
        if chunk.entity_path == "/world\\ 1/flex\\ cloth":
            # Static vertices would hide those of the frames.
            assert not chunk.is_static
            columns = chunk.to_record_batch().to_pydict()
            for time, points in zip(
                columns["time"], columns["Mesh3D:vertex_positions"], strict=True
            ):
                rows[round(time.total_seconds() / STEP)] = points
        if chunk.entity_path == "/world\\ 1/flex\\ rope" and not chunk.is_static:
            strips = chunk.to_record_batch().to_pydict()["LineStrips3D:strips"]
    assert sorted(rows) == list(range(RECORDS))
    cloth, rope = clip.softs
    np.testing.assert_allclose(rows[FRAME], cloth.vertex[FRAME, 1], rtol=1e-6)
    np.testing.assert_allclose(strips[FRAME], rope.vertex[FRAME, 1][rope.face], rtol=1e-6)


@pytest.mark.parametrize("ending", [".usdz", ".usda"])
def test_usd_has_samples_of_transforms_and_meshes(clip, recorded, tmp_path, ending):
    left_out = written(clip, "usd", tmp_path / f"a{ending}")
    from pxr import Usd, UsdGeom

    assert len(left_out) == (1 if ending == ".usdz" else 2)
    stage = Usd.Stage.Open(str(tmp_path / f"a{ending}"))
    assert UsdGeom.GetStageUpAxis(stage) == "Z"
    assert UsdGeom.GetStageMetersPerUnit(stage) == 1
    prims = {str(p.GetPath()): p for p in stage.Traverse()}
    above = "/motion/world_0"
    bodies = [p for p in stage.GetPrimAtPath(above).GetChildren() if p.IsA(UsdGeom.Xform)]
    assert [p.GetCustomDataByKey("name") for p in bodies] == clip.bodies
    code = FRAME * STEP * stage.GetTimeCodesPerSecond()
    matrix = UsdGeom.Xformable(prims[f"{above}/ball"]).ComputeLocalToWorldTransform(code)
    pos, mat = pose(recorded, "ball")
    np.testing.assert_allclose(np.array(matrix)[3, :3], pos, atol=1e-6)
    np.testing.assert_allclose(np.array(matrix)[:3, :3].T, mat, atol=1e-6)  # of row vectors
    m, _ = oracle(recorded["qpos"][0, 0])
    for name, number in triangles(m).items():
        body = "world" if name in ("floor", "hill") else "arm_1"
        mesh = UsdGeom.Mesh(prims[f"{above}/{body}/{name}"])
        assert len(mesh.GetFaceVertexCountsAttr().Get()) == number
    cloth = UsdGeom.Mesh(prims[f"{above}/flex_cloth"]).GetPointsAttr().Get(code)
    np.testing.assert_allclose(cloth, clip.softs[0].vertex[FRAME, 0], rtol=1e-6)
    widths = UsdGeom.BasisCurves(prims[f"{above}/flex_rope"]).GetWidthsAttr().Get()
    np.testing.assert_allclose(widths, 0.04, rtol=1e-6)


def test_usdz_contains_images(clip, tmp_path):
    written(clip, "usd", tmp_path / "a.usdz")
    from pxr import Usd, UsdShade

    stage = Usd.Stage.Open(str(tmp_path / "a.usdz"))
    floor = UsdShade.MaterialBindingAPI(stage.GetPrimAtPath("/motion/world_0/world/floor"))
    material, _ = floor.ComputeBoundMaterial()
    texture = UsdShade.Shader(stage.GetPrimAtPath(f"{material.GetPath()}/texture"))
    assert texture.GetInput("file").Get().resolvedPath.endswith(".png]")
