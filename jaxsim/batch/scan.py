"""Simulate many steps of one world in one function, for use under jit, vmap and grad."""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.enums import EnableBit
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float, Shaped
from jaxsim.physics.public.api import step
from jaxsim.physics.public.arguments import check_count, check_data, check_model

Records = dict[str, Shaped[jax.Array, "steps *field"]]


def rollout(
    m: Model,
    d: Data,
    steps: int | None = None,
    ctrl: Float[jax.Array, "steps nu"] | None = None,
    *,
    record: Sequence[str] = (),
    remat: int | None = None,
) -> tuple[Data, Records]:
    """Advance one world by several steps.

    Args:
      m: the model.
      d: the world at the start.
      steps: number of steps; None: the number of rows of `ctrl`.
      ctrl: controls, (steps, nu), one row per step. None: `d.ctrl` at every step.
      record: names of the fields of Data to record.
      remat: for gradients of long motions: the forward pass saves only every `remat`-th state, and
        the backward pass recomputes the steps between them. None: every state is saved. About the
        square root of the number of steps needs the least memory.

    Returns:
      The world at the end, and the recorded fields after each step, each with a leading axis of
      steps.

    Raises:
      ValueError: `steps` and `ctrl` contradict each other, a field cannot be recorded, or `remat`
        is no number of steps.

    Example:
      >>> swing = jax.jit(lambda d: rollout(m, d, 100, record=["qpos"]))
      >>> end, motion = swing(d.replace(qvel=jnp.ones(m.nv)))
      >>> round(float(end.time), 3), motion["qpos"].shape
      (0.2, (100, 1))
    """
    if ctrl is None and steps is None:
        raise ValueError("rollout: give the number of steps, or ctrl with one row per step")
    if steps is not None:
        steps = check_count("rollout: steps", steps)
    check_model("rollout", m)
    check_data("rollout", m, d)
    if ctrl is not None:
        steps = np.shape(ctrl)[0] if steps is None and np.ndim(ctrl) else steps
        if np.shape(ctrl) != (steps, m.nu):
            raise ValueError(f"ctrl: expected shape ({steps}, {m.nu}), got {np.shape(ctrl)}")
    check_record(m, d, record)
    if remat is not None and not check_count("rollout: remat", remat):
        raise ValueError("rollout: remat: expected at least one step, or None to keep every state")

    def advance(d: Data, ctrl_now):
        if ctrl_now is not None:
            d = d.replace(ctrl=ctrl_now)
        d = step(m, d)
        return d, {name: getattr(d, name) for name in record}

    assert steps is not None  # given by the shape of ctrl
    if remat is None:
        return lax.scan(advance, d, ctrl, length=steps)
    return _chunked_scan(advance, d, ctrl, steps, remat)


def _chunked_scan(
    advance: Callable, d: Data, ctrl: jax.Array | None, steps: int, size: int
) -> tuple[Data, Records]:
    """Scan over segments of `size` steps, the last one shorter, that are rematerialized in reverse
    mode.

    An empty segment is left out, because it would add another copy of the step to the program.
    """

    def part(d: Data, ctrl: jax.Array | None, length: int) -> tuple[Data, Records]:
        scan = partial(lax.scan, advance, length=length)
        found: tuple[Data, Records] = jax.checkpoint(scan, prevent_cse=False)(d, ctrl)
        return found

    parts, rest = divmod(steps, size)
    found: list[Records] = []
    if parts:
        first = None if ctrl is None else ctrl[: parts * size].reshape(parts, size, ctrl.shape[1])
        d, records = lax.scan(partial(part, length=size), d, first, length=parts)
        found.append(jax.tree.map(lambda a: a.reshape(parts * size, *a.shape[2:]), records))
    if rest or not parts:
        d, last = part(d, None if ctrl is None else ctrl[parts * size :], rest)
        found.append(last)
    return d, jax.tree.map(lambda *some: jnp.concatenate(some), *found)


def check_record(m: Model, d: Data, record: Sequence[str]) -> None:
    """Raise ValueError if a field cannot be recorded."""
    for name in record:
        if name in Data.fields and Data.fields[name].nested:
            raise ValueError(
                f"record: {name!r} is a nested record, not an array; collect it with a "
                "jax.lax.scan of jaxsim.step"
            )
        if not isinstance(getattr(d, name, None), jax.Array):
            hint = "; keep it: make_data(m, keep=...)" if name in Data.fields else ""
            raise ValueError(f"record: this Data does not carry {name!r}{hint}")
        if name == "energy" and not m.opt.enableflags & EnableBit.ENERGY:
            raise ValueError(
                "record: 'energy' is not computed, as the energy flag of this model is off; "
                'switch it on: <option><flag energy="enable"/></option>'
            )
