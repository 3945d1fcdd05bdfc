"""The examples in docstrings and the code of the documents run, and give what they say.

Where a docstring does not make them itself, `m` is the Model of a pendulum and `d` one world of it.
"""

import doctest
import importlib
import re
import runpy
from collections.abc import Iterable
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import jaxsim
from jaxsim.control.optimization.read import read_optimization
from jaxsim.extend.registry import registered_plugins
from jaxsim.identify.study.read import read_study
from jaxsim.io.config import read_config
from jaxsim.learn.config import Training
from jaxsim.learn.worlds import make_task

ROOT = Path(__file__).resolve().parent.parent
PENDULUM = """<mujoco><worldbody><body name="arm">
    <joint name="hinge" axis="0 1 0"/><geom size="0.1" pos="0 0 -1"/>
</body></worldbody></mujoco>"""


def modules() -> list[str]:
    """Modules with examples in their docstrings."""
    paths = sorted(p for p in (ROOT / "jaxsim").rglob("*.py") if ">>> " in p.read_text())
    return [".".join(p.relative_to(ROOT).with_suffix("").parts) for p in paths]


# whose examples compile for long; what they show is tested with their module
LONG = {
    *("jaxsim.control.multishooting", "jaxsim.control.iterative_lqr"),
    *("jaxsim.control.linearization", "jaxsim.functions.set_inertia"),
    *("jaxsim.derivative.inverse_dynamics", "jaxsim.derivative.step_derivative"),
    *("jaxsim.envs.vector", "jaxsim.batch.devices"),
}


def slow_if_long(names: Iterable[str], long: set[str]) -> list:
    """Parameters of a test, of which those that take long are slow."""
    assert long <= set(names)
    return [pytest.param(n, marks=pytest.mark.slow) if n in long else n for n in names]


@pytest.mark.parametrize("name", slow_if_long(modules(), LONG))
def test_the_examples_of_a_module(name):
    module = importlib.import_module(name)
    m = jaxsim.load_model(PENDULUM)
    known = {"jaxsim": jaxsim, "jax": jax, "jnp": jnp, "m": m, "d": jaxsim.make_data(m)}
    found = doctest.DocTestFinder().find(module, extraglobs=known)
    tests = [test for test in found if test.examples]
    written = Path(module.__file__).read_text().count(">>> ")
    assert sum(len(test.examples) for test in tests) == written, "an example is out of reach"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in tests:
        assert runner.run(test).failed == 0, test.name


def test_the_functions_that_are_used_most_have_an_example():
    for name in ("load_model", "make_data", "step", "forward", "rollout", "state_dict", "Spec"):
        assert ">>> " in (getattr(jaxsim, name).__doc__ or ""), name


@pytest.mark.slow
def test_the_python_of_the_page_on_troubleshooting():
    names: dict = {}
    text = (ROOT / "docs/troubleshooting.md").read_text()
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(code, "troubleshooting.md", "exec"), names)
    assert names["kernels"] > 0
    assert names["first"] is None


@pytest.mark.slow
def test_the_python_of_the_page_on_extensions():
    names: dict = {}
    text = (ROOT / "docs/extend.md").read_text()
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(code, "extend.md", "exec"), names)
    for row in ("lab.servo", "lab.linear"):
        jaxsim.extend.unregister_plugin(row)
    assert abs(names["angle"] - 0.2) < 1e-3
    assert (names["slope"] != 0).all()


# what each file of `examples/extend` is to show, of what its `main` returns
SHOWN = {
    "sensor": lambda reading: abs(float(reading[0]) - 0.6) < 1e-6,
    "actuator": lambda qpos: abs(float(qpos[0]) - 0.5) < 1e-2,
    "passive_force": lambda qpos: -0.03 < float(qpos[0]) < -0.015,  # .2 N at .3 m against 3 N m
    "shape": lambda height: abs(height - 0.02) < 1e-3,  # on its flat end
    "collider": lambda dist: abs(float(dist[0]) + 0.01) < 1e-6,
    "resource_provider": lambda m: m.nmeshvert == 4,
    "motor_thermometer": lambda d: 20 < d.sensordata[0] < d.sensordata[1],
    "motor_network": lambda errors: errors[-1] < errors[0] / 2,
}


def test_every_example_of_an_extension_is_shown():
    files = {path.stem for path in (ROOT / "examples/extend").glob("*.py")}
    assert files == set(SHOWN)
    page = (ROOT / "docs/extend.md").read_text()
    assert all(f"examples/extend/{name}.py" in page for name in files)


@pytest.mark.parametrize(
    "name", slow_if_long(SHOWN, {"motor_network", "motor_thermometer", "shape"})
)
def test_the_example_of_an_extension(name, capsys):
    before = set(registered_plugins())
    try:
        example = runpy.run_path(str(ROOT / f"examples/extend/{name}.py"))
        few = {"turns": 15} if name == "motor_network" else {}
        # as a user has it
        with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            shown = example["main"](**few)
    finally:
        for plugin in set(registered_plugins()) - before:
            jaxsim.extend.unregister_plugin(plugin)
    assert SHOWN[name](shown)
    assert capsys.readouterr().out.count("\n") == 1


@pytest.mark.slow
def test_the_example_of_the_quickstart_is_read():
    """`docs/quickstart.md`: a model, a task, a motion and a study, as they stand."""
    folder = ROOT / "examples/plate"
    optimization = read_optimization(folder / "optimize.toml")
    study = read_study(folder / "identify.toml")
    env = make_task(*read_config(folder / "learn.toml", Training))
    state = jax.eval_shape(env.reset, jax.random.key(0))
    state = jax.eval_shape(env.step, state, jnp.zeros(2))
    assert optimization.m.nq == study.m.nq + 7 == env.m.nq
    assert state.obs.shape == (10,)
