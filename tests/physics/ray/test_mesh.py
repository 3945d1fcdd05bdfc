"""Rays and meshes in single precision, against MuJoCo."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

import jaxsim

CUBE = np.indices((2, 2, 2)).reshape(3, -1).T - 0.5
SPLINTER = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def scene(vertex: np.ndarray, faces: np.ndarray | None = None) -> str:
    face = "" if faces is None else f'face="{" ".join(map(str, faces.ravel()))}"'
    vertex = " ".join(map(str, vertex.ravel()))
    return f"""<mujoco><asset><mesh name="m" inertia="shell" vertex="{vertex}" {face}/></asset>
      <worldbody><geom type="mesh" mesh="m" contype="0" conaffinity="0"/></worldbody></mujoco>"""


def distances(xml: str, pnt: np.ndarray, vec: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances of jaxsim in single precision, and of MuJoCo."""
    mj = mujoco.MjModel.from_xml_string(xml)
    d = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, d)
    # equal inputs for jaxsim and MuJoCo
    pnt, vec = np.float32(pnt), np.float32(vec)
    theirs = [
        mujoco.mj_ray(mj, d, p, v, None, 1, -1, None, None)
        for p, v in zip(np.float64(pnt), np.float64(vec), strict=True)
    ]
    with jax.enable_x64(False):
        m = jaxsim.load_model(xml)
        hit = jax.jit(jaxsim.support.ray)(
            m, jaxsim.make_data(m), jnp.asarray(pnt), jnp.asarray(vec)
        )
    return np.asarray(hit.dist), np.array(theirs)


def test_faces_in_the_sides_of_the_box_around_a_mesh():
    """No ray from afar passes through one because its points are known to some digits only."""
    rng = np.random.default_rng(0)
    way = rng.normal(size=(400, 3)) * (1, 1, 0.2)
    way /= np.linalg.norm(way, axis=1)[:, None]
    mine, theirs = distances(scene(CUBE), rng.uniform(-0.3, 0.3, (400, 3)) - 40 * way, way)
    assert (theirs > 0).all()
    # points are known to 4e-6 m; where a ray comes flat to a face its end is known less
    np.testing.assert_allclose(mine, theirs, atol=5e-4)


def test_small_faces_of_a_large_mesh():
    """A splinter of a millimeter on a mesh of meters is met as well."""
    vertex = np.concatenate([5 * SPLINTER - (6, 6, 6), 1e-3 * SPLINTER + (0, 0, 1)])
    xml = scene(vertex, np.concatenate([FACES, FACES + len(SPLINTER)]))
    mj = mujoco.MjModel.from_xml_string(xml)
    d = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, d)
    corner = mj.mesh_vert[4:] @ d.geom_xmat[0].reshape(3, 3).T + d.geom_xpos[0]
    rng = np.random.default_rng(1)
    aim = rng.dirichlet(np.full(4, 3.0), 200) @ corner
    way = rng.normal(size=(200, 3))
    way /= np.linalg.norm(way, axis=1)[:, None]
    mine, theirs = distances(xml, aim - 0.5 * way, way)
    assert (theirs > 0).all()
    small = np.abs(theirs - 0.5) < 2e-3
    assert small.sum() > 150
    # within the precision of corner positions, 5e-7 m, amplified by flat faces
    assert (np.abs(mine - theirs)[small] < 2e-5).mean() > 0.97
    assert (np.abs(mine - theirs)[small] < 2e-3).all()
