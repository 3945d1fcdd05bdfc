"""User callbacks that a step calls at the points where MuJoCo calls its `mjcb_` functions.

MuJoCo's documentation, API reference: Globals, Physics callbacks.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Self

import jax

FILTERED_BIT = 1 << 30  # bit next to those of DisableBit: a contactfilter callback is set


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Callbacks:
    """User functions that take part in a step; written for one world, vectorized by the engine.

    They are pure functions of `m` and `d` in their public form, and can be differentiated. `d` has
    every field computed so far, including fields that are not kept.

    A function is part of a program's identity: create it once, not in every step. Parameters that
    are to be changed, trained or batched are passed as `jax.tree_util.Partial(f, parameters)`,
    which is called as `f(parameters, m, d, ...)`.

    Attributes:
      control: (m, d) -> d with other `ctrl`, `qfrc_applied`, `xfrc_applied`, `userdata`,
        `eq_active`, `mocap_pos` or `mocap_quat`. Called after positions and velocities are
        computed, in every stage of RK4 too. The changes stay in `d`.
      passive: (m, d) -> (nv,), a generalized force that is added to `qfrc_passive` [N or N m].
      act_dyn: (m, d, id) -> `act_dot` of the actuators with dyntype user, one value for each of
        their activations. Zero without the callback.
      act_gain: (m, d, id) -> (n,) gains of the actuators with gaintype user. One without it.
      act_bias: (m, d, id) -> (n,) biases of the actuators with biastype user. Zero without it.
      sensor: (m, d, stage, id) -> concatenated readings of the user sensors of a
        `jaxsim.enums.Stage`. `d.sensordata` has the other sensors of the stage. Zero without it.
        Sensors of the stage NONE are never evaluated.
      contactfilter: (m, d, geom1, geom2) -> (n,) bool, True for pairs of geoms that do not collide.
        It replaces the comparison of contype and conaffinity between geoms; the masks of bodies
        (the union over their geoms) still select which pairs are passed to it. The result for geoms
        of a `<pair>` has no effect.

    `id`, `geom1` and `geom2` are numpy arrays of ids, so that one call serves all of them: read
    `d.actuator_length[id]`. For `act_gain` and `act_bias`, `id` has one entry per output.

    Example:
      >>> damp = Callbacks(control=lambda m, d: d.replace(ctrl=-0.1 * d.qvel[: m.nu]))
      >>> d = jax.jit(jaxsim.step)(m.replace(callbacks=damp), d)  # or step(m, d, callbacks=damp)
    """

    control: Callable | None = None
    passive: Callable | None = None
    act_dyn: Callable | None = None
    act_gain: Callable | None = None
    act_bias: Callable | None = None
    sensor: Callable | None = None
    contactfilter: Callable | None = None

    def __post_init__(self) -> None:
        """Wrap plain functions, which have no parameters, as pytrees without leaves."""
        for name, value in vars(self).items():
            if callable(value) and jax.tree_util.all_leaves([value]):
                object.__setattr__(self, name, jax.tree_util.Partial(value))

    def replace(self, **functions: Any) -> Self:
        """Return a copy with some functions replaced."""
        return dataclasses.replace(self, **functions)

    def __repr__(self) -> str:
        """Return the names of the functions that are set."""
        there = ", ".join(n for n, f in vars(self).items() if f is not None)
        return f"Callbacks({there})"
