"""Programs that benchmarks/gpu.py measures, each a function from state to state."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
STEPS = 50  # steps of one timed program
OF_GRADIENT = 10  # steps of a gradient
CHECKED = 64  # worlds that are compared with the CPU
LIMITS = {"iterations": 4, "ls_iterations": 8}  # common settings for reinforcement learning
GRAPHS = {"xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUSTOM_CALL,WHILE,CONDITIONAL"}


class Case(NamedTuple):
    """A program to measure."""

    model: str
    form: str
    worlds: int


class Program(NamedTuple):
    """A compiled program.

    Attributes:
      run: function from state to state, which waits for its end.
      start: initial state.
      state: positions and velocities of a state, or a gradient.
      steps: steps of all worlds in one run.
      worlds: number of worlds.
      seconds: time to trace and compile it.
      bytes: size of its temporaries.
      compiled: the compiled program of JAX; None for other engines.
    """

    run: Callable[[Any], Any]
    start: Any
    state: Callable[[Any], tuple]
    steps: int
    worlds: int
    seconds: float
    bytes: int = 0
    compiled: Any = None


def made(case: Case) -> Program:
    """Compile the program of a case."""
    if case.form == "warp":
        return of_warp(case)
    began = time.perf_counter()
    if case.form == "mjx":
        step, m, d = of_mjx(case)
    else:
        m = model_of(case.model)
        step, d = jaxsim.step, started(m, case.worlds)
    many = jax.vmap(step, (None, 0))
    gradient = case.form.startswith("gradient")
    length = OF_GRADIENT if gradient else STEPS

    def steps(m: Any, d: Any) -> Any:
        return jax.lax.scan(lambda d, _: (many(m, d), None), d, None, length=length)[0]

    def loss(qvel: Any, m: Any, d: Any) -> Any:
        return jnp.sum(steps(m, d.replace(qvel=qvel)).qpos ** 2)

    with form_of(case.form):
        if gradient:
            lowered = jax.jit(jax.grad(loss)).lower(d.qvel, m, d)
        else:
            lowered = jax.jit(steps).lower(m, d)
    compiled = lowered.compile(GRAPHS if case.form == "graphs" else None)
    seconds = time.perf_counter() - began

    def run(state: Any) -> Any:
        if gradient:
            return d, jax.block_until_ready(compiled(d.qvel, m, d))
        return jax.block_until_ready(compiled(m, state))

    return Program(
        run,
        (d, None) if gradient else d,
        (lambda s: (s[1],)) if gradient else (lambda d: (d.qpos, d.qvel)),
        case.worlds * length,
        case.worlds,
        seconds,
        compiled.memory_analysis().temp_size_in_bytes,
        compiled,
    )


def device(warp: bool) -> str:
    """Return the device of the programs; Warp has its own list of devices."""
    if not warp:
        return str(jax.devices()[0].device_kind)
    from warp import get_device

    return str(get_device("cuda:0").name)


def form_of(form: str) -> Any:
    return jaxsim.for_platform(jax.default_backend(), kernels=form.endswith(("kernels", "graphs")))


def model_path(name: str) -> str:
    path = CONFIGS / f"{name}.xml"
    return str(path if path.exists() else name)


def model_of(name: str) -> jaxsim.Model:
    m = jaxsim.load_model(model_path(name))
    return m.replace(opt=m.opt.replace(**LIMITS))


def started(m: jaxsim.Model, worlds: int) -> jaxsim.Data:
    """Return states with noise, around the first keyframe or the reference pose."""
    d = jaxsim.make_data(m)
    if m.nkey:
        d = jaxsim.reset_data_keyframe(m, d, 0)
    rng = np.random.default_rng(0)
    qvel = jnp.asarray(0.5 * rng.standard_normal((worlds, m.nv)), d.qpos.dtype)
    ctrl = jnp.asarray(0.3 * rng.standard_normal((worlds, m.nu)), d.qpos.dtype)
    many = jax.tree.map(lambda a: jnp.broadcast_to(a, (worlds, *a.shape)), d)
    return many.replace(qvel=qvel, ctrl=ctrl)


def of_mjx(case: Case) -> tuple[Callable, Any, Any]:
    """Return the program of MuJoCo XLA in the same states."""
    from mujoco import mjx

    theirs = of_mujoco(case.model)
    ours = started(model_of(case.model), case.worlds)
    d = mjx.make_data(theirs, impl="jax")
    d = jax.tree.map(lambda a: jnp.broadcast_to(a, (case.worlds, *jnp.shape(a))), d)
    return (
        mjx.step,
        mjx.put_model(theirs, impl="jax"),
        d.replace(qpos=ours.qpos, qvel=ours.qvel, ctrl=ours.ctrl),
    )


def of_mujoco(name: str) -> Any:
    import mujoco

    m = mujoco.MjModel.from_xml_path(model_path(name))
    m.opt.iterations, m.opt.ls_iterations = LIMITS["iterations"], LIMITS["ls_iterations"]
    return m


def of_warp(case: Case) -> Program:
    """Return MuJoCo Warp in the same states: a step as one CUDA graph, as in its own benchmark."""
    import mujoco
    import mujoco_warp
    import warp

    began = time.perf_counter()
    theirs = of_mujoco(case.model)
    d = mujoco.MjData(theirs)
    if theirs.nkey:
        mujoco.mj_resetDataKeyframe(theirs, d, 0)
    mujoco.mj_forward(theirs, d)
    ours = started(model_of(case.model), case.worlds)
    places = {"nconmax": 192, "njmax": 768} if theirs.nv > 48 else {"nconmax": 48, "njmax": 256}
    with warp.ScopedDevice("cuda:0"):
        m = mujoco_warp.put_model(theirs)
        m.opt.warn_overflow = 0  # else kernels print where iterations are exhausted
        d = mujoco_warp.put_data(theirs, d, nworld=case.worlds, **places)
        for name in ("qpos", "qvel", "ctrl"):
            getattr(d, name).assign(np.asarray(getattr(ours, name), np.float32))
        mujoco_warp.step(m, d)
        with warp.ScopedCapture() as capture:
            mujoco_warp.step(m, d)

    def run(state: Any) -> Any:
        for _ in range(STEPS):
            warp.capture_launch(capture.graph)
        warp.synchronize()
        return state

    seconds = time.perf_counter() - began
    state = lambda d: (d.qpos.numpy(), d.qvel.numpy())  # noqa: E731
    return Program(run, d, state, case.worlds * STEPS, case.worlds, seconds)


def error(model: str, form: str) -> float:
    """Return the relative error of accelerations against a CPU in float64, the median of worlds.

    The form is that of one step of a few worlds, with many iterations of the solver.
    """
    cpu = jax.devices("cpu")[0]

    def qacc(m: Any, d: Any) -> Any:
        return jax.vmap(jaxsim.forward, (None, 0))(m, d).qacc

    m = jaxsim.load_model(model_path(model))
    d = started(m, CHECKED)
    with form_of(form):
        found = np.asarray(jax.jit(qacc)(m, d), np.float64)
    with jax.enable_x64(True), jax.default_device(cpu), jaxsim.for_platform("cpu"):
        m = jaxsim.load_model(model_path(model))
        right = np.asarray(jax.jit(qacc)(m, started(m, CHECKED)))
    norm = np.linalg.norm
    return float(np.median(norm(found - right, axis=-1) / norm(right, axis=-1)))
