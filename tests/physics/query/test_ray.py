"""Rays against MuJoCo's, for every type of geom: from inside and outside, along edges, misses."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import ROUGH_DIFFERENCE, ROUNDING, SAME, STAGE

import jaxsim
from jaxsim.io.bridge import put_model

SHARD = np.random.default_rng(5).normal(size=(12, 3)) * 0.15
HILLS = np.random.default_rng(1).uniform(size=(7, 9))
KINDS = {
    "sphere": 'type="sphere" size=".2"',
    "capsule": 'type="capsule" size=".1 .2"',
    "ellipsoid": 'type="ellipsoid" size=".1 .3 .2"',
    "cylinder": 'type="cylinder" size=".2 .15"',
    "box": 'type="box" size=".1 .2 .3"',
    "shard": 'type="mesh" mesh="shard"',
    "ball": 'type="mesh" mesh="ball"',
    "hills": 'type="hfield" hfield="hills"',
    "cell": 'type="hfield" hfield="cell"',
    "torus": 'type="sdf" mesh="torus"><plugin instance="torus"/></geom',
    "octree": 'type="sdf" mesh="stone"',
}
FIXED = {"plane": 'type="plane" size=".5 .4 .1"', "floor": 'type="plane" size="0 .4 .1"'}
ASSETS = f"""
<extension><plugin plugin="mujoco.sdf.torus"><instance name="torus">
  <config key="radius1" value=".2"/><config key="radius2" value=".1"/></instance></plugin>
</extension>
<asset>
  <mesh name="shard" vertex="{" ".join(map(str, SHARD.ravel()))}"/>
  <mesh name="stone" vertex="0 0 0 .5 0 0 0 .4 0 0 0 .3"/>
  <mesh name="ball" builtin="supersphere" params="9 .8 .7" scale=".3 .2 .25"/>
  <mesh name="torus"><plugin instance="torus"/></mesh>
  <hfield name="hills" nrow="7" ncol="9" size=".4 .3 .2 .1"
    elevation="{" ".join(map(str, HILLS.ravel()))}"/>
  <hfield name="cell" nrow="2" ncol="2" size=".3 .2 .2 .2" elevation="0 1 .5 .2"/>
</asset>
<default><geom contype="0" conaffinity="0" friction="1"/></default>"""
INERTIAL = '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
QUICK = ("capsule", "box", "ball", "hills", "torus")  # one of each family of surfaces
SIZED = ("sphere", "capsule", "ellipsoid", "cylinder", "box")  # whose size may have any value
RAYS = 300  # a kind of geom


@cache
def model(*kinds: str) -> mujoco.MjModel:
    """Bodies of these kinds of geoms, after one that is far away; in groups by their number."""
    bodies = ""
    for k, kind in enumerate(kinds):
        form = (KINDS | FIXED)[kind].replace("type", f'name="{kind}" group="{k % 6}" type', 1)
        end = "" if form.endswith("geom") else "/"
        joint = "" if kind in FIXED else "<freejoint/>"
        place = 'pos=".1 .05 0" euler="10 20 30"'
        bodies += f'<body name="{kind}" {place}>{joint}{INERTIAL}<geom {form}{end}></body>'
    far = '<body pos="90 90 90"><geom size=".01"/></body>'
    return mujoco.MjModel.from_xml_string(
        f"<mujoco>{ASSETS}<worldbody>{far}{bodies}</worldbody></mujoco>"
    )


def state(mj: mujoco.MjModel, seed: int, spread: float = 0.1) -> mujoco.MjData:
    """Bodies about the origin, turned at random."""
    rng, d = np.random.default_rng(seed), mujoco.MjData(mj)
    pose = rng.normal(size=(mj.nq // 7, 7))
    pose[:, :3] *= spread
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1)[:, None]
    d.qpos[:] = pose.ravel()
    mujoco.mj_kinematics(mj, d)
    return d


def drawn(mj: mujoco.MjModel, d: mujoco.MjData, seed: int, number: int = RAYS):
    """Rays that begin inside, near and far away, at and past the geoms; of any length."""
    rng = np.random.default_rng(seed)
    geom = rng.integers(1, mj.ngeom, number)
    pnt = rng.normal(size=(number, 3)) * rng.choice([0.05, 0.3, 2.0], (number, 1))
    pnt += d.geom_xpos[geom]
    aim = d.geom_xpos[geom] + 0.15 * rng.normal(size=(number, 3))
    return pnt, (aim - pnt) * rng.uniform(0.3, 3, (number, 1))


def met(mj, d, pnt, vec, geomgroup=None, flg_static=True, bodyexclude=-1) -> np.ndarray:
    """The oracle's distances, geoms and normals, `[n, 5]`."""
    geom, normal, rows = np.zeros(1, np.int32), np.zeros(3), []
    for p, v in zip(pnt, vec, strict=True):
        dist = mujoco.mj_ray(mj, d, p, v, geomgroup, flg_static, bodyexclude, geom, normal)
        rows.append(np.r_[dist, geom, normal])
    return np.array(rows)


def numbers(m, qpos, pnt, vec, **options):
    """Distances, geoms and normals, `[n, 5]`."""
    hit = jaxsim.support.ray(m, jaxsim.make_data(m).replace(qpos=qpos), pnt, vec, **options)
    return jnp.column_stack([hit.dist, hit.geomid.astype(hit.dist.dtype), hit.normal])


cast = jax.jit(numbers, static_argnames=("geomgroup", "flg_static"))
many = jax.jit(jax.vmap(numbers, (None, 0, None, None)))


@pytest.mark.parametrize("kind", [*KINDS, *FIXED])
def test_rays_equal_those_of_mujoco(kind):
    mj = model(kind)
    d = state(mj, 0)
    pnt, vec = drawn(mj, d, 1)
    expected = met(mj, d, pnt, vec)
    hit = expected[:, 0] >= 0
    assert 0.15 < hit.mean() < 0.97
    np.testing.assert_allclose(cast(put_model(mj), d.qpos, pnt, vec), expected, **STAGE)


@cache
def everything(*kinds: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """All kinds of geoms, or these, and a state of theirs."""
    mj = model(*kinds or (*KINDS, *FIXED))
    return mj, state(mj, 2, spread=0.5)


def test_the_nearest_of_all_types_is_met():
    """Also in many worlds at once, whose bodies are elsewhere."""
    mj, d = everything()
    m = put_model(mj)
    pnt, vec = drawn(mj, d, 3, 200)
    expected = met(mj, d, pnt, vec)
    assert len(np.unique(expected[:, 1])) == mj.ngeom  # all but the first, and nothing
    np.testing.assert_allclose(cast(m, d.qpos, pnt, vec), expected, **STAGE)
    states = [state(mj, seed, spread=0.5) for seed in range(6)]
    mine = many(m, np.array([s.qpos for s in states]), pnt, vec)
    for k, s in enumerate(states):
        np.testing.assert_allclose(mine[k], met(mj, s, pnt, vec), **STAGE)


@pytest.mark.slow
def test_masks():
    """Groups, geoms fixed to the world, a body that is left out, colors without opacity."""
    mj, d = everything()
    pnt, vec = drawn(mj, d, 4, 100)
    box, floor = mj.body("box").id, mj.body("floor").id
    rgba = mj.geom_rgba.copy()
    mj.geom_rgba[mj.geom("shard").id, 3] = 0
    m = put_model(mj)
    for options in (
        {},
        {"geomgroup": (1, 0, 0, 1, 0, 1)},
        {"flg_static": False},
        {"bodyexclude": box},
        {"geomgroup": (0, 1, 1, 0, 1, 0), "flg_static": False, "bodyexclude": floor},
        {"geomgroup": (0, 0, 0, 0, 0, 0)},
    ):
        theirs = dict(options)
        if "geomgroup" in options:
            theirs["geomgroup"] = np.array(options["geomgroup"], np.uint8)
        expected = met(mj, d, pnt, vec, **theirs)
        np.testing.assert_allclose(cast(m, d.qpos, pnt, vec, **options), expected, **STAGE)
    several = [floor, box]
    mj.geom_rgba[np.isin(mj.geom_bodyid, several), 3] = 0  # not to be met either
    ray = jax.jit(partial(jaxsim.support.ray, bodyexclude=several))
    mine = ray(m, jaxsim.make_data(m).replace(qpos=d.qpos), pnt, vec)
    np.testing.assert_allclose(mine.dist, met(mj, d, pnt, vec)[:, 0], **STAGE)
    mj.geom_rgba[:] = rgba


def test_materials_without_opacity_are_not_met():
    xml = """<mujoco><asset><material name="glass" rgba="1 1 1 0"/><material name="paint"/></asset>
      <worldbody><geom size=".1" rgba="1 0 0 0" material="paint"/>
      <geom size=".2" material="glass"/><geom size=".3" rgba="0 0 1 0"/></worldbody></mujoco>"""
    m = jaxsim.load_model(xml)
    at, way, ray = jnp.array([1.0, 0, 0]), jnp.array([-1.0, 0, 0]), jax.jit(jaxsim.support.ray)
    hit = ray(m, jaxsim.make_data(m), at, way)
    assert hit.geomid == 0
    np.testing.assert_allclose(hit.dist, 0.9)
    seen = m.replace(geom_rgba=m.geom_rgba.at[2, 3].set(0.5))
    hit = ray(seen, jaxsim.make_data(m), at, way)
    assert hit.geomid == 2


@pytest.mark.slow
def test_rays_along_grids_and_axes():
    """Rays through corners and along edges meet what they touch: no ray slips between triangles."""
    mj = model("hills", "box", "ball")
    d = mujoco.MjData(mj)
    d.qpos[:] = np.r_[0, 0, 0, 1, 0, 0, 0, 0, 0, 5, 1, 0, 0, 0, 4, 0, 0, 1, 0, 0, 0]
    mujoco.mj_kinematics(mj, d)
    x, y = np.meshgrid(np.linspace(-0.4, 0.4, 9), np.linspace(-0.3, 0.3, 7))
    down = np.stack([x, y, np.full_like(x, 2)], -1).reshape(-1, 3)
    hit = np.asarray(cast(put_model(mj), d.qpos, down, np.tile([0.0, 0, -1], (63, 1))))
    np.testing.assert_allclose(hit[:, 0], 2 - mj.hfield_data[:63] * 0.2, rtol=1e-7)
    # at the vertices of a mesh from its center, and at the edges of a box
    start, number = mj.mesh_vertadr[mj.mesh("ball").id], mj.mesh_vertnum[mj.mesh("ball").id]
    ball = mj.geom("ball").id
    turn = d.geom_xmat[ball].reshape(3, 3)
    vertex = np.float64(mj.mesh_vert[start : start + number]) @ turn.T
    from_center = np.tile(d.geom_xpos[ball], (number, 1))
    hit = np.asarray(cast(put_model(mj), d.qpos, from_center, vertex))
    np.testing.assert_allclose(hit[:, 0], 1, rtol=1e-9)
    edges = np.array([[0.1, 0.2 * k, 2] for k in np.linspace(-1, 1, 9)])
    hit = np.asarray(cast(put_model(mj), d.qpos, edges, np.tile([0.0, 0, 1], (9, 1))))
    np.testing.assert_allclose(hit[:, 0], 2.7, rtol=1e-12)


@pytest.mark.slow
def test_single_precision_far_away():
    """A ray from a hundred meters away meets what one from nearby does."""
    mj, d = everything(*QUICK)
    rng = np.random.default_rng(6)
    geom = rng.integers(1, mj.ngeom, 200)
    way = rng.normal(size=(200, 3))
    way /= np.linalg.norm(way, axis=1)[:, None]
    pnt = d.geom_xpos[geom] + 0.02 * rng.normal(size=(200, 3)) - 100 * way
    pnt, way = (np.float64(np.float32(x)) for x in (pnt, way))  # inputs of both
    expected = met(mj, d, pnt, way)
    with jax.enable_x64(False):
        mine = np.asarray(cast(put_model(mj), *map(jnp.float32, (d.qpos, pnt, way))))
    same = mine[:, 1] == expected[:, 1]
    assert same.mean() > 0.98  # at an outline either may be met
    # points are known to 8e-6 m, ends of rays that come flat to a surface less
    near = np.abs(mine[:, 0] - expected[:, 0]) < 2e-4
    assert near[same].mean() > 0.98


@pytest.mark.slow
def test_a_ray_without_direction_meets_nothing():
    mj, d = everything()
    m, zero = put_model(mj), np.zeros((2, 3))
    np.testing.assert_array_equal(cast(m, d.qpos, zero, zero), [[-1, -1, 0, 0, 0]] * 2)
    slope = jax.jacrev(lambda p, v: numbers(m, d.qpos, p, v)[:, 0], (0, 1))(zero, zero)
    assert not any(np.any(s) for s in slope)


@pytest.mark.short("capsule", "torus")
@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=() if k in QUICK else pytest.mark.slow) for k in (*KINDS, *FIXED)],
)
def test_derivatives(kind):
    """Distance and normal by pose, ray and sizes, in both modes, against central differences."""
    mj = model(kind)
    m, d = put_model(mj), state(mj, 0)
    pnt, vec = drawn(mj, d, 7, 40)
    rng = np.random.default_rng(8)
    at = (d.qpos.copy(), pnt, vec, np.asarray(m.geom_size[1]))
    way = tuple(rng.normal(size=np.shape(x)) for x in at)

    def of(qpos, pnt, vec, size):
        size = m.geom_size.at[1].set(size) if kind in SIZED else m.geom_size
        return jnp.delete(numbers(m.replace(geom_size=size), qpos, pnt, vec), 1, axis=1)

    weight = rng.normal(size=(len(pnt), 4))

    @jax.jit
    def both(at, way):
        out, forward = jax.jvp(of, at, way)
        return out, forward, jax.vjp(of, *at)[1](weight)

    step = 1e-6
    moved = [
        both(tuple(x + s * w for x, w in zip(at, way, strict=True)), way)[0] for s in (step, -step)
    ]
    difference = (moved[0] - moved[1]) / (2 * step)
    out, forward, back = both(at, way)
    # where a ray passes from one face to another within the step there is no derivative, and where
    # it hardly touches the step is too long
    smooth = np.all(np.abs(difference) < 50, axis=1) & (out[:, 0] >= 0)
    assert smooth.sum() > 4
    # the search for a signed distance ends up to 1e-7 before the surface
    close = {"rtol": 1e-4, "atol": 1e-4} if kind in ("torus", "octree") else ROUGH_DIFFERENCE
    np.testing.assert_allclose(forward[smooth], difference[smooth], **close)
    assert np.all(np.isfinite(forward))
    missed = out[:, 0] < 0
    assert not np.any(forward[missed])
    total = sum(float(np.vdot(b, w)) for b, w in zip(back, way, strict=True))
    np.testing.assert_allclose(total, float(np.vdot(forward, weight)), **ROUNDING | {"rtol": 1e-9})


@pytest.mark.slow
def test_vertices_and_heights_of_each_world():
    """Meshes and height fields that differ from world to world."""
    mj = model("shard", "hills")
    m, d = put_model(mj), state(mj, 1)
    pnt, vec = drawn(mj, d, 9, 60)
    factor = np.array([1.0, 0.6, 1.3, 0.9, 0.7])
    axes = jax.tree.map(lambda _: None, m).replace(mesh_vert=0, hfield_data=0)
    each = m.replace(
        mesh_vert=factor[:, None, None] * m.mesh_vert[None],
        hfield_data=factor[:, None] * m.hfield_data[None],
    )
    mine = jax.jit(jax.vmap(numbers, (axes, None, None, None)))(each, d.qpos, pnt, vec)
    for k, f in enumerate(factor):
        one = m.replace(mesh_vert=f * m.mesh_vert, hfield_data=f * m.hfield_data)
        np.testing.assert_allclose(mine[k], cast(one, d.qpos, pnt, vec), **STAGE)
    assert len({tuple(np.asarray(x)[:, 1]) for x in mine}) > 1


@pytest.mark.slow
def test_rays_and_models_of_each_world():
    """Rays, the body that is left out, sizes and colors that differ from world to world."""
    mj, d = everything(*QUICK)
    m, rng, worlds = put_model(mj), np.random.default_rng(11), 4
    rays = [drawn(mj, d, seed, 40) for seed in range(worlds)]
    pnt, vec = (np.stack(x) for x in zip(*rays, strict=True))
    body = np.array([mj.body(kind).id for kind in ("ball", "box", "hills", "torus")])
    size = m.geom_size[None] * rng.uniform(0.7, 1.2, (worlds, 1, 1))
    rgba = jnp.tile(m.geom_rgba, (worlds, 1, 1)).at[np.arange(worlds), [1, 2, 3, 4], 3].set(0)
    axes = jax.tree.map(lambda _: None, m).replace(geom_size=0, geom_rgba=0)

    def of(m, pnt, vec, body):
        return numbers(m, d.qpos, pnt, vec, bodyexclude=body)

    run = jax.jit(of)
    each = m.replace(geom_size=size, geom_rgba=rgba)
    mine = jax.jit(jax.vmap(of, (axes, 0, 0, 0)))(each, pnt, vec, body)
    for k in range(worlds):
        one = m.replace(geom_size=size[k], geom_rgba=rgba[k])
        np.testing.assert_allclose(mine[k], run(one, pnt[k], vec[k], body[k]), **STAGE)


@pytest.mark.slow
def test_derivatives_among_all_types_are_finite():
    """Whatever the formulas of the geoms that a ray does not meet make of it."""
    mj, d = everything()
    m = put_model(mj)
    pnt, vec = drawn(mj, d, 12, 60)
    at = (jnp.asarray(d.qpos), *map(jnp.asarray, (pnt, vec)), m.geom_size, m.mesh_vert)

    def of(qpos, pnt, vec, size, vertex):
        out = numbers(m.replace(geom_size=size, mesh_vert=vertex), qpos, pnt, vec)
        return jnp.delete(out, 1, axis=1)

    back = jax.jit(lambda a, w: jax.vjp(of, *a)[1](w))(at, np.ones((60, 4)))
    assert all(np.isfinite(x).all() and np.any(x) for x in back)


def test_more_height_fields_than_meshes():
    """The number of a height field is no number of a mesh."""
    fields = "".join(
        f'<hfield name="h{k}" nrow="2" ncol="2" size="1 1 1 .1" elevation="{k} 1 2 {k}"/>'
        for k in range(3)
    )
    geoms = "".join(f'<geom type="hfield" hfield="h{k}" pos="{3 * k} 0 0"/>' for k in range(3))
    xml = f"<mujoco><asset>{fields}</asset><worldbody>{geoms}</worldbody></mujoco>"
    mj = mujoco.MjModel.from_xml_string(xml)
    d = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, d)
    pnt, down = np.array([[3 * k + 0.2, 0.3, 4] for k in range(3)]), np.tile([0.0, 0, -1], (3, 1))
    np.testing.assert_allclose(cast(put_model(mj), d.qpos, pnt, down), met(mj, d, pnt, down))


@pytest.mark.slow
def test_arguments():
    mj, _ = everything("plane", "sphere")
    m = put_model(mj)
    d = jaxsim.make_data(m)
    p = jnp.zeros(3)
    one = jaxsim.support.ray(m, d, p + 3, -p - 1)
    assert one.dist.shape == one.geomid.shape == ()
    assert one.normal.shape == (3,)
    several = jaxsim.support.ray(m, d, p + 3, -jnp.ones((4, 3)))
    np.testing.assert_allclose(several.dist, np.full(4, one.dist), **SAME)
    none = jax.jit(jaxsim.support.ray)(m, d, jnp.zeros((0, 3)), p)
    assert none.dist.shape == (0,)
    assert none.normal.shape == (0, 3)
    with pytest.raises(ValueError, match="ray: expected one vector or equally many, got 2 pnt, 3"):
        jaxsim.support.ray(m, d, jnp.zeros((2, 3)), jnp.ones((3, 3)))
    with pytest.raises(ValueError, match=r"ray: pnt: expected shape \(3,\) or \(n, 3\), got"):
        jaxsim.support.ray(m, d, jnp.zeros(2), p)
    with pytest.raises(ValueError, match="ray: bodyexclude: expected integers, got float64"):
        jaxsim.support.ray(m, d, p, p, bodyexclude=jnp.ones(2))
    with pytest.raises(ValueError, match="ray: geomgroup: expected None or 6 static booleans"):
        jaxsim.support.ray(m, d, p, p, geomgroup=(1, 0))
