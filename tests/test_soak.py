"""Long runs: memory that stays, models that come and go, threads, bad numbers, many devices."""

import gc
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.model.structure import Structure
from jaxsim.transforms.program_cache import MAX_PROGRAMS

PENDULUM = """<mujoco><option timestep="0.002"/><worldbody>
  <body name="{name}"><joint name="hinge" axis="0 1 0" damping="{damping}"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.5" contype="0" conaffinity="0"/></body>
</worldbody><actuator><motor joint="hinge"/></actuator></mujoco>"""
FALL = """<mujoco><option timestep="0.005" {option}>{flag}</option><worldbody>
  <geom type="plane" size="1 1 0.1"/>
  <body pos="0 0 0.15"><freejoint/><geom type="capsule" size="0.05 0.1"/>
    <body pos="0.2 0 0"><joint name="hinge" axis="0 1 0" damping="0.1"/><geom size="0.05"/></body>
  </body>
  <body name="hand" mocap="true" pos="0 0 2"/>{more}
</worldbody><actuator><motor joint="hinge" gear="0.1"/></actuator></mujoco>"""
CLOTH = """<flexcomp name="cloth" type="grid" count="3 3 1" spacing="0.1 0.1 0.1" dim="2"
  pos="0 0 0.5" radius="0.01"><elasticity young="1000" thickness="0.01"/></flexcomp>"""


def live() -> tuple[int, int]:
    """Count the structures and arrays."""
    gc.collect()
    return sum(isinstance(x, Structure) for x in gc.get_objects()), len(jax.live_arrays())


def resident() -> float:
    """Memory of this process [MB]."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.slow
def test_ten_thousand_steps_in_a_loop_take_no_more_memory():
    m = jaxsim.load_model(PENDULUM.format(name="a", damping=0.1))
    step = jax.jit(jaxsim.step)
    d = jaxsim.make_data(m)
    for _ in range(500):
        d = step(m, d)
    before, memory = live(), resident()
    for _ in range(10_000):
        d = step(m, d)
    d.qpos.block_until_ready()
    assert live() == before
    assert resident() - memory < 20
    assert np.isfinite(d.qpos).all()


@pytest.mark.slow
def test_200_models_come_and_go():
    """They have one structure, and every fifth one of its own."""
    base = jaxsim.load_model(PENDULUM.format(name="a", damping=0.1))
    jaxsim.stages.kinematics(base, jaxsim.make_data(base))
    before = live()
    for k in range(200):
        name = f"b{k}" if k % 5 == 0 else "a"
        m = jaxsim.load_model(PENDULUM.format(name=name, damping=0.1 + k))
        d = jaxsim.stages.kinematics(m, jaxsim.make_data(m))
        assert np.isfinite(d.xpos).all()
        del m, d
    after = live()
    assert after[0] - before[0] <= MAX_PROGRAMS
    assert after[1] == before[1]


@pytest.mark.slow
def test_two_threads_step_two_models():
    found: dict[str, np.ndarray] = {}

    def run(name: str, key: str) -> None:
        m = jaxsim.load_model(PENDULUM.format(name=name, damping=0.1 + ord(name) / 1000))
        d = jaxsim.make_data(m).replace(qpos=jnp.array([0.5]))
        step = jax.jit(jaxsim.step)
        for _ in range(200):
            d = step(m, d)
        found[key] = np.asarray(d.qpos)

    run("a", "a alone")
    run("b", "b alone")
    threads = [threading.Thread(target=run, args=(name, name)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in "ab":
        np.testing.assert_array_equal(found[name], found[f"{name} alone"])
    assert not np.array_equal(found["a"], found["b"])


WORLDS = {
    "Euler": ("", "", ""),
    "implicit": ('integrator="implicit"', "", ""),
    "implicitfast": ('integrator="implicitfast"', "", ""),
    "RK4": ('integrator="RK4"', "", ""),
    "CG": ('solver="CG"', "", ""),
    "PGS": ('solver="PGS"', "", ""),
    "elliptic": ('cone="elliptic"', "", ""),
    "noslip": ('noslip_iterations="3"', "", ""),
    "sleep": ("", '<flag sleep="enable"/>', ""),
    "cloth": ("", "", CLOTH),
    "discrete": ('integrator="discrete"', "", ""),
    "ipc": ('integrator="discrete"', '<flag ipc="enable"/>', CLOTH),
}
BAD = {"nan": np.nan, "inf": np.inf, "huge": 1e30}
FIELDS = ("ctrl", "qfrc_applied", "xfrc_applied", "qpos", "qvel", "mocap_pos")


@pytest.mark.slow
@pytest.mark.parametrize("kind", WORLDS)
def test_bad_numbers_in_one_world_leave_the_others_alone(kind):
    """To the bit: nothing that one world computes reaches another."""
    option, flag, more = WORLDS[kind]
    m = jaxsim.load_model(FALL.format(option=option, flag=flag, more=more))
    worlds, bad = 5, 2
    good = jaxsim.replicate(jaxsim.make_data(m), worlds)
    rng = np.random.default_rng(0)
    good = good.replace(qvel=jnp.asarray(0.3 * rng.normal(size=good.qvel.shape), good.qvel.dtype))

    @jax.jit
    def run(d):
        many = jax.vmap(jaxsim.step, (None, 0))
        return jax.lax.fori_loop(0, 20, lambda _, d: many(m, d), d)

    expected = run(good)
    others = np.arange(worlds) != bad
    assert np.isfinite(expected.qpos).all()
    for field in FIELDS:
        value = getattr(good, field)
        if value is None or not value[0].size:
            continue
        for number in BAD.values():
            found = run(good.replace(**{field: value.at[bad].set(number)}))
            for name in ("qpos", "qvel", "qacc_warmstart", "time", "warning"):
                mine, theirs = (np.asarray(getattr(x, name))[others] for x in (found, expected))
                np.testing.assert_array_equal(mine, theirs, f"{field} {number} {name}")


DEVICES = """
import sys
import jax, jax.numpy as jnp, numpy as np
import jaxsim
m = jaxsim.load_model(sys.argv[1])
d = jaxsim.replicate(jaxsim.make_data(m), 64)
speed = 0.3 * np.random.default_rng(0).normal(size=d.qvel.shape)
d = d.replace(qvel=jnp.asarray(speed, d.qvel.dtype))
many = jax.vmap(jaxsim.step, (None, 0))
def run(m, d):
    return jax.lax.fori_loop(0, 40, lambda _, d: many(m, d), d).qpos
found = []
for n in (1, 2, 4, 8):
    parts = jaxsim.over_devices(run, (None, 0), jax.devices()[:n], lanes=16)
    found.append(np.asarray(parts(m, d)))
    assert len(parts(m, d).sharding.device_set) == n
print([float(np.abs(x - found[0]).max()) for x in found])
"""


@pytest.mark.slow
def test_64_worlds_are_the_same_on_any_number_of_devices(tmp_path):
    path = tmp_path / "fall.xml"
    path.write_text(FALL.format(option="", flag="", more=""))
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, "-c", DEVICES, str(path)],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_ENABLE_X64": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "[0.0, 0.0, 0.0, 0.0]"


HUMANOIDS = """
import json, os, sys
from dataclasses import dataclass
import jax, jax.numpy as jnp, numpy as np
import jaxsim

@jax.tree_util.register_dataclass
@dataclass
class Noise:
    key: jax.Array
    def at(self, i):
        return jax.random.uniform(jax.random.fold_in(self.key, i), (1024, 21), minval=-1)

def resident():
    pages = int(open("/proc/self/statm").read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

m = jaxsim.load_model(sys.argv[1])
d = jaxsim.replicate(jaxsim.make_data(m), 1024)
run = jaxsim.BatchProgram(m, d, Noise(jax.random.key(0)), size=500)
memory, low, high, fast = [], [], [], []
for chunk in run.run(d, 20_000):
    qpos, qvel = np.asarray(chunk.d.qpos), np.asarray(chunk.d.qvel)
    assert np.isfinite(qpos).all() and np.isfinite(qvel).all(), chunk.start
    low.append(float(qpos[:, 2].min())), high.append(float(qpos[:, 2].max()))
    fast.append(float(np.abs(qvel).max())), memory.append(resident())
unit = np.abs(np.linalg.norm(qpos[:, 3:7], axis=1) - 1).max()
warning = np.asarray(chunk.d.warning).sum(0).tolist()
time = np.asarray(chunk.d.time)
print(json.dumps({"low": min(low), "high": max(high[2:]), "fast": max(fast), "unit": float(unit),
                  "warning": warning, "growth": memory[-1] - memory[1],
                  "time": [float(time.min()), float(time.max())]}))
"""


@pytest.mark.slow
def test_1024_humanoids_take_20000_steps():
    """They stay above the floor under random controls, and memory stays the same.

    Five minutes on two cores.
    """
    path = Path(__file__).parent.parent / "configs" / "humanoid.xml"
    flags = "--xla_force_host_platform_device_count=2"  # compiled as users compile
    done = subprocess.run(
        [sys.executable, "-c", HUMANOIDS, str(path)],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_ENABLE_X64": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["low"] > 0.05
    assert found["high"] < 1.5
    assert 1 < found["fast"] < 100
    assert found["unit"] < 1e-6
    assert not any(found["warning"])
    assert found["time"] == pytest.approx([100, 100], abs=1e-4)
    assert found["growth"] < 50


def test_lanes_that_there_are_not_are_refused():
    with pytest.raises(ValueError, match="over_devices: lanes: expected one of"):
        jaxsim.over_devices(lambda x: x, lanes=5)
