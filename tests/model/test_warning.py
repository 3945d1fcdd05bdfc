"""Counters of warnings: each has a meaning, and `check` reports what happened where."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.enums import WarningType
from jaxsim.model.warning import MEANINGS

MANY = """<mujoco><worldbody><body><freejoint/><geom size=".1"/></body>
  <body pos="1 0 0"><joint name="a" axis="0 1 0"/><joint name="b" axis="1 0 0"/>
    <geom size=".1" pos=".2 0 0"/></body></worldbody>
  <actuator><motor joint="b"/><motor joint="a" ctrlrange="-1 1"/><motor joint="b"/></actuator>
</mujoco>"""

MODEL = """<mujoco><worldbody><body><joint name="j"/><geom size=".1" pos=".2 0 0"/>
  </body></worldbody>  <actuator><motor joint="j"/></actuator></mujoco>"""


def worlds():
    """Four worlds: the second has no finite control, the last one is too fast, twice."""
    m = jaxsim.load_model(MODEL)
    d = jax.vmap(lambda _: jaxsim.make_data(m))(jnp.arange(4))
    step = jax.jit(jax.vmap(jaxsim.step, (None, 0)))
    for _ in range(2):
        d = step(m, d.replace(qvel=d.qvel.at[3].set(1e12), ctrl=d.ctrl.at[1].set(jnp.nan)))
    return d


def test_every_counter_has_a_meaning():
    assert MEANINGS.keys() == set(WarningType)


def test_counts_say_what_happened_how_often_and_where():
    d = worlds()
    fast, bad = jaxsim.warning_counts(d)
    assert (fast.type, fast.times, fast.worlds.tolist(), fast.of) == (
        WarningType.BADQVEL, 2, [3], 4,
    )  # fmt: skip
    assert (bad.type, bad.times, bad.worlds.tolist()) == (WarningType.BADCTRL, 2, [1])
    assert str(bad) == (
        "2 times in 1 of 4 worlds: control not finite, taken as zero; check the controls"
    )


def test_texts_name_joints_actuators_and_room():
    d = worlds()
    speed, control = jaxsim.warning_texts(jaxsim.load_model(MODEL), d)
    assert speed == (
        "world 3: BADQVEL 2 times, reset: velocity not finite or too large, the last qvel[0], of j"
    )
    assert control.endswith("control not finite, taken as zero, the last ctrl[0], of actuator 0")


def test_entries_are_named_by_their_coordinate():
    m = jaxsim.load_model("""<mujoco><worldbody><body><freejoint name="root"/><geom size=".1"/>
      <body pos="1 0 0"><joint name="hip" type="ball"/><geom size=".1"/></body></body></worldbody>
      <actuator><orientation name="turn" joint="hip" kp="1" input="quat"/></actuator></mujoco>""")
    d = jaxsim.make_data(m)
    told = {
        WarningType.BADQPOS: (5, "qpos[5], of root quaternion y"),
        WarningType.BADQVEL: (8, "qvel[8], of hip turn z"),
        WarningType.BADCTRL: (1, "ctrl[1], of turn qx"),
        WarningType.CONTACTFULL: (9, "9 wanted, capacity 1"),
    }
    for kind, (entry, words) in told.items():
        info = d.warning_lastinfo.at[kind].set(entry)
        one = d.replace(warning=d.warning.at[kind].set(1), warning_lastinfo=info)
        (text,) = jaxsim.warning_texts(m, one)
        assert text.endswith(words)


def test_what_the_last_was_about_is_mujocos():
    """Two bad entries at a time, in several fields, in worlds that differ."""
    rng = np.random.default_rng(5)
    mj = mujoco.MjModel.from_xml_string(MANY)
    m = jaxsim.put_model(mj)
    step = jax.jit(jax.vmap(jaxsim.step, (None, 0)))
    d = jaxsim.replicate(jaxsim.make_data(m), 5)
    theirs = [mujoco.MjData(mj) for _ in range(5)]
    totals, last = np.zeros((5, 7), int), np.zeros((5, 7), int)
    for _ in range(6):
        for world, field in enumerate(("qpos", "qvel", "ctrl", "qfrc_applied")):
            entries = rng.choice(np.shape(getattr(theirs[world], field))[0], 2, replace=False)
            # a force that is no number spreads to other dofs, and not in the same way
            bad = [1e18, -1e18] if field == "qfrc_applied" else [np.nan, -np.inf]
            value = np.array(getattr(theirs[world], field))
            value[entries] = bad
            getattr(theirs[world], field)[:] = value
            d = d.replace(**{field: getattr(d, field).at[world].set(value)})
        d = step(m, d)
        for world, their in enumerate(theirs):
            mujoco.mj_step(mj, their)
            found = np.array([[w.number, w.lastinfo] for w in their.warning]).T
            totals[world] += found[0]
            last[world] = np.where(found[0] > 0, found[1], last[world])
            for w in their.warning:
                w.number = w.lastinfo = 0
    np.testing.assert_array_equal(d.warning, totals)
    np.testing.assert_array_equal(d.warning_lastinfo, last)
    assert (totals[:4].sum(axis=1) >= 6).all()
    assert not totals[4].any()
    assert len(set(last[:4].ravel())) >= 3


@pytest.mark.slow
def test_check_raises_for_many_worlds_and_for_one():
    d = worlds()
    with pytest.raises(
        RuntimeError, match=r"BADQVEL: 2 times in 1 of 4 .*\(first: world 3, qvel\[0\]\)"
    ):
        jaxsim.check_warnings(d)
    jaxsim.check_warnings(jax.tree.map(lambda a: a[0], d))
    with pytest.raises(RuntimeError, match="BADCTRL: 2 times: control not finite"):
        jaxsim.check_warnings(jax.tree.map(lambda a: a[1], d))
