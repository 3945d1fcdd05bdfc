"""Functions of a user that a step calls where MuJoCo calls its `mjcb_` functions.

MuJoCo's documentation, API reference: Globals, Physics callbacks.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Self

import jax

FILTERED = 1 << 30  # beside the bits of DisableBit: a callback says which geoms touch


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Callbacks:
    """Functions that take part in a step of one world; the engine calls them for all worlds.

    They are pure functions of `m` and `d`, in the form in which a user has these, and can be
    differentiated. `d` has everything that is computed before them, also what is not kept.

    A function is part of a program's identity: make it once, not anew for each step. Numbers that
    it uses and that are to be changed, trained or different in each world are given with it, as
    `jax.tree_util.Partial(f, numbers)`, which is called as `f(numbers, m, d, ...)`.

    Attributes:
      control: (m, d) -> d with other `ctrl`, `qfrc_applied`, `xfrc_applied`, `userdata`,
        `eq_active`, `mocap_pos` or `mocap_quat`. Called when positions and velocities are known,
        in every stage of RK4 too. What it sets stays in `d`.
      passive: (m, d) -> (nv,): a generalized force to be added to `qfrc_passive` [N or N m].
      act_dyn: (m, d, id) -> `act_dot` of the actuators with dyntype user, one number for each of
        their activations. Without it zero.
      act_gain: (m, d, id) -> (n,) gains of the actuators with gaintype user. Without it one.
      act_bias: (m, d, id) -> (n,) biases of the actuators with biastype user. Without it zero.
      sensor: (m, d, stage, id) -> readings of the user sensors of a `jaxsim.enums.Stage`, those of
        the first sensor, of the second, ... `d.sensordata` has the other sensors of the stage.
        Without it zero. Nothing reads those of the stage NONE.
      contactfilter: (m, d, geom1, geom2) -> (n,) bool: pairs of geoms that do not touch, whose
        bodies may collide. It takes the place of the comparison of contype and conaffinity of
        geoms; those of the bodies, of all their geoms together, still say which pairs are asked of.
        The result for geoms of a `<pair>` has no effect.

    `id`, `geom1` and `geom2` are numpy arrays of ids, so that one call serves all: read
    `d.actuator_length[id]`. Of `act_gain` and `act_bias` `id` has one for each output.

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
        """A plain function has no numbers: it becomes a pytree without leaves."""
        for name, value in vars(self).items():
            if callable(value) and jax.tree_util.all_leaves([value]):
                object.__setattr__(self, name, jax.tree_util.Partial(value))

    def replace(self, **functions: Any) -> Self:
        """Return the same with other functions."""
        return dataclasses.replace(self, **functions)

    def __repr__(self) -> str:
        """Return the functions there are."""
        there = ", ".join(n for n, f in vars(self).items() if f is not None)
        return f"Callbacks({there})"
