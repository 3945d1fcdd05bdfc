"""A body that the user holds by the mouse: requests of pages, applied between two steps."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.transforms.program_cache import ProgramCache
from jaxsim.view.camera import default_free_camera
from jaxsim.view.mouse import Mouse
from jaxsim.view.perturb import Perturb, init_perturb, move_perturb

StateChange = Callable[[Data], Data]


class Holder:
    """Base class of a running world one of whose bodies the user may hold.

    Attributes:
      m: the model.
      held: the perturbation of a body by the user, empty at first.
    """

    m: Model
    held: Perturb
    nobody: Perturb

    def ask(self, change: StateChange) -> None:
        """Queue a change of the state, applied between two steps and then shown."""
        raise NotImplementedError

    def hold(self, body: int, point: np.ndarray, active: int) -> None:
        """Start a perturbation of a body at a point in the world (3,) [m]; bits of `PertBit`."""
        place = jnp.asarray(point)
        self._grasp(lambda d, _: _take_hold(self.m, d, jnp.int32(body), place, active))

    def pull(self, point: np.ndarray) -> None:
        """Move the target of the perturbed point in the world, (3,) [m]."""

        def pull_hold(_: Data, held: Perturb) -> Perturb:
            way = jnp.asarray(point, held.refpos.dtype) - held.refselpos
            return held._replace(refselpos=held.refselpos + way, refpos=held.refpos + way)

        self._grasp(pull_hold)

    def rotate(self, azimuth: float, x: float, y: float, action: Mouse = Mouse.ROTATE_V) -> None:
        """Rotate the target of the perturbed body.

        Args:
          azimuth: azimuth of the page's camera, about the vertical [degrees].
          x, y: mouse motion, to the right and down, in heights of the window.
          action: ROTATE_V or ROTATE_H, see `move_perturb`.
        """

        def rotate_hold(d: Data, held: Perturb) -> Perturb:
            numbers = (jnp.asarray(v, held.scale.dtype) for v in (azimuth, x, y))
            return _ROTATION_PROGRAMS[action](self.m, d, held, *numbers)

        self._grasp(rotate_hold)

    def let_go(self) -> None:
        """End the perturbation."""
        self._grasp(lambda *_: self.nobody)
        # a paused world must not keep the force
        self.ask(lambda d: d.replace(xfrc_applied=jnp.zeros_like(d.xfrc_applied)))

    def _grasp(self, change: Callable[[Data, Perturb], Perturb]) -> None:
        """Queue a change of the perturbation, in the order of requests.

        Starting a perturbation may compile; later requests must apply to the new perturbation, not
        to the last one.
        """

        def apply_change(d: Data) -> Data:
            self.held = change(d, self.held)
            return d

        self.ask(apply_change)


@ProgramCache
def _take_hold(m: Model, d: Data, body: jax.Array, point: jax.Array, active: jax.Array) -> Perturb:
    """Return the perturbation of a body at a point in the world."""
    local = d.xmat[body].T @ (point.astype(d.xpos.dtype) - d.xpos[body])
    held = init_perturb(m, d, default_free_camera(m), body, local)
    return held._replace(active=jnp.asarray(active, jnp.int32))


def _rotate_perturb(
    m: Model, d: Data, held: Perturb, azimuth: jax.Array, x: jax.Array, y: jax.Array, action: Mouse
) -> Perturb:
    camera = default_free_camera(m).replace(azimuth=azimuth)
    return move_perturb(m, d, camera, held, action, x, y)


_ROTATION_PROGRAMS = {
    action: ProgramCache(functools.partial(_rotate_perturb, action=action))
    for action in (Mouse.ROTATE_V, Mouse.ROTATE_H)
}


def no_hold(m: Model) -> Perturb:
    """Return an empty perturbation."""
    zero, none = jnp.zeros((), m.qpos0.dtype), jnp.int32(0)
    point = jnp.zeros(3, m.qpos0.dtype)
    return Perturb(
        none, none, point, jnp.zeros(4, zero.dtype).at[0].set(1), point, point, zero, zero
    )
