"""Programs on disk: what is loaded is what would be compiled, and nothing else is."""

import collections
import functools
import os
import subprocess
import sys
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxsim
from jaxsim.batch import stored_program, tiered_program
from jaxsim.batch.program import BatchProgram, replicate
from jaxsim.batch.program_key import program_key
from jaxsim.batch.stored_program import StoredFunction, load_or_compile, prepare_program
from jaxsim.batch.tiered_program import ReplacedProgram
from jaxsim.control.problem import Problem, Term
from jaxsim.control.receding_horizon import receding
from jaxsim.transforms import tuning

POLE = """<mujoco><worldbody><body name="{name}"><joint name="hinge" axis="0 1 0"/>
<geom size=".1" pos="0 0 {length}"/></body></worldbody>
<actuator><motor joint="hinge"/></actuator></mujoco>"""


def pole(name: str = "pole", length: float = 1.0):
    return jaxsim.load_model(POLE.format(name=name, length=length))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Keep programs in a folder of the test."""
    monkeypatch.setenv("JAXSIM_STORE_PROGRAMS", "1")
    before = jax.config.values["jax_compilation_cache_dir"]
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    yield tmp_path
    jax.config.update("jax_compilation_cache_dir", before)


def stored(folder):
    return list(folder.glob("*.jaxsim-program"))


def is_loaded(prepared) -> bool:
    return prepared.load_seconds > 0 and prepared.compile_seconds == prepared.trace_seconds == 0


def test_the_second_program_is_loaded_and_has_the_same_bits(folder):
    """Also for a model of other numbers, which are arguments."""
    m, d = pole(), jaxsim.make_data(pole())
    first, second = (prepare_program(jaxsim.step, (m, d)) for _ in range(2))
    assert not is_loaded(first)
    assert is_loaded(second)
    assert len(stored(folder)) == 1
    longer = pole(length=1.3)
    for model in (m, longer):
        one, other = (p.program(model, d.replace(qvel=d.qvel + 1)) for p in (first, second))
        assert jax.tree.structure(one) == jax.tree.structure(other)
        jax.tree.map(np.testing.assert_array_equal, one, other)
    assert is_loaded(prepare_program(jaxsim.step, (longer, d)))
    with pytest.raises(TypeError):
        second.program(m, replicate(d, 2))


def test_structures_of_the_result_are_those_of_the_arguments():
    m = pole()
    change = functools.partial(jax.tree.map, jnp.negative)
    for _ in range(2):
        assert load_or_compile(change, m)(m).structure is m.structure


def test_a_batch_program_is_loaded():
    m = pole()
    worlds = replicate(jaxsim.make_data(m), 5)
    ends = []
    for loaded in (False, True):
        program = BatchProgram(m, worlds, size=4, record=("qpos",))
        assert (program.load_seconds > 0) is loaded
        assert (program.compile_seconds > 0) is not loaded
        ends.append([(c.d.qpos, c.records["qpos"]) for c in program.run(worlds, 6)])
    jax.tree.map(np.testing.assert_array_equal, *ends)
    assert BatchProgram(m, worlds, size=5, record=("qpos",)).compile_seconds > 0
    assert BatchProgram(m, worlds, size=4).compile_seconds > 0


def wait_for_the_compiler():
    while tiered_program.is_compiling():
        time.sleep(0.01)


def test_the_quick_program_is_kept_until_the_optimized_one_is():
    x = jnp.ones(3)
    auto = functools.partial(prepare_program, calls_helper, (x,), tier="auto")
    for loaded in (False, True):  # the quick one, which does not run for long
        quick = auto()
        assert is_loaded(quick) is loaded
        assert isinstance(quick.program, ReplacedProgram)
        np.testing.assert_array_equal(quick.program(x), 2 * x + 1)
        wait_for_the_compiler()
    quick = auto()
    quick.program.compile_seconds = 0.0
    quick.program(x)
    wait_for_the_compiler()
    assert quick.program.program is not quick.compiled
    np.testing.assert_array_equal(quick.program(x), 2 * x + 1)
    optimized = auto()
    assert is_loaded(optimized)
    assert optimized.program is optimized.compiled
    for tier in ("fast", "optimized"):
        one = prepare_program(calls_helper, (x,), tier=tier)
        assert is_loaded(one)
        assert one.program is one.compiled
    with pytest.raises(ValueError, match="tier: expected one of"):
        prepare_program(calls_helper, (x,), tier="slow")


def test_options_of_jax_are_restored():
    name = "jax_persistent_cache_min_compile_time_secs"
    before = jax.config.values[name]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda k: prepare_program(closes_over(k), (jnp.ones(2),)), range(8)))
    assert jax.config.values[name] == before


SCALE = 2.0
OTHER = np.arange(3.0)


def helper(x):
    return SCALE * x


def calls_helper(x):
    return helper(x) + OTHER[1]


def closes_over(value):
    return lambda x: x * value


def test_a_change_of_the_program_changes_the_key(monkeypatch):
    m, d = pole(), jaxsim.make_data(pole())
    x = jnp.ones(3)
    many = replicate(d, 3)

    def with_tuning():
        with tuning.override(contacts_per_chunk=8):
            return program_key(jaxsim.step, (m, d), "")

    def with_option():
        with jax.default_matmul_precision("float32"):
            return program_key(jaxsim.step, (m, d), "")

    def with_helper(code):
        with monkeypatch.context() as patch:
            patch.setitem(globals(), "helper", code)
            return program_key(calls_helper, (x,), "")

    def with_scale(value):
        with monkeypatch.context() as patch:
            patch.setitem(globals(), "SCALE", value)
            return program_key(calls_helper, (x,), "")

    keys = [
        *(program_key(jaxsim.step, a, "") for a in ((m, d), (m, many), (pole("other"), d))),
        program_key(jaxsim.step, (m.replace(opt=m.opt.replace(iterations=3)), d), ""),
        program_key(calls_helper, (x.astype(np.float32),), ""),
        program_key(jaxsim.step, (m, d), "two"),
        program_key(jaxsim.forward, (m, d), ""),
        with_tuning(),
        with_option(),
        *(program_key(jax.vmap(jaxsim.step, axes), (m, many), "") for axes in ((None, 0), 0)),
        program_key(jax.vmap(jaxsim.forward, (None, 0)), (m, many), ""),
        program_key(calls_helper, (x,), ""),
        with_helper(lambda x: 2 * x),
        with_helper(lambda x: 2 + x),
        with_scale(3.0),
        *(program_key(closes_over(v), (x,), "") for v in (1, 1.0, "a", OTHER, OTHER + 1)),
        *(program_key(closes_over(f), (x,), "") for f in (helper, calls_helper, jnp.sin, jnp.cos)),
        *(program_key(functools.partial(helper, y), (), "") for y in (1, 2)),
        *(program_key(t(lambda x: x[0]), (x,), "") for t in (jax.grad, jax.value_and_grad)),
    ]
    assert None not in keys
    assert len(set(keys)) == len(keys)
    same = [program_key(jax.vmap(jaxsim.step, (None, 0)), (m, many), "") for _ in range(2)]
    assert same[0] == same[1] in keys


def test_objects_of_jaxsim_are_described_by_their_contents():
    """The planner of a control loop, the problem of a fit: constants of their programs."""
    m, x = pole(), jnp.ones(3)
    problem = Problem([Term("high", lambda m, d: d.xipos[1, 2:], weight=1.0)])

    def planner(m, **options):
        return receding(m, problem, steps=4, **options).plan

    functions = [
        planner(m),
        planner(pole(length=1.1)),
        planner(m, iterations=2),
        functools.partial(planner(m), 1),
        closes_over(x),
        closes_over(x + 1),
        closes_over(x.astype(jnp.float32)),
        closes_over({"a", "b"}),
        closes_over({"a", "c"}),
        closes_over(jax.jit(helper)),
        closes_over(jax.random.key(1)),
        closes_over(jax.random.key(2)),
    ]
    keys = [program_key(f, (x,), "") for f in functions]
    assert None not in keys
    assert len(set(keys)) == len(keys)
    assert program_key(planner(m), (x,), "") == keys[0]
    assert program_key(closes_over(jnp.ones(3)), (x,), "") == keys[4]
    keys.append(program_key(closes_over(x), (x,), "", {"donate_argnums": 0}))
    assert keys[-1] not in keys[:-1]


def test_a_file_of_the_user_may_have_the_name_of_a_package():
    """Describe what its functions read by name, as for any other file of the user."""
    file = types.ModuleType("signal")
    exec("GAIN = 2.0\ndef scale(x): return GAIN * x", vars(file))
    first = program_key(file.scale, (jnp.ones(2),), "")
    file.GAIN = 3.0
    assert first is not None
    assert program_key(file.scale, (jnp.ones(2),), "") not in (None, first)


def test_keys_are_equal_in_all_processes():
    """Python orders sets by a random hash."""
    code = """
import jax, jax.numpy as jnp, optax
from jaxsim.batch.program_key import program_key
names, optimizer = {"a", "b", "c", "d"}, optax.chain(optax.clip(1.0), optax.adam(1e-3))
kind = "a"
print(program_key(
    lambda x: (names, kind in {"a", "b", "c", "d"}, optimizer.init(x)), (jnp.ones(2),), ""
))
"""
    run = functools.partial(subprocess.run, capture_output=True, text=True, check=True)
    keys = {
        run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    }
    assert len(keys) == 1
    assert keys != {"None\n"}


def test_results_of_classes_and_functions_made_by_a_library(folder):
    """A state of optax: its static part has functions that no module has by name."""
    from flax.training.train_state import TrainState

    def start():
        return TrainState.create(
            apply_fn=helper_of_flax, params={"x": jnp.ones(2)}, tx=optax.sgd(0.5)
        )

    def update(state):
        return state.apply_gradients(grads=state.params)

    for _ in range(2):
        state = start()
        prepared = prepare_program(update, (state,))
        np.testing.assert_array_equal(prepared.program(state).params["x"], 0.5)
    assert is_loaded(prepared)


def test_results_of_a_class_made_by_a_library(folder):
    """Its module has no such name, so that another process finds it in the arguments."""
    for _ in range(2):
        kind = collections.namedtuple("Made", "x", module="optax")
        prepared = prepare_program(lambda s: s._replace(x=2 * s.x), (kind(jnp.ones(2)),))
        result = prepared.program(kind(jnp.ones(2)))
        assert type(result) is kind
        np.testing.assert_array_equal(result.x, 2)
    assert is_loaded(prepared)


def test_a_loaded_program_finds_lapack(folder):
    """JAX registers its functions when it lowers a program that calls one."""
    code = """
import sys, jax, jax.numpy as jnp, numpy as np
from jaxsim.batch.stored_program import prepare_program
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
prepared = prepare_program(jnp.linalg.cholesky, (4 * np.eye(3),))
loaded = prepared.load_seconds > 0 and prepared.compile_seconds == 0
print(loaded, prepared.program(4 * np.eye(3))[2, 2])
"""
    out = [
        subprocess.run(
            [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert out == [["False", "2.0"], ["True", "2.0"]]


@functools.lru_cache
def cached_by_the_user(x):
    return pytest, x


def helper_of_flax(x):
    return x


@jax.tree_util.register_static
class Own:
    """A class of a user, whose methods a program may call."""


def test_what_no_key_describes_is_compiled_and_not_kept(folder):
    m, x = pole(), jnp.ones(2)

    class Scale:
        def __call__(self, x):
            return 2 * x

        def double(self, x):
            return 2 * x

    for function, arguments in (
        (Scale(), (x,)),
        (Scale().double, (x,)),
        (closes_over(Scale().double), (x,)),
        (closes_over([Scale]), (x,)),
        (closes_over(threading.Lock()), (x,)),
        (closes_over(iter([1])), (x,)),
        (closes_over(cached_by_the_user), (x,)),  # reads a module of the user
        (closes_over(pytest), (x,)),  # a module that may change
        (lambda x, own: x, (x, Own())),
    ):
        assert program_key(function, arguments, "") is None
    np.testing.assert_array_equal(load_or_compile(Scale(), x)(x), 2 * x)

    def reports(x):
        jax.debug.callback(lambda _: None, x)
        return x

    np.testing.assert_array_equal(load_or_compile(reports, x)(x), x)
    jaxsim.extend.register_collider(2, 2, lambda *_: None, 1)
    try:
        assert program_key(jaxsim.step, (m, jaxsim.make_data(m)), "") is None
    finally:
        jaxsim.extend.unregister_collider(2, 2)
    assert stored(folder) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b"",
        lambda b: b[: len(b) // 2],
        lambda b: b[:-9] + bytes([b[-9] ^ 1]) + b[-8:],
        lambda b: b"x" + b[1:],
        lambda b: b[:20],
    ],
    ids=["empty", "half", "flipped bit", "other kind", "no content"],
)
def test_a_damaged_file_is_replaced(folder, damage):
    x = jnp.ones(3)
    prepare_program(calls_helper, (x,))
    (file,) = stored(folder)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    again = prepare_program(calls_helper, (x,))
    assert not is_loaded(again)
    np.testing.assert_array_equal(again.program(x), 2 * x + 1)
    assert is_loaded(prepare_program(calls_helper, (x,)))


def test_without_a_folder_or_access_the_program_is_compiled(folder, monkeypatch):
    x = jnp.ones(3)
    monkeypatch.setattr(stored_program, "write_whole", refuse)
    assert not is_loaded(prepare_program(calls_helper, (x,)))
    assert stored(folder) == []
    monkeypatch.undo()
    monkeypatch.setenv("JAXSIM_STORE_PROGRAMS", "0")
    assert not is_loaded(prepare_program(calls_helper, (x,)))
    monkeypatch.setenv("JAXSIM_STORE_PROGRAMS", "1")
    jax.config.update("jax_compilation_cache_dir", None)
    assert not is_loaded(prepare_program(calls_helper, (x,)))
    assert stored(folder) == []


def refuse(*_):
    raise OSError("disk full")


def test_the_folder_has_a_bound(folder):
    """The programs that were not read for longest go first."""
    for size in (1.0, 2.0, 3.0):
        prepare_program(closes_over(size), (jnp.ones(3),))
    files = stored(folder)
    assert len(files) == 3
    assert is_loaded(prepare_program(closes_over(1.0), (jnp.ones(3),)))
    largest = max(f.stat().st_size for f in files)
    stored_program._delete_oldest(folder, 2 * largest)
    assert len(stored(folder)) == 2
    assert is_loaded(prepare_program(closes_over(1.0), (jnp.ones(3),)))
    assert not is_loaded(prepare_program(closes_over(2.0), (jnp.ones(3),)))


def test_a_stored_function_has_a_program_for_each_shape(folder):
    double = StoredFunction(helper, "the helper")
    for _ in range(2):
        for n in (2, 3):
            np.testing.assert_array_equal(double(jnp.ones(n)), 2 * np.ones(n))
    assert len(stored(folder)) == 2


KEY = """
import jax, jaxsim
from jaxsim.batch.program_key import program_key
m = jaxsim.load_model("configs/quadruped.xml")
d = jaxsim.replicate(jaxsim.make_data(m), 3)
print(program_key(jax.vmap(jaxsim.step, (None, 0)), (m, d), ""))
"""


def test_processes_have_the_same_keys(pytestconfig):
    """Whatever the seed of Python's hashes."""
    keys = [
        subprocess.run(
            [sys.executable, "-c", KEY],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(pytestconfig.rootpath)},
            cwd=pytestconfig.rootpath,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert keys[0] == keys[1] != "None\n"
