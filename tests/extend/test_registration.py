"""Plugins become known by decorator, from installed packages and from a folder; shapes too."""

from importlib.metadata import EntryPoint

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim.extend import registry

FILE = """
import jaxsim

@jaxsim.extend.register_plugin
class Own(jaxsim.extend.Plugin):
    name = "lab.{name}"

    def passive(self, m, d, at):
        return -d.qvel
"""
MODEL = """<mujoco><extension><plugin plugin="lab.{name}"/></extension>
<worldbody><body><plugin plugin="lab.{name}"/><joint/><geom size=".1"/></body></worldbody>
</mujoco>"""


def test_register_decorator_returns_the_class():
    class Own(jaxsim.extend.Plugin):
        name = "lab.own"
        passive = staticmethod(lambda m, d, at: -d.qvel)

    assert jaxsim.extend.register_plugin(Own) is Own
    assert jaxsim.load_model(MODEL.format(name="own")).nplugin == 1
    jaxsim.extend.unregister_plugin("lab.own")
    with pytest.raises(jaxsim.ModelError, match=r"'lab\.own' is not known; known are mujoco\.pid"):
        jaxsim.load_model(MODEL.format(name="own"))


def test_a_folder_of_plugins(tmp_path):
    for name in ("b", "a"):
        (tmp_path / f"{name}.py").write_text(FILE.format(name=name))
    (tmp_path / "notes.txt").write_text("not Python")
    assert jaxsim.extend.load_plugins(tmp_path) == ["lab.a", "lab.b"]
    assert jaxsim.load_model(MODEL.format(name="a")).nplugin == 1
    for name in ("lab.a", "lab.b"):
        jaxsim.extend.unregister_plugin(name)
    with pytest.raises(FileNotFoundError, match="no folder"):
        jaxsim.extend.load_plugins(tmp_path / "nowhere")


def test_plugins_of_installed_packages(tmp_path, monkeypatch):
    module = "lab_offered"
    (tmp_path / f"{module}.py").write_text(FILE.format(name="offered"))
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("offered", f"{module}:Own", registry.ENTRY_POINTS)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    assert jaxsim.load_model(MODEL.format(name="offered")).nplugin == 1
    jaxsim.extend.unregister_plugin("lab.offered")


RING = """<mujoco>
<extension><plugin plugin="{name}"><instance name="ring">
  <config key="{prefix}1" value=".2"/><config key="{prefix}2" value=".08"/></instance></plugin>
</extension>
<asset><mesh name="ring"><plugin instance="ring"/></mesh></asset>
<worldbody><geom size=".1" pos=".2 0 .2"/>
  <body pos="0 0 .05"><freejoint/>
    <geom type="sdf" mesh="ring"><plugin instance="ring"/></geom></body>
</worldbody></mujoco>"""


def ring(x, y, z, r1, r2):
    import jax.numpy as jnp

    return jnp.sqrt((jnp.sqrt(x**2 + y**2 + 1e-30) - r1) ** 2 + z**2) - r2


@pytest.mark.slow
def test_a_shape_of_a_user_is_that_of_ours():
    jaxsim.extend.register_shape(
        "lab.ring",
        {"r1": 0.35, "r2": 0.15},
        ring,
        lambda r1, r2: (r1 + r2, r1 + r2, r2),
        fault=lambda r1, r2: "" if r2 < r1 else "config 'r2' must be less than 'r1'",
    )
    try:
        own = jaxsim.load_model(RING.format(name="lab.ring", prefix="r"))
        ours = jaxsim.load_model(RING.format(name="mujoco.sdf.torus", prefix="radius"))
        for field in ("mesh_vert", "geom_size", "body_inertia", "geom_aabb"):
            np.testing.assert_allclose(getattr(own, field), getattr(ours, field), atol=1e-6)
        a, b = (jax.jit(jaxsim.forward)(m, jaxsim.make_data(m)) for m in (own, ours))
        assert int(a.ncon) == int(b.ncon) > 0
        for field in ("dist", "pos", "frame"):
            # the search goes down along slopes, which differ where a root is rounded
            np.testing.assert_allclose(
                getattr(a.contact, field), getattr(b.contact, field), atol=1e-6
            )
        with pytest.raises(jaxsim.ModelError, match="'r2' must be less"):
            jaxsim.load_model(RING.format(name="lab.ring", prefix="r").replace(".08", ".3"))
    finally:
        jaxsim.extend.unregister_plugin("lab.ring")
    with pytest.raises(ValueError, match=r"lab\.ring.*is not the one that"):
        jaxsim.forward(own, jaxsim.make_data(own))
