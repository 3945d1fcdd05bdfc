"""`Viewer`: what a page is sent, for one world and many; where it listens; how it ends."""

import socket

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from view.visitor import Visitor

import jaxsim
from jaxsim.view import Viewer
from jaxsim.view.browser.draw.contacts import Touching
from jaxsim.view.browser.draw.marks import optical_rotation, tendon_lines
from jaxsim.view.browser.draw.poses import Posing, pose_state
from jaxsim.view.browser.server import PortInUse

MODEL = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <camera name="side" pos="0 -3 1" xyaxes="1 0 0 0 0.3 1"/>
    <body name="fixed" pos="0 0 2"><geom name="hook" size="0.05"/><site name="high"/></body>
    <body name="crate" pos="0 0 0.1">
      <freejoint/>
      <geom name="crate" type="box" size="0.1 0.1 0.1"/>
      <geom name="knob" size="0.03" pos="0 0 0.12" euler="30 0 0" group="4"/>
      <site name="low" pos="0 0 0.1"/>
    </body>
    <body name="rod" pos="1 0 1">
      <joint name="swing" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
      <site name="end" pos="0.3 0 0"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="rope" width="0.01"><site site="high"/><site site="low"/></spatial>
    <spatial name="pulled" width="0.02">
      <site site="end"/><site site="high"/>
      <pulley divisor="2"/><site site="high"/><site site="low"/>
    </spatial>
  </tendon>
</mujoco>
"""


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(MODEL)


@pytest.fixture(scope="module")
def d(m):
    """Return a world after `forward` with the crate in the floor, rotated about the vertical."""
    kept = [*jaxsim.support.contact_forces.carries, "ncon"]
    d = jaxsim.make_data(m, keep=[n for n, f in type(jaxsim.make_data(m)).fields.items() if f.keep]
                         + kept)  # fmt: skip
    turned = jnp.array([0.5, 0.2, 0.099, np.cos(0.3), 0, 0, np.sin(0.3), 0.4])
    return jax.jit(jaxsim.forward)(m, d.replace(qpos=turned))


def test_poses_are_those_of_the_physics(m, d):
    poses = Posing(m).of(pose_state(d))
    np.testing.assert_allclose(poses.xpos[0], d.xpos, atol=1e-12)
    np.testing.assert_allclose(poses.xquat[0], d.xquat, atol=1e-12)
    np.testing.assert_allclose(poses.cam_xmat[0], d.cam_xmat, atol=1e-12)


def test_tendons_end_at_their_sites_and_break_at_pulleys(m, d):
    poses = Posing(m).of(pose_state(jax.tree.map(lambda x: jnp.stack([x, x]), d)))
    lines, tendon = tendon_lines(poses, np.array([[0.0, 0, 0], [5, 0, 0]]))
    site = {n: np.asarray(d.site_xpos)[i] for i, n in enumerate(m.names["site"])}
    want = [(site["high"], site["low"]), (site["end"], site["high"]), (site["high"], site["low"])]
    np.testing.assert_array_equal(tendon, [0, 1, 1, 0, 1, 1])
    np.testing.assert_allclose(lines[:3], want, atol=1e-12)
    np.testing.assert_allclose(lines[3:], np.array(want) + np.array([5, 0, 0]), atol=1e-12)


def test_forces_of_contacts_carry_the_weight(m, d):
    touching = Touching(m)
    touch = touching.touch(touching.find(d))
    assert len(touch.pos) == int(d.ncon) == 4
    force = np.asarray(jax.jit(jaxsim.support.contact_forces)(m, d))[:4]
    frame = np.asarray(d.contact.frame)[:4]
    np.testing.assert_allclose(touch.force, np.einsum("nij,ni->nj", frame, force[:, :3]))
    assert np.all(touch.force[:, 2] > 0)
    lean = touching.touch(touching.find(d.replace(cvel=None)))
    assert lean.force is None
    assert touching.find(d.replace(contact=None)) is None


def test_a_camera_of_viser_looks_along_z():
    """The camera of MuJoCo looks along -z with y up: rotated by 180 degrees about x."""
    np.testing.assert_allclose(np.abs(optical_rotation(np.eye(3))), [0, 1, 0, 0], atol=1e-12)


def test_a_page_gets_the_parts_and_their_poses(m, d):
    with Viewer(m, port=0) as viewer, Visitor(viewer.server) as visitor:
        viewer.show(d)
        body = "/bodies/crate"
        visitor.wait(lambda: near(visitor.nodes.get(body, {}).get("position"), d.xpos[2]))
        np.testing.assert_allclose(visitor.nodes[body]["wxyz"], d.xquat[2], atol=1e-6)
        visitor.wait(lambda: f"{body}/low" in visitor.nodes)
        knob = visitor.nodes[f"{body}/knob"]
        assert bytes(knob["glb_data"][:4]) == b"glTF"
        np.testing.assert_allclose(knob["position"], [0, 0, 0.12], atol=1e-6)
        assert not viewer.scene.groups["geom"][4]
        visitor.wait(lambda: visitor.nodes[f"{body}/knob"].get("visible") is False)
        visitor.wait(lambda: "/tendons/0.01" in visitor.nodes)
        line = visitor.nodes["/tendons/0.01"]["points"].reshape(2, 3)
        np.testing.assert_allclose(line[0], d.site_xpos[0], atol=1e-5)

        # what is seen is chosen on the page
        visitor.set("geoms of group 4 (1)", True)
        visitor.wait(lambda: visitor.nodes[f"{body}/knob"].get("visible") is True)
        visitor.set("contact forces", True)
        visitor.wait(lambda: "forces" in viewer.scene.marks.visible)
        viewer.show(d)
        visitor.wait(lambda: "/forces/arrows" in visitor.nodes)
        assert visitor.nodes["/forces/arrows"]["points"].reshape(-1, 2, 3).shape[0] == 4
        visitor.set("cameras", True)
        visitor.wait(lambda: "/cameras/side" in visitor.nodes)

        # and picked
        click = {"type": "SceneNodeClickMessage", "name": f"{body}/crate", "instance_index": None}
        ray = {"ray_origin": (0.0,) * 3, "ray_direction": (1.0, 0, 0), "screen_pos": (0.5, 0.5)}
        visitor.send({**click, **ray, "modifier": None, "owner": ""})
        visitor.wait(lambda: "body **crate**" in visitor.text())
        assert viewer.selected.part.name == "crate"
        visitor.set("opacity", 0.5)
        visitor.wait(lambda: viewer.scene.opacity == 0.5)


def test_a_floor_without_end_is_drawn_as_far_as_one_sees():
    """Also where it ends in the other direction."""
    model = """<mujoco><statistic extent="2"/><worldbody>
      <geom name="all" type="plane" size="0 0 1"/>
      <geom name="strip" type="plane" size="0 3 1"/>
      <geom name="mat" type="plane" size="2 3 1"/>
    </worldbody></mujoco>"""
    with Viewer(jaxsim.load_model(model), port=0) as viewer, Visitor(viewer.server) as visitor:
        visitor.wait(lambda: "/bodies/world/mat" in visitor.nodes)
        all_of_it, strip, mat = (
            visitor.nodes[f"/bodies/world/{name}"] for name in ("all", "strip", "mat")
        )
        seen = all_of_it["fade_distance"]
        assert seen > 20
        assert all_of_it["width"] == all_of_it["height"] == strip["width"] > 2 * seen
        assert (strip["height"], mat["width"], mat["height"]) == (6, 4, 6)


def test_worlds_of_a_batch_stand_side_by_side(m, d):
    heights = jnp.linspace(0.1, 0.5, 5)
    many = jax.vmap(lambda z: d.replace(qpos=d.qpos.at[2].set(z)))(heights)
    with Viewer(m, port=0, spacing=3.0) as viewer, Visitor(viewer.server) as visitor:
        viewer.show(many)
        visitor.wait(lambda: placed(visitor, "/worlds/crate", 4))
        pos = visitor.nodes["/worlds/crate"]["batched_positions"].reshape(4, 3)
        np.testing.assert_allclose(pos[:, 2], heights[1:], atol=1e-6)
        home = visitor.nodes["/bodies/crate"]["position"]
        apart = np.linalg.norm((pos - home)[:, :2], axis=1)
        assert np.all(apart >= 3 - 1e-5)
        quat = visitor.nodes["/worlds/crate"]["batched_wxyzs"].reshape(4, 4)
        np.testing.assert_allclose(quat, np.tile(d.xquat[2], (4, 1)), atol=1e-6)
        assert "/worlds/floor" not in visitor.nodes  # one for all
        # a world that has diverged stays where it was
        viewer.show(many.replace(qpos=many.qpos.at[2].set(jnp.nan).at[1, 2].set(0.7)))
        visitor.wait(lambda: near(positions(visitor, "/worlds/crate")[0, 2], 0.7))
        np.testing.assert_allclose(positions(visitor, "/worlds/crate")[1, 2], heights[2], atol=1e-6)


def test_ghosts_stand_in_one_place(m, d):
    two = jax.tree.map(lambda x: jnp.stack([x, x]), d)
    with Viewer(m, port=0, ghosts=True) as viewer, Visitor(viewer.server) as visitor:
        viewer.show(two)
        visitor.wait(lambda: placed(visitor, "/worlds/crate", 1))
        np.testing.assert_allclose(
            positions(visitor, "/worlds/crate")[0], visitor.nodes["/bodies/crate"]["position"]
        )
        assert "/worlds/hook" not in visitor.nodes  # it is where the first one's is


def test_it_listens_on_this_machine_only_and_ends(m):
    with Viewer(m, port=0) as viewer:
        port = viewer.server.get_port()
        assert viewer.address == f"http://127.0.0.1:{port}/{viewer.server.guard.token}/"
        assert len(viewer.server.guard.token) >= 32
        assert viewer.address in viewer._repr_html_()
        assert viewer.server.get_host() == "127.0.0.1"
        assert viewer.server.request_share_url() is None
        with pytest.raises(PortInUse, match=f"port {port} is in use"):
            Viewer(m, port=port)
    viewer.close()  # a second time does nothing
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=1)
    with pytest.raises(ValueError, match="closed"):
        viewer.show(jaxsim.make_data(m))


def test_drawing_error_is_shown_on_the_page(m, d, monkeypatch):
    """A page that stops reports the reason, and so does `show`."""

    def broken(*_):
        raise RuntimeError("no more memory")

    with Viewer(m, port=0) as viewer, Visitor(viewer.server) as visitor:
        monkeypatch.setattr(viewer.scene, "show", broken)
        viewer.show(d)
        visitor.wait(lambda: "**stopped**: no more memory" in visitor.text())
        with pytest.raises(RuntimeError, match="drawing has stopped: no more memory"):
            viewer.show(d)


def test_wrong_arguments_are_answered_with_a_sentence(m, d):
    with pytest.raises(ValueError, match="expected a Model"):
        Viewer("robot.xml")
    with Viewer(m, port=0) as viewer:
        with pytest.raises(ValueError, match="expected a Data"):
            viewer.show(m)
        with pytest.raises(ValueError, match=r"expected shape \(8,\)"):
            viewer.show(d.replace(qpos=jnp.zeros((2, 2, 8))))


def test_without_viser_the_extra_is_named(m, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "viser", None)
    with pytest.raises(ImportError, match="install the extra 'view': pip install '"):
        Viewer(m)


def near(found, wanted) -> bool:
    return found is not None and np.allclose(found, wanted, atol=1e-6)


def positions(visitor, name) -> np.ndarray:
    return visitor.nodes[name]["batched_positions"].reshape(-1, 3)


def placed(visitor, name, number) -> bool:
    """Return whether all instances have moved from their initial positions."""
    node = visitor.nodes.get(name)
    return node is not None and len(positions(visitor, name)) == number and bool(
        np.all(positions(visitor, name)[:, 2] > 0.05)
    )  # fmt: skip
