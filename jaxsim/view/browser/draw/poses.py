"""Compute the poses of everything that is drawn, from the states of worlds to arrays on the
host."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.model.allocate import allocate
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.camlight import camlight
from jaxsim.physics.body.inertia import com_pos
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.flex.flex import flex
from jaxsim.physics.tendon.tendon import tendon
from jaxsim.transforms.layout import batched, pack_values
from jaxsim.view.flex.surface import soft_points
from jaxsim.view.flex.topology import surface_topology

_KEPT_FIELDS = (
    *("xpos", "xquat", "subtree_com", "xanchor", "xaxis"),
    *("cam_xpos", "cam_xmat", "geom_xpos"),
)
_LIGHT_FIELDS = ("light_xpos", "light_xdir")
_PATH_FIELDS = ("ten_wrapadr", "ten_wrapnum", "wrap_obj", "wrap_xpos")
POSE_STATE_FIELDS = ("qpos", "mocap_pos", "mocap_quat")


class Poses(NamedTuple):
    """Poses of some worlds, numpy.

    Attributes:
      xpos, xquat: frames of bodies, (worlds, nbody, 3) [m] and (worlds, nbody, 4).
      subtree_com: centers of mass of the bodies' subtrees, (worlds, nbody, 3) [m].
      xanchor, xaxis: anchors and axes of joints, (worlds, njnt, 3) [m] and (worlds, njnt, 3).
      cam_xpos, cam_xmat: frames of cameras, (worlds, ncam, 3) [m] and (worlds, ncam, 3, 3).
      geom_xpos: positions of geoms, (worlds, ngeom, 3) [m].
      light_xpos, light_xdir: positions and directions of lights, (worlds, nlight, 3) [m].
      flexvert_xpos: vertices of flexes, (worlds, nflexvert, 3) [m].
      soft: points of surfaces of flexes and skins, (worlds, points, 3) [m] (view/flex/topology.py).
      paths: ten_wrapadr, ten_wrapnum, wrap_obj and wrap_xpos of tendons, by name; empty without.
    """

    xpos: np.ndarray
    xquat: np.ndarray
    subtree_com: np.ndarray
    xanchor: np.ndarray
    xaxis: np.ndarray
    cam_xpos: np.ndarray
    cam_xmat: np.ndarray
    geom_xpos: np.ndarray
    light_xpos: np.ndarray
    light_xdir: np.ndarray
    flexvert_xpos: np.ndarray
    soft: np.ndarray
    paths: dict[str, np.ndarray]


class Posing:
    """Program that computes the poses of worlds of a model.

    It is compiled for each number of worlds.

    Args:
      m: the model; also one that cannot be simulated.
    """

    def __init__(self, m: Model):
        self._m, names = (
            m,
            (*_KEPT_FIELDS, *_LIGHT_FIELDS, "flexvert_xpos", *_PATH_FIELDS * bool(m.ntendon)),
        )
        start = allocate(m, names)
        self.start = {name: np.asarray(getattr(start, name))[None] for name in POSE_STATE_FIELDS}

        def place(m: Model, d: Data) -> dict:
            d = camlight(m, com_pos(m, kinematics(m, d)))
            d = tendon(m, flex(m, d)) if m.ntendon else flex(m, d)
            found = pack_values(Data, {name: getattr(d, name) for name in names})
            return {**found, "soft": _flex_and_skin_points(m, d)}

        def one(m: Model, state: dict) -> dict:
            return batched(place)(m, start.replace(**state))

        self._program = jax.jit(jax.vmap(one, (None, 0)))

    def find(self, state: dict) -> dict:
        """Start the computation of poses, and return at once.

        Args:
          state: qpos and, if there are mocap bodies, mocap_pos and mocap_quat, (worlds, ...);
            missing fields have their initial values.
        """
        number = len(state["qpos"])
        given = {
            name: jnp.asarray(state[name], value.dtype)
            if name in state
            else jnp.asarray(np.repeat(value, number, axis=0))
            for name, value in self.start.items()
        }
        return self._program(self._m, given)

    def poses(self, found: dict) -> Poses:
        """Return the poses that `find` computes, when they are ready."""
        arrays = {name: np.asarray(value) for name, value in found.items()}
        paths = {name: arrays.pop(name) for name in _PATH_FIELDS if name in arrays}
        return Poses(**arrays, paths=paths)

    def of(self, state: dict) -> Poses:
        """Return the poses of worlds, computed synchronously."""
        return self.poses(self.find(state))


def _flex_and_skin_points(m: Model, d: Data) -> Array:
    """Return the points of flexes and skins, `[points, 3, *W]`."""
    if not surface_topology(m.structure).points:
        return jnp.zeros_like(d.qpos, shape=(0, 3, *d.qpos.shape[1:]))
    return soft_points(m, d).pos.to_array(axis=1)


def pose_state(d: Data) -> dict:
    """Return the fields of one or many worlds on which poses depend, (worlds, ...)."""
    lead = d.qpos.ndim == 1
    return {
        name: getattr(d, name)[None] if lead else getattr(d, name) for name in POSE_STATE_FIELDS
    }
