"""Printed summaries of a model and of a world."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim

LINKS = 30
XML = f"""<mujoco><option><flag energy="enable"/></option><worldbody>
  <geom name="floor" type="plane" size="1 1 1"/>
  <body name="ball" pos="0 0 .09"><freejoint name="root"/><geom name="shell" size=".1"/></body>
  <body name="mark" mocap="true" pos="1 2 3"/>
  {"".join(f'<body pos="{k} 5 1"><joint/><geom size=".1"/></body>' for k in range(LINKS))}
  </worldbody><actuator><motor name="drive" joint="root" gear="0 0 2"/></actuator></mujoco>"""


@cache
def fallen():
    """A model and a world in which a ball lies in the floor."""
    m = jaxsim.load_model(XML)
    d = jaxsim.make_data(m).replace(ctrl=jnp.ones(1), time=jnp.asarray(0.25))
    return m, jax.jit(jaxsim.forward)(m, d)


def section(text: str, name: str) -> list[str]:
    """The lines of one section."""
    lines, found = text.splitlines(), []
    for line in lines:
        if line[:11].strip():
            here = line[:11].strip() == name
        if here:
            found.append(line[12:])
    return found


def test_flexes_and_callbacks_of_a_model():
    m = jaxsim.load_model("""<mujoco><worldbody>
      <flexcomp name="rope" type="grid" count="3 1 1" spacing=".1 .1 .1" dim="1" mass="1"/>
      <flexcomp name="sheet" type="grid" count="2 2 1" spacing=".1 .1 .1" dim="2" mass="1"/>
      </worldbody></mujoco>""")
    text = jaxsim.describe(m)
    assert section(text, "flexes") == ["2 (1 rod, 1 shell)"]
    assert not section(text, "callbacks")
    law = jaxsim.Callbacks(control=lambda m, d: d, passive=lambda m, d: d.qvel)
    text = jaxsim.describe(m.replace(callbacks=law))
    assert section(text, "callbacks") == ["control, passive"]


def test_a_world():
    m, d = fallen()
    text = jaxsim.describe(m, d)
    assert section(text, "time") == ["0.25 s"]
    joints = section(text, "joints")
    assert joints[1].split() == "root free 0 0 0.09 1 0 0 0 | 0 0 0 0 0 0".split()
    assert joints[-1] == f"... and {LINKS + 2 - 12} more"
    assert section(text, "controls")[0].split() == ["drive", "1", "->", "1"]
    assert section(text, "mocap")[0].split() == "mark 1 2 3 | 1 0 0 0".split()
    contacts = section(text, "contacts")
    assert contacts == [
        f"1 of {m.ncontact} slots used, the deepest first",
        "floor - shell: -0.01 m, at 0 0 -0.005",
    ]
    rows = section(text, "rows")[0]
    assert rows.startswith(f"{d.nefc}, ")
    pushed = next(line for line in section(text, "forces") if line.startswith("qfrc_constraint"))
    most = float(np.max(d.qfrc_constraint))
    assert pushed.endswith(f"at most {most:.4g}, of root z")
    assert section(text, "energy") == [f"{d.energy[0]:.4g} J potential, 0 J kinetic"]
    assert not section(text, "warnings")
    assert len(text.splitlines()) < 60


def test_a_batch_and_what_is_wrong_in_it():
    m, d = fallen()
    every = jax.tree.map(lambda a: jnp.stack([a] * 6).reshape(2, 3, *a.shape), d)
    every = every.replace(
        time=jnp.arange(6.0).reshape(2, 3),
        qpos=every.qpos.at[1, 1, 2].set(jnp.nan),
        warning=every.warning.at[0, 2, 3].set(2),
        xfrc_applied=every.xfrc_applied.at[1, 1, 1, 0].set(4),
    )
    good, bad = (jaxsim.describe(m, every, world) for world in (0, 4))
    start = "4 of 6; in all of them time 0 to 5 s, contacts 1, 1 not finite"
    assert section(bad, "world") == [start]
    assert section(bad, "not finite") == ["qpos"]
    assert section(bad, "time") == ["4 s"]
    assert section(bad, "bodies")[0].split() == "ball xfrc_applied 4 0 0 0 0 0".split()
    assert not section(good, "not finite")
    assert not section(good, "bodies")
    assert section(good, "warnings")[0].startswith("BADQPOS: 2 times in 1 of 6 worlds: reset")
    assert section(good, "warnings")[1].startswith("world 2: BADQPOS 2 times, reset: position")
    with pytest.raises(ValueError, match="describe: there is no world 6; the batch has 6"):
        jaxsim.describe(m, every, 6)


def test_a_world_before_its_first_step_and_one_without_results():
    m, _ = fallen()
    text = jaxsim.describe(m, jaxsim.make_data(m, keep=[]))
    assert "contacts" not in text
    assert "joints" in text
    assert section(jaxsim.describe(m, jaxsim.make_data(m)), "contacts")[0].startswith("0 of")


def test_what_is_no_world():
    m, d = fallen()
    other = jaxsim.load_model('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>')
    with pytest.raises(ValueError, match="describe: d: expected a Data, got Model"):
        jaxsim.describe(m, m)
    with pytest.raises(ValueError, match=r"describe: d.qpos: expected shape \(..., 0\), got"):
        jaxsim.describe(other, d)
    with pytest.raises(ValueError, match="describe: d is traced"):
        jax.jit(lambda d: d.replace(time=float(bool(jaxsim.describe(m, d)))))(d)


def test_a_model_alone():
    m, d = fallen()
    text = jaxsim.describe(m)
    assert f"{LINKS} hinge" in text
    assert jaxsim.describe(m, d) != text
