"""Pictures: what pixels see against `mj_ray`, colors by hand, many worlds, memory, mistakes."""

import re
from functools import cache, partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from view.scene import camera, model, state

import jaxsim
from jaxsim.enums import ObjType
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.transforms.layout import batched
from jaxsim.view import Camera, Look, pixel_ray
from jaxsim.view.picture.render import Picture
from jaxsim.view.picture.sites import add_site_geoms

W, H = 14, 10
ALL = (True,) * 3 + (False,) * 3
BALL = """<mujoco>
  <asset>
    <texture type="skybox" builtin="flat" rgb2=".2 .4 .6" width="8" height="8"/>
    <texture name="halves" type="2d" builtin="checker" width="8" height="8" rgb1="1 0 0"
      rgb2="0 0 1"/>
    <material name="floor" texture="halves" texuniform="true" specular="0"/>
    <material name="glow" rgba=".2 .4 .8 1" emission=".5" specular="0"/>
    <mesh name="block" vertex="-1 -1 -1  1 -1 -1  1 1 -1  -1 1 -1  -1 -1 1  1 -1 1  1 1 1  -1 1 1"
      scale=".2 .2 .2"/>
  </asset>
  <worldbody>
    <camera name="above" pos="0 0 5" projection="orthographic" fovy="4"/>
    <light pos="0 0 4" dir="0 0 -1" directional="true" diffuse=".2 .2 .2" ambient=".1 .2 .3"
      specular="0 0 0"/>
    <geom type="plane" size="1.5 1.5 .1" material="floor"/>
    <body name="ball" pos="0 0 1"><freejoint/><geom name="ball" size=".4" rgba=".6 .2 .1 1"/></body>
    <body pos="1 1 .5"><geom name="block" type="mesh" mesh="block" material="glow"/></body>
    <geom name="ghost" size=".3" pos="-1 -1 1" rgba="1 1 1 0"/>
    <geom name="hidden" size=".3" pos="-1 1 1" group="4"/>
    <site name="veiled" size=".3" pos="-1 1 1" group="3"/>
    <site name="mark" type="ellipsoid" size=".3 .3 .1" pos="1 -1 1" rgba=".1 .7 .3 1"/>
  </worldbody>
</mujoco>"""
SIZE = 16  # pixels of a quarter of a meter


@cache
def ball():
    m = jaxsim.load_model(BALL)
    return m, jaxsim.make_data(m), Look.of(m, BALL)


@jax.jit
def drawn(m, d, look) -> Picture:
    return jaxsim.render(m, d, "above", SIZE, SIZE, look=look)


def pixel(x: float, y: float) -> tuple[int, int]:
    """Return row and column of a position seen from above."""
    return int((2 - y) * 4), int((2 + x) * 4)


@pytest.mark.short("free", "fixed flat")
@pytest.mark.parametrize("kind", ["free", "fixed", "lens", "fixed flat"])
def test_pixels_see_what_rays_of_mujoco_meet(kind):
    mj, m = model()
    assert _beside_mujoco(mj, m, kind)


def _beside_mujoco(mj, m, kind) -> set:
    found = set()
    for seed in (4, 5):
        their = state(seed)
        mine = camera(kind, seed)[1]
        d = jaxsim.make_data(m).replace(
            qpos=jnp.asarray(their.qpos),
            mocap_pos=jnp.asarray(their.mocap_pos),
            mocap_quat=jnp.asarray(their.mocap_quat),
        )
        far = 50 * mj.stat.extent
        near = 0.01 * mj.stat.extent
        x, y = (np.arange(W) + 0.5) / W, 1 - (np.arange(H) + 0.5) / H
        y, x = np.meshgrid(y, x, indexing="ij")
        begin, way = jax.vmap(partial(pixel_ray, m, d, mine, W / H))(x.ravel(), y.ravel())
        depth, geom, normal = np.full(W * H, far), np.full(W * H, -1), np.zeros((W * H, 3))
        group = np.array(ALL, np.uint8)
        for k, (p, u) in enumerate(zip(np.asarray(begin), np.asarray(way), strict=True)):
            start = near
            for _ in range(8):  # what is seen from inside is not there
                which, n = np.zeros(1, np.int32), np.zeros(3)
                t = mujoco.mj_ray(mj, their, p + start * u, u, group, 1, -1, which, n)
                if t < 0 or n @ u <= 0:
                    break
                start = (start + t) * (1 + 1e-5) + 1e-5 * near
            if t >= 0 and n @ u <= 0 and start + t < far:
                depth[k], geom[k], normal[k] = start + t, which[0], n
        got = jaxsim.render(m, d, mine, W, H, what=("normal", "depth", "segmentation"))
        assert got.rgb is None
        np.testing.assert_array_equal(got.segmentation, geom.reshape(H, W))
        np.testing.assert_allclose(got.depth, depth.reshape(H, W), rtol=1e-9)
        np.testing.assert_allclose(got.normal, normal.reshape(H, W, 3), atol=1e-9)
        found |= set(geom.tolist()) - {-1}
    return found


def test_rendered_image_equals_manual_shading():
    """Depth, geoms, light, shadow, images, sky and what glows, from above."""
    m, d, look = ball()
    got = drawn(m, d, look)
    assert got.rgb.shape == got.normal.shape == (SIZE, SIZE, 3)
    middle = pixel(0.1, 0.1)
    r2 = 2 * 0.125**2  # the middle of that pixel
    np.testing.assert_allclose(got.depth[middle], 4 - np.sqrt(0.16 - r2))
    assert got.segmentation[middle] == jaxsim.name2id(m, "geom", "ball")
    up = np.sqrt(1 - r2 / 0.16)  # the normal's vertical part
    np.testing.assert_allclose(got.normal[middle], [0.125 / 0.4, 0.125 / 0.4, up])
    # headlight and lamp shine along the view, with the headlight's highlight
    base = 0.1 + np.array([0.1, 0.2, 0.3]) + (0.4 + 0.2) * up
    color = base * [0.6, 0.2, 0.1] + 0.5 * 0.5 * up**64
    np.testing.assert_allclose(got.rgb[middle], color, rtol=1e-6)
    # the block glows; a flat top, though its corners have one normal each
    top = pixel(1.1, 1.1)
    assert got.segmentation[top] == jaxsim.name2id(m, "geom", "block")
    np.testing.assert_allclose(got.depth[top], 5 - 0.7)
    # the floor's image begins in its corner and repeats every two meters
    # what has no opacity or another group is not there
    assert (got.segmentation[pixel(-1, -1)], got.segmentation[pixel(-1, 1)]) == (0, 0)
    light = 0.7 + np.array([0.1, 0.2, 0.3])
    for x, paint in ((-0.9, [1, 0, 0]), (0.4, [0, 0, 1])):
        np.testing.assert_allclose(got.rgb[pixel(x, 0.6)], light * paint, rtol=1e-6)
    # a site is seen as a geom is, and has no number among them
    mark = pixel(1.1, -1.1)
    assert got.segmentation[mark] == -1
    np.testing.assert_array_equal(got.object[mark], [1, ObjType.SITE])
    np.testing.assert_array_equal(got.object[middle], [got.segmentation[middle], ObjType.GEOM])
    # beyond the floor is the sky
    assert got.segmentation[0, 0] == -1
    assert got.depth[0, 0] == 50 * m.stat.extent
    np.testing.assert_allclose(got.rgb[0, 0], [51 / 255, 102 / 255, 153 / 255])


def test_what_stands_in_the_light_casts_a_shadow():
    m, d, look = ball()
    m = m.replace(light_dir=m.light_dir.at[0].set(jnp.array([0.6, 0.0, -0.8])))
    lit = drawn(m, d, look)
    dark = pixel(0.85, 0.1)  # 1 m below the ball the light has gone 0.75 m
    np.testing.assert_array_equal(lit.segmentation[dark], 0)
    free = drawn(m, d.replace(qpos=d.qpos.at[2].set(9.0)), look)  # the ball is behind the camera
    lost = free.rgb[dark] - lit.rgb[dark]
    channel = int(np.argmax(lost))
    np.testing.assert_allclose(lost[channel], 0.2 * 0.8, rtol=1e-6)


def test_sites_of_hidden_groups_make_no_program_longer():
    m, d, _ = ball()
    for groups, number in (((False,) * 6, 0), (ALL, 1), ((True,) * 6, 2)):
        own, poses = jax.eval_shape(batched(partial(_sites_of, groups=groups)), m, d)
        assert own.shape == (m.ngeom + number, 4)
        assert poses.shape == (m.ngeom + number, 3)


def _sites_of(m, d, groups):
    m, d = add_site_geoms(m, kinematics(m, d), groups)
    return m.geom_rgba, d.geom_xpos.to_array(axis=1)


@pytest.mark.slow
def test_worlds_that_look_different():
    m, d, look = ball()
    rng = np.random.default_rng(0)
    colors = jnp.asarray(rng.uniform(size=(2, m.ngeom, 3)))
    colors = jnp.concatenate([colors, jnp.broadcast_to(m.geom_rgba[:, 3:], (2, m.ngeom, 1))], 2)
    states = jnp.stack([d.qpos, d.qpos.at[0].add(0.7)])
    images = jnp.stack([look.tex_data, 255 - look.tex_data])
    lamps = jnp.asarray(rng.uniform(size=(2, 3)))
    lights = jnp.asarray(rng.uniform(size=(2, m.nlight, 3)))
    marks = jnp.asarray(rng.uniform(0.1, 1, size=(2, m.nsite, 4)).round())

    def one(color, qpos, image, lamp, light, mark):
        other = look.replace(tex_data=image, diffuse=lamp)
        mine = m.replace(geom_rgba=color, light_diffuse=light, site_rgba=mark)
        return drawn(mine, d.replace(qpos=qpos), other)

    given = colors, states, images, lamps, lights, marks
    many = jax.jit(jax.vmap(one))(*given)
    for k in range(2):
        alone = one(*(x[k] for x in given))
        for mine, theirs in zip(many, alone, strict=True):
            np.testing.assert_allclose(mine[k], theirs, atol=1e-12)
    assert not np.allclose(many.rgb[0], many.rgb[1])


def test_depth_is_differentiable():
    m, d, _ = ball()

    @jax.jit
    def depth(height):
        moved = d.replace(qpos=d.qpos.at[2].set(height))
        return jaxsim.render(m, moved, "above", SIZE, SIZE, what="depth").depth[pixel(0.1, 0.2)]

    slope = jax.jit(jax.grad(depth))(1.0)
    np.testing.assert_allclose(slope, -1)
    np.testing.assert_allclose(slope, (depth(1.001) - depth(0.999)) / 0.002, rtol=1e-6)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_picture():
    m = jaxsim.load_model("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    d = jaxsim.make_data(m)

    def memory(size: int) -> int:
        made = jax.jit(lambda d: jaxsim.render(m, d, None, size, size, what="depth").depth)
        return made.lower(d).compile().memory_analysis().temp_size_in_bytes

    output = 8 * (512**2 - 128**2)  # bytes, kept once or twice on their way
    assert memory(512) - memory(128) < 3 * output


def test_tables_of_meshes_are_in_a_program_once():
    """Otherwise compilation takes long: rays are cast in many parts of a program."""

    def bytes_of(side: int) -> int:
        x, y = (a.ravel() for a in np.meshgrid(*(np.linspace(-1, 1, side),) * 2))
        vertex = np.stack([x, y, np.cos(x) + np.cos(y)], axis=1)
        mesh = f'<mesh name="hill" vertex="{" ".join(map(str, vertex.ravel()))}"/>'
        xml = BALL.replace("<asset>", f"<asset>{mesh}").replace('mesh="block"', 'mesh="hill"')
        m = jaxsim.load_model(xml)
        faces.append(m.nmeshface)
        text = drawn.lower(m, jaxsim.make_data(m), Look.of(m)).as_text()
        return sum(len(number) // 2 for number in re.findall('dense<"0x([0-9A-F]*)"', text))

    faces: list[int] = []
    small, large = bytes_of(12), bytes_of(24)
    # a face: 3 vertices and 3 normals; a leaf and a node above it: 2 ways, its face and 3 vertices,
    # and these again in the kernel of a CPU that makes the boxes
    leaves = np.diff(2 ** np.ceil(np.log2(faces)))[0]
    assert large - small < 4 * (6 * np.diff(faces)[0] + 11 * leaves) * 1.1


def test_mistakes_are_sentences():
    m, d, _ = ball()
    for asked, says in (
        ({"camera": "abov"}, "abov"),
        ({"camera": 3}, "there is no camera 3"),
        ({"width": 0}, "width: expected a number of pixels"),
        ({"height": 2.5}, "height: expected a number of pixels"),
        ({"what": "colour"}, "expected some of rgb"),
        ({"what": ()}, "got nothing"),
        ({"look": 3}, "expected a Look"),
        ({"geomgroup": (1, 1)}, "geomgroup"),
        ({"sitegroup": (1, 1)}, "sitegroup: expected"),
    ):
        with pytest.raises(ValueError, match=says):
            jaxsim.render(m, d, **asked)
    with pytest.raises(ValueError, match="expected a Model"):
        jaxsim.render(None, d)


def test_a_camera_of_a_file_with_a_look():
    look = Look.of(
        ball()[0],
        "<mujoco><visual><headlight diffuse='1 0 0' active='false'/><map zfar='3'/></visual>"
        "</mujoco>",
    )
    assert look.zfar == 3
    assert not np.any(look.diffuse)
    assert Camera.fixed(ball()[0], "above").fixedcamid == 0
