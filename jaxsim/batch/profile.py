"""Measure the time of each stage of a step on the device, as MuJoCo's timers do.

A whole step is one program, whose stages the compiler fuses; no clock can run within it. Here each
stage is compiled separately and run repeatedly on the results of the previous stages for the given
worlds. Between separate programs results go through memory, which they need not do within a step:
the sum of the stages is not the time of a step, but their shares show where its time goes.
`advance` covers everything after the forward dynamics: integration (for RK4 the remaining three
evaluations of the dynamics), the comparison of the flag `fwdinv`, and the automatic reset.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import IntegratorType
from jaxsim.model.data import ALWAYS_KEPT, Data
from jaxsim.model.model import Model
from jaxsim.physics.callback import call_control, has_callback
from jaxsim.physics.pipeline.forward import run_stages
from jaxsim.physics.pipeline.row import StageRow
from jaxsim.physics.pipeline.stages import (
    MAKE_ROWS,
    STAGES,
    TO_ACCELERATION,
    TO_POSITION,
    VELOCITY,
    VELOCITY_OUTPUTS,
)
from jaxsim.physics.public.api import step
from jaxsim.physics.public.arguments import check_data, check_model
from jaxsim.physics.step import step_after_forward
from jaxsim.transforms.batching import split_into_tiles
from jaxsim.transforms.layout import tile_size, unpack_record


class StageTime(NamedTuple):
    """The time of one stage.

    Attributes:
      name: name of the stage.
      timer: the MuJoCo timer that includes it, `mjTIMER_...` without the prefix; "": none.
      seconds: time for one step of one world.
      share: fraction of the sum over the stages.
    """

    name: str
    timer: str
    seconds: float
    share: float


class Profile(NamedTuple):
    """The times of the stages of a step; `print` shows a table.

    Attributes:
      stages: the stages in the order of a step.
      step: seconds of a whole step of one world, as one program.
      worlds: number of worlds that were advanced together.
      device: name of the device.
    """

    stages: tuple[StageTime, ...]
    step: float
    worlds: int
    device: str

    def __str__(self) -> str:
        """Return a table, in microseconds."""
        head = f"{'stage':16}{'MuJoCo timer':16}{'us a world':>12}{'share':>8}"
        rows = [
            f"{s.name:16}{s.timer:16}{1e6 * s.seconds:12.3f}{s.share:8.1%}" for s in self.stages
        ]
        whole = sum(s.seconds for s in self.stages)
        sums = ("together", "", whole), ("step", "STEP", self.step)
        ends = [f"{name:16}{timer:16}{1e6 * s:12.3f}" for name, timer, s in sums]
        return "\n".join([f"{self.worlds} worlds on {self.device}", head, *rows, *ends])


def profile(m: Model, d: Data, seconds: float = 0.1) -> Profile:
    """Measure each stage of a step on the device, at the given states.

    Args:
      m: the model.
      d: one world, or a batch with a leading axis, as large as one tile of the device.
      seconds: minimum time for which each stage is run.

    Example:
      >>> print(jaxsim.support.profile(m, jaxsim.replicate(d, 8), seconds=0))  # doctest: +SKIP
      8 worlds on cpu
      stage           MuJoCo timer      us a world   share
      kinematics      POS_KINEMATICS         0.412   11.9%
      ...
    """
    check_model("profile", m)
    many = np.ndim(d.time) == 1 if isinstance(d, Data) else False
    check_data("profile", m, d, np.shape(d.time)[:1] if many else ())
    if many:
        tile = tile_size(m, len(d.time))
        d = jax.jit(partial(_first_tile, tile=tile))(d)
        many = tile > 1
    worlds = len(d.time) if many else 1
    whole = jax.vmap(step, (None, 0)) if many else step
    whole_seconds = _median_seconds(jax.jit(whole), (m, d), seconds)
    stages = stages_of_step(m)
    wanted = _requested_outputs(d)
    native_m, native_d = jax.jit(partial(_native, many=many))(m, d)
    values = {n: v for n in _VALUE_NAMES if (v := getattr(native_d, n)) is not None}
    found = []
    for name, timer, function in stages:
        program = jax.jit(_stage_program(function, wanted))
        found.append((name, timer, _median_seconds(program, (native_m, values), seconds)))
        values |= program(native_m, values)
    total = sum(s for _, _, s in found) or 1.0
    rows = (StageTime(n, t, s / worlds, s / total) for n, t, s in found)
    return Profile(tuple(rows), whole_seconds / worlds, worlds, jax.devices()[0].device_kind)


def _first_tile(d: Data, tile: int) -> Data:
    """Return the worlds of the first tile; one world without a batch axis."""
    return d[0] if tile == 1 else jax.tree.map(lambda a: split_into_tiles(a, tile)[0], d)


_VALUE_NAMES = (*Data.fields, *Data.working)


def _native(m: Model, d: Data, many: bool) -> tuple[Model, Data]:
    """Return model and data in the form of the physics, batch axis last."""
    if not many:
        return unpack_record(m, 0), unpack_record(d, 0)
    last = jax.tree.map(lambda a: jnp.asarray(a)[..., None], m)
    return unpack_record(last, 1), unpack_record(
        jax.tree.map(lambda a: jnp.moveaxis(a, 0, -1), d), 1
    )


def _requested_outputs(d: Data) -> frozenset[str]:
    """Return the fields that a stage must return: those that the world keeps or later stages
    read."""
    kept = {n for n in Data.fields if getattr(d, n) is not None}
    return frozenset(kept | ALWAYS_KEPT | set(Data.working)).union(
        *(row.fields.reads for row in STAGES.values())
    )


def _stage_program(function: Callable, wanted: frozenset[str]) -> Callable:
    """Return a stage as a function from the model and earlier values to the values it changes."""

    def run(m: Model, values: dict[str, Any]) -> dict[str, Any]:
        d = Data().replace_unchecked(values, native=True)
        new = function(m, d)
        made = {n: v for n in _VALUE_NAMES if (v := getattr(new, n)) is not getattr(d, n)}
        return {n: v for n, v in made.items() if n in wanted and v is not None}

    return run


def _median_seconds(program: Callable, given: Sequence, least: float) -> float:
    """Return the median time of a call of a compiled program."""
    jax.block_until_ready(program(*given))
    times: list[float] = []
    while sum(times) < least or len(times) < 3:
        began = time.perf_counter()
        jax.block_until_ready(program(*given))
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def stages_of_step(m: Model) -> list[tuple[str, str, Callable]]:
    """Return name, MuJoCo timer and function of the stages of a model, in their order."""

    def advance(m: Model, d: Data) -> Data:
        return step_after_forward(m, d, IntegratorType(m.opt.integrator))

    def measured(*rows: StageRow) -> list[tuple[str, str, Callable]]:
        return [
            (row.name, row.timer, partial(run_stages, stages=(row,)))
            for row in rows
            if row.runs(m) and row.has_objects(m)
        ]

    control = [("control", "", call_control)] if has_callback(m, "control") else []
    return [
        *measured(*TO_POSITION),
        ("fwd_velocity", "VELOCITY", partial(run_stages, stages=VELOCITY)),
        *measured(*MAKE_ROWS, *VELOCITY_OUTPUTS),
        *control,
        *measured(*TO_ACCELERATION),
        ("advance", "ADVANCE", advance),
    ]
