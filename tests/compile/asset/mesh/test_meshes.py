"""Meshes equal MuJoCo's: vertices, normals, frames and mass, hulls and polygons, and geoms."""

import mujoco
import numpy as np
import pytest
from compile.meshes import CUBE_FACE, CUBE_VERTEX, obj, rock, stl, written
from compile.oracle import assert_agrees, assert_refused, refusal

from jaxsim.compile import compile_string
from jaxsim.errors import ModelError

CUBE = {"vertex": CUBE_VERTEX, "face": CUBE_FACE}
ROCK = rock()
CURL = rock(80, 1, bend=1.5)
OPEN = {"vertex": CURL["vertex"], "face": CURL["face"][:-7]}
NORMALS = rock(seed=5)["vertex"]
CLOUD = {"vertex": ROCK["vertex"]}
SIDES = {"vertex": [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], "face": [0, 1, 2, 1, 3, 2]}

# Qhull's order of vertices is not told by scipy's.
HULL_ORDER = ("mesh_graph", "mesh_extrema")
VISUAL = 'contype="0" conaffinity="0"'


def model(mesh: dict, geom: str = 'type="mesh" mesh="m"', extra: str = "", **attrs) -> str:
    """A model with one mesh and a body with one geom."""
    return f"""
        <mujoco>
          {extra}
          <asset><mesh name="m" {written(**mesh, **attrs)}/></asset>
          <worldbody>
            <body><geom {geom} pos="1 2 3" euler="10 20 30"/></body>
          </worldbody>
        </mujoco>"""


@pytest.mark.parametrize("inertia", ["convex", "exact", "legacy", "shell"])
@pytest.mark.parametrize("mesh", [CUBE, ROCK, CURL, OPEN], ids=["cube", "rock", "curl", "open"])
def test_inertia(mesh, inertia):
    assert_agrees(model(mesh, inertia=inertia), skip=HULL_ORDER)


PLACEMENTS = {
    "stretched": {"scale": [1, 2, 3]},
    "turned by two mirrors": {"scale": [-1, -2, 0.5], "inertia": "exact"},
    "mirrored": {"scale": [1, -2, 0.5]},
    "mirrored hull": {"scale": [-1, 1, 1], "inertia": "convex"},
    "in millimeters": {"scale": [0.001, 0.001, 0.001]},
    "moved": {"refpos": [1, 2, 3]},
    "turned": {"refquat": [1, 0.5, 0.2, 0]},
    "all": {"refpos": [1, 2, 3], "refquat": [1, 0.5, 0.2, 0], "scale": [1, -2, 3]},
    "smooth": {"smoothnormal": "true"},
    "smooth mirrored": {"smoothnormal": "true", "scale": [3, 2, -1]},
    "normals": {"normal": NORMALS, "scale": [1, 2, -3], "refquat": [1, 1, 0, 0.3]},
    "a normal without direction": {"normal": NORMALS * (np.arange(40) != 3)[:, None]},
    "a normal without direction, turned": {
        "normal": NORMALS * (np.arange(40) != 3)[:, None],
        "refquat": [1, 1, 0, 0.3],
    },
    "normals too short": {"normal": NORMALS * 1e-5, "scale": [1e3, 1e3, 1e3]},
    "three normals each": {"normal": np.repeat(NORMALS, 3, axis=0), "scale": [1, 2, -3]},
    "few normals": {"normal": NORMALS[:7]},
    "texcoords": {"texcoord": NORMALS[:, :2], "scale": [1, 2, -3]},
}


@pytest.mark.parametrize("attrs", PLACEMENTS.values(), ids=PLACEMENTS)
def test_placement_and_normals(attrs):
    assert_agrees(model(ROCK, **attrs), skip=HULL_ORDER)


@pytest.mark.parametrize("scale", ["1 1 1", ".1 .1 .1", ".3 .3 .3"])
@pytest.mark.parametrize("inertia", ["legacy", "convex", "exact", "shell"])
def test_axes_of_equal_moments_are_those_of_mujoco(inertia, scale):
    """A corner of a cube may rotate about its diagonal; the last digits decide."""
    corner = f'vertex="0 0 0  1 0 0  0 1 0  0 0 1" inertia="{inertia}" scale="{scale}"'
    assert_agrees(
        f"""<mujoco><asset><mesh name="m" {corner}/></asset>
        <worldbody><geom type="mesh" mesh="m"/></worldbody></mujoco>""",
        skip=HULL_ORDER,
    )


def test_a_cloud_of_points_takes_the_faces_of_its_hull():
    assert_agrees(model(CLOUD, scale=[1, -1, 2]), skip=HULL_ORDER)


@pytest.mark.parametrize(
    "geom",
    [
        'type="mesh" mesh="m" mass="3"',
        'type="mesh" mesh="m" density="300" size="9 9 9"',
        'type="mesh" mesh="m" mass="0"',
        'type="mesh" mesh="m" surfacevel="1 2 3 4 5 6"',
        'type="sdf" mesh="m"',
        *(f'type="{kind}" mesh="m"' for kind in ("sphere", "capsule", "cylinder", "ellipsoid")),
        'type="box" mesh="m" fitscale="2" size="9 9 9"',
        'type="sphere" mesh="m" size="9 9 9" shellinertia="true"',
        'type="capsule" mesh="m" surfacevel="1 2 3 4 5 6" mass="2"',
    ],
)
@pytest.mark.parametrize("fitaabb", ["false", "true"])
@pytest.mark.parametrize("mesh", [ROCK, CUBE], ids=["rock", "cube"])
def test_geoms(mesh, geom, fitaabb):
    extra = f'<compiler fitaabb="{fitaabb}"/>'
    assert_agrees(model(mesh, geom, extra, scale=[1, 0.5, 3]), skip=HULL_ORDER)


def test_a_fluid_sees_an_ellipsoid_of_the_size_of_the_mesh():
    text = model(ROCK, 'type="mesh" mesh="m" fluidshape="ellipsoid"')
    ours = compile_string(text).fields["geom_fluid"]
    theirs = mujoco.MjModel.from_xml_string(text).geom_fluid
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_sites_materials_and_several_meshes():
    assert_agrees(
        f"""
        <mujoco>
          <default>
            <mesh scale="2 2 2"/>
            <default class="d"><mesh scale="1 1 -1"/></default>
          </default>
          <asset>
            <material name="a"/>
            <material name="b"/>
            <mesh name="rock" material="b" {written(**ROCK)}/>
            <mesh name="curl" class="d" {written(**CURL)}/>
            <mesh name="unused" {written(**CUBE)}/>
            <mesh name="cube" {written(**CUBE)} texcoord="{" ".join(["0.5"] * 16)}"/>
          </asset>
          <worldbody>
            <site type="mesh" mesh="cube" pos="1 0 0" size="9"/>
            <site type="mesh" mesh="rock" material="a" euler="10 20 30"/>
            <geom type="mesh" mesh="curl" material="a"/>
            <frame pos="1 2 3" euler="40 50 60">
              <geom type="mesh" mesh="rock" {VISUAL} pos="1 0 0"/>
              <geom type="box" mesh="rock"/>
            </frame>
          </worldbody>
        </mujoco>""",
        skip=HULL_ORDER,
    )


USES = {
    "visual": (f'<geom type="mesh" mesh="m" {VISUAL}/>', ""),
    "one bit": ('<geom type="mesh" mesh="m" contype="0" conaffinity="4"/>', ""),
    "pair": (
        f'<geom name="g" type="mesh" mesh="m" {VISUAL}/>',
        '<contact><pair geom1="g" geom2="ball"/></contact>',
    ),
    "site": ('<site type="mesh" mesh="m"/>', ""),
    "fitted": ('<geom type="box" mesh="m"/>', ""),
    "visual sdf": (f'<geom type="sdf" mesh="m" {VISUAL}/>', ""),
    "unused": ("", ""),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("attrs", [{}, {"inertia": "convex"}], ids=str)
def test_hulls_are_kept_where_they_are_used(use, attrs):
    part, extra = USES[use]
    assert_agrees(
        f"""
        <mujoco>
          <asset><mesh name="m" {written(**CUBE, **attrs)}/></asset>
          <worldbody><body>{part}<geom name="ball" size=".1"/></body></worldbody>
          {extra}
        </mujoco>""",
        skip=HULL_ORDER,
    )


def test_meshes_of_files():
    rng = np.random.default_rng(0)
    vertex, face = ROCK["vertex"], ROCK["face"]
    index = rng.integers(0, 7, face.shape)
    files = {
        "rock.stl": stl(vertex, np.vstack([face, [[0, 0, 1]]])),
        "rock.obj": obj(vertex, face, rng.normal(size=(7, 3)), index, rng.random((7, 2)), index),
    }
    text = f"""
        <mujoco>
          <asset>
            <mesh name="a" file="rock.stl"/>
            <mesh name="b" file="rock.stl" scale="-.1 .2 .3"/>
            <mesh name="c" file="rock.obj" scale="-.1 .2 .3"/>
          </asset>
          <worldbody>
            <geom type="mesh" mesh="a"/>
            <geom type="mesh" mesh="b" {VISUAL}/>
            <geom type="mesh" mesh="c"/>
          </worldbody>
        </mujoco>"""
    assert_agrees(text, skip=HULL_ORDER, files=files)


BUILTIN = {
    "hemisphere": [4],
    "cone": [7, 0.3],
    "supersphere": [9, 1.3, 0.5],
    "supertorus": [9, 0.3, 0.5, 1.2],
    "wedge": [5, 5, 30, 30, 0.1],
    "cylinder": [4, 4, 3, 0.1, 0.1, 0.1],
    "disc": [3, 5, 1, 0.1, 0.1, 0.1],
}


@pytest.mark.parametrize("builtin", BUILTIN)
@pytest.mark.parametrize("attrs", [{}, {"scale": [1, 2, -3]}], ids=["as it is", "mirrored"])
def test_built_in_meshes(builtin, attrs):
    text = model(
        {}, f'type="mesh" mesh="m" {VISUAL}', builtin=builtin, params=BUILTIN[builtin], **attrs
    )
    assert_agrees(text, skip=HULL_ORDER)


def test_a_polygon_whose_only_ear_is_tried_last_loses_its_rest():
    """The oracle's reader has no trials left for the other corners; the mesh has a hole there."""
    corners = [[12.125, 21.133], [8.132, 13.134], [8.132, 12.133], [11.126, 9.129], [12.125, 9.129]]
    points = "".join(f"v 37.128 {y} {z}\n" for y, z in corners)
    lines = f"{points}v 0 0 0\nf 1 2 3 4 5\nf 2 1 6\nf 3 2 6\nf 4 3 6\nf 5 4 6\nf 1 5 6\n"
    text = """
        <mujoco>
          <asset><mesh name="m" file="cone.obj"/></asset>
          <worldbody><geom type="mesh" mesh="m" contype="0" conaffinity="0"/></worldbody>
        </mujoco>"""
    compiled = assert_agrees(text, files={"cone.obj": lines.encode()})
    assert compiled.fields["nmeshface"] == 6


# --- hulls ---


def triangles(face) -> set[tuple[int, ...]]:
    """Faces, each from its smallest vertex on."""
    return {tuple(np.roll(f, -np.argmin(f)).tolist()) for f in np.reshape(face, (-1, 3))}


def neighbors(graph) -> dict[int, set[int]]:
    """The hull's vertices, and those next to each of them."""
    nvert, nface = graph[:2]
    address, ids = graph[2 : 2 + nvert], graph[2 + nvert : 2 + 2 * nvert]
    edges = graph[2 + 2 * nvert : 2 + 3 * nvert + 3 * nface].tolist()
    return {
        int(ids[i]): {int(ids[j]) for j in edges[address[i] : edges.index(-1, address[i])]}
        for i in range(nvert)
    }


def assert_hull_agrees(text: str) -> None:
    """The hull of the only mesh of a model is MuJoCo's, whatever the order of its parts."""
    ours = type("Fields", (), dict(compile_string(text).fields))
    theirs = mujoco.MjModel.from_xml_string(text)
    sizes = "nmeshgraph nmeshpoly nmeshpolyvert nmeshpolymap nmeshdegmax npolygonmax".split()
    assert [getattr(ours, n) for n in sizes] == [getattr(theirs, n) for n in sizes]
    nface = theirs.mesh_graph[1]
    assert triangles(ours.mesh_graph[-3 * nface :]) == triangles(theirs.mesh_graph[-3 * nface :])
    assert neighbors(ours.mesh_graph) == neighbors(theirs.mesh_graph)

    for name in ("polyvertadr", "polyvertnum", "polyvert", "polymapadr", "polymapnum", "polymap"):
        np.testing.assert_array_equal(
            getattr(ours, f"mesh_{name}"), getattr(theirs, f"mesh_{name}")
        )
    np.testing.assert_allclose(ours.mesh_polynormal, theirs.mesh_polynormal, atol=1e-9)

    # the vertices that lie farthest in each direction, up to ties
    ids = ours.mesh_graph[2 + ours.mesh_graph[0] : 2 + 2 * ours.mesh_graph[0]]
    other_ids = theirs.mesh_graph[2 + theirs.mesh_graph[0] : 2 + 2 * theirs.mesh_graph[0]]
    axes = np.array(np.meshgrid(*[[-1, 0, 1]] * 3, indexing="ij")).reshape(3, 27)
    points = theirs.mesh_vert.astype(float)
    np.testing.assert_allclose(
        np.einsum("ni,in->n", points[ids[ours.mesh_extrema[0]]], axes),
        np.einsum("ni,in->n", points[other_ids[theirs.mesh_extrema[0]]], axes),
        atol=1e-6,
    )


def grid() -> np.ndarray:
    axis = np.linspace(-1, 1, 4)
    return np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)


def prism(n: int) -> np.ndarray:
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle), np.zeros(n)], axis=1)
    return np.concatenate([ring + np.array([0, 0, z]) for z in (0, 0.5, 1)])


def ball(n: int) -> np.ndarray:
    point = np.random.default_rng(0).normal(size=(n, 3))
    return point / np.linalg.norm(point, axis=1, keepdims=True)


@pytest.mark.parametrize(
    "points", [CUBE_VERTEX, ROCK["vertex"], grid(), prism(12), ball(2000)], ids=len
)
@pytest.mark.parametrize(
    "attrs",
    [{}, {"scale": [1, 5, -0.3]}, {"refquat": [1, 1, 0, 0.2], "maxhullvert": [20]}],
    ids=["as it is", "mirrored", "coarse"],
)
def test_hulls(points, attrs):
    assert_hull_agrees(model({"vertex": points}, **attrs))


# --- what is refused ---

REFUSED = {
    "no vertices": ({}, "at least 4 vertices, got 0"),
    "three vertices": ({"vertex": CUBE_VERTEX[:3]}, "at least 4 vertices, got 3"),
    "half a vertex": ({"vertex": [0, 0, 0, 1]}, "vertex needs 3 numbers"),
    "half a face": ({**CUBE, "face": [0, 1]}, "face needs 3 numbers"),
    "half a texcoord": ({**CUBE, "texcoord": [0.5]}, "texcoord needs 2 numbers"),
    "few texcoords": ({**CUBE, "texcoord": [0.5, 0.5]}, "1 texture coordinates for 8 vertices"),
    "unknown vertex": ({**CUBE, "face": [0, 1, 8]}, "face 0 has vertex 8"),
    "negative vertex": ({**CUBE, "face": [0, 1, -1]}, "face 0 has vertex -1"),
    "flat cloud": ({"vertex": SIDES["vertex"]}, "its vertices lie in one plane"),
    "flat, not colliding": ({**SIDES, "geom": VISUAL}, "too small; set inertia='shell'"),
    "flat shell": ({**SIDES, "inertia": "shell"}, "its vertices lie in one plane"),
    "on a line": ({"vertex": CUBE_VERTEX * [1, 0, 0]}, "on one line"),
    "in a point": ({"vertex": CUBE_VERTEX * 0}, "at one point"),
    "tiny": ({**CUBE, "scale": [1e-6, 1e-6, 1e-6]}, "is too small"),
    "inside out": (
        {"vertex": CUBE_VERTEX, "face": CUBE_FACE[:, ::-1], "inertia": "exact"},
        "oriented inward",
    ),
    "one face turned": (
        {
            "vertex": CUBE_VERTEX,
            "face": np.vstack([CUBE_FACE[:1, ::-1], CUBE_FACE[1:]]),
            "inertia": "exact",
        },
        "not consistently oriented",
    ),
    "negative inertia": (
        {
            "vertex": np.vstack([CUBE_VERTEX, 0.9 * CUBE_VERTEX + [10, 0, 0]]),
            "face": np.vstack([CUBE_FACE, CUBE_FACE[:, ::-1] + 8]),
            "inertia": "exact",
        },
        "least moment of inertia",
    ),
    "coarse hull": ({**CUBE, "maxhullvert": [3]}, "maxhullvert='3' must be at least 4"),
    "no hull": ({**CUBE, "maxhullvert": [0]}, "maxhullvert='0' must be at least 4"),
    "infinite": ({"vertex": CUBE_VERTEX * 1e39, "face": CUBE_FACE}, "is not a finite number"),
    "no scale": ({**CUBE, "scale": [1, 1, 0]}, "scale='1 1 0' must not be zero"),
    "no rotation": ({**CUBE, "refquat": [0, 0, 0, 0]}, "refquat must not be zero"),
}


@pytest.mark.parametrize("inertia", ["", "exact", "legacy", "shell", "convex"])
def test_a_flat_mesh_that_collides_is_told_what_loads(inertia):
    """Whatever its inertia: the remedies that the message names do load."""
    attrs = {**SIDES, **({"inertia": inertia} if inertia else {})}
    assert_refused(model(attrs), "in one plane", "a thin box", VISUAL.replace('"', "'"))
    assert_refused(model(attrs), "on the mesh inertia='shell'")
    compile_string(model({**SIDES, "inertia": "shell"}, f'type="mesh" mesh="m" {VISUAL}'))
    compile_string(model({**SIDES, "inertia": "shell"}, 'type="box" size=".5 .5 .001"'))


@pytest.mark.parametrize("case", REFUSED)
def test_refused_meshes(case):
    attrs, message = REFUSED[case]
    attrs = dict(attrs)
    geom = attrs.pop("geom", "")
    assert_refused(model(attrs, f'type="mesh" mesh="m" {geom}'), "<mesh name='m'>", message)


REFUSED_GEOMS = {
    'type="mesh"': "needs mesh, the name of a mesh",
    'type="mesh" mesh="n"': "mesh='n' names no mesh",
    'type="box" mesh="n"': "mesh='n' names no mesh",
    'type="mesh" mesh="m" shellinertia="true"': "shellinertia is for primitive shapes",
    'type="plane" mesh="m"': "a plane cannot be fitted to a mesh",
    'type="sphere" mesh="m" fitscale="0"': "size needs the radius",
    'type="mesh" mesh="m" mass="-1"': "must not be negative",
}


@pytest.mark.parametrize("geom", REFUSED_GEOMS)
def test_refused_geoms(geom):
    assert_refused(model(CUBE, geom), "<geom>", REFUSED_GEOMS[geom])


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ('<geom type="mesh" mesh="m" fromto="0 0 0 0 0 1"/>', "fromto is for capsules"),
        ('<geom type="capsule" mesh="m" fromto="0 0 0 0 0 1"/>', "both mesh and fromto"),
        ('<site type="mesh"/>', "needs mesh, the name of a mesh"),
        ('<site type="mesh" mesh="n"/>', "mesh='n' names no mesh"),
        ('<site type="box" size="1 1 1" mesh="m"/>', "mesh is for sites of type='mesh'"),
        ('<site type="sdf" mesh="m"/>', "mesh is for sites of type='mesh'"),
    ],
)
def test_refused_places(part, message):
    text = f"""
        <mujoco>
          <asset><mesh name="m" {written(**CUBE)}/></asset>
          <worldbody>{part}</worldbody>
        </mujoco>"""
    assert_refused(text, message)


@pytest.mark.parametrize("scale", ["1e35 1e35 1e35", "1e300 1e300 1e300", "nan 1 1", "1 1e-320 1"])
def test_scales_that_no_number_can_hold_are_refused(scale):
    with pytest.raises(ModelError, match=r"scale|too small"):
        compile_string(model(CUBE, scale=scale))


def test_a_flat_mesh_can_be_seen():
    flat = model(SIDES, f'type="mesh" mesh="m" {VISUAL}', inertia="shell")
    assert refusal(flat) is None
    assert_agrees(flat)
