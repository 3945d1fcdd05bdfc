"""Counters of warnings: each has a meaning, and `check` says what happened where."""

import jax
import jax.numpy as jnp
import pytest

import jaxsim
from jaxsim.enums import WarningType
from jaxsim.model.warning import MEANINGS

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


def test_check_raises_for_many_worlds_and_for_one():
    d = worlds()
    with pytest.raises(RuntimeError, match=r"BADQVEL: 2 times in 1 of 4 .*\(first: world 3\)"):
        jaxsim.check(d)
    jaxsim.check(jax.tree.map(lambda a: a[0], d))
    with pytest.raises(RuntimeError, match="BADCTRL: 2 times: control not finite"):
        jaxsim.check(jax.tree.map(lambda a: a[1], d))
