"""`mujoco.sensor.touch_grid`: contact forces in a grid of directions seen from a site.

MuJoCo's documentation of the plugin (plugin/sensor). A site looks along its negative z axis, like a
camera. A contact at (x, y, z) in its frame is in the direction

    azimuth = atan2(x, -z),   elevation = atan2(y, sqrt(x^2 + z^2))

and is added to the cell whose edges enclose both angles. Edges of cells are at `fov` times f(u)
from the center, with u uniformly spaced from -1 to 1,

    f(u) = gamma u^5 + (1 - gamma) u
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.enums import ObjType
from jaxsim.extend.plugin import Attached, Config, Plugin
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.plugins.numbers import setting_number, setting_numbers

_MAX_FOV = (180.0, 90.0)  # largest fields of view to either side [deg]
_MAX_CHANNELS = 6


class TouchGrid(Plugin):
    """Contact forces, summed in the cells of a grid of directions."""

    name = "mujoco.sensor.touch_grid"
    settings = dict.fromkeys(("nchannel", "size", "fov", "gamma"), "")
    objtype = ObjType.SITE

    def check(self, config: Config) -> str:
        """Check the sizes, angles and channels."""
        for key, what in (("size", "columns and rows"), ("fov", "horizontal and vertical angle")):
            if len(config.get(key, "").split()) != 2:
                return f"config '{key}' must give two numbers, {what}"
        if (_grid_size(config) <= 0).any():
            return "config 'size' must be two positive counts"
        for angle, most in zip(setting_numbers(config, "fov", 2), _MAX_FOV, strict=True):
            if not 0 < angle <= most:
                return f"config 'fov' has {angle:g}; it must be positive and at most {most:g} here"
        if not 1 <= _num_channels(config) <= _MAX_CHANNELS:
            return f"config 'nchannel' must be from 1 to {_MAX_CHANNELS}"
        if not 0 <= setting_number(config, "gamma") <= 1:
            return "config 'gamma' must be from 0 to 1"
        return ""

    def readings(self, config: Config) -> int:
        """Return the number of values: channels times rows times columns."""
        return _num_channels(config) * int(_grid_size(config).prod())

    def sensor(self, m: Model, d: Data, at: Attached) -> jax.Array:
        """Return the readings of each sensor: for each channel, rows from below and cells from the
        left.

        Channels are forces along z, x, y of the site [N], then torques about them [N m].
        """
        assert at.objid is not None
        columns, rows = (
            _edges(count, angle, setting_number(at.config, "gamma"))
            for count, angle in zip(
                _grid_size(at.config), setting_numbers(at.config, "fov", 2), strict=True
            )
        )
        channels = _num_channels(at.config)
        if d.contact is None or d.contact.force is None:  # a model without contacts
            shape = len(at.id), channels * (len(columns) - 1) * (len(rows) - 1)
            return jnp.zeros(shape, d.qpos.dtype)

        def one(pos: jax.Array, R: jax.Array, body: jax.Array) -> jax.Array:
            azimuth, elevation = _directions(_product("ca,ab->cb", d.contact.pos - pos[None], R))
            # Sum over the contacts of a cell as a product of row and column indicators: an array of
            # contacts times cells would be large, and scatter-add is slow on a GPU.
            force = (
                _forces(m, d, body, R)[:, :channels, None] * _bin_weights(elevation, rows)[:, None]
            )
            across = _bin_weights(azimuth, columns)
            return _product("cky,cx->kyx", force, across).ravel()

        body = jnp.asarray(m.body_weldid[m.site_bodyid[at.objid]])
        return jax.vmap(one)(d.site_xpos[at.objid], d.site_xmat[at.objid], body)


def _grid_size(config: Config) -> np.ndarray:
    """Return the numbers of columns and rows."""
    return setting_numbers(config, "size", 2).astype(int)


def _num_channels(config: Config) -> int:
    """Return the number of channels; 1 by default."""
    return int(setting_number(config, "nchannel")) or 1


def _edges(count: int, angle: float, gamma: float) -> np.ndarray:
    """Return the edges of cells, from below or from the left, (count + 1,) [rad].

    Accumulated as in MuJoCo: the middle edge may differ from zero by rounding, which decides the
    cell of contacts straight ahead.
    """
    u = np.cumsum([-1.0, *[2 / count] * count])
    return angle * np.pi / 180 * (gamma * u**5 + (1 - gamma) * u)


def _directions(local: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return azimuth and elevation of points in the frame of a site, (n,) of (n, 3) [rad].

    They select the cell of a contact, so they have no derivative.
    """
    x, y, z = lax.stop_gradient(local).T
    return jnp.arctan2(x, -z), jnp.arctan2(y, jnp.sqrt(x * x + z * z))


def _bin_weights(angle: jax.Array, edges: np.ndarray) -> jax.Array:
    """Return 1 where an angle is above an edge and not above the next, (n, len(edges) - 1)."""
    above = angle[:, None] > jnp.asarray(edges, angle.dtype)[None]
    return (above[:, :-1] & ~above[:, 1:]).astype(angle.dtype)


def _forces(m: Model, d: Data, body: jax.Array, R: jax.Array) -> jax.Array:
    """Return force and torque of each contact on a body, in the frame of its site, (ncontact, 6).

    Contacts of all bodies welded to the body count; those of others are zero.

    Args:
      m, d: of one world.
      body: the first of the bodies that are welded together.
      R: orientation of the site in the world.
    """
    geom, dtype = d.contact.geom, d.qpos.dtype
    welded = jnp.asarray(m.body_weldid[m.geom_bodyid])[jnp.maximum(geom, 0)]
    on_first, on_second = ((welded == body) & (geom >= 0)).astype(dtype).T
    parts = d.contact.force.reshape(-1, 2, 3)  # force and torque on the second geom
    world = _product("cpa,cab->cpb", parts, d.contact.frame)
    zxy = jnp.roll(_product("cpa,ab->cpb", world, R), 1, axis=-1)
    return zxy.reshape(-1, 6) * (on_second - on_first)[:, None]


# The default precision on accelerators would round the factors.
_product = partial(jnp.einsum, precision="highest")
