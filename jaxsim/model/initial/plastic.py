"""Initial rest positions of yielding springs."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import JointType
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure


def start_plastic(m: Model) -> jax.Array:
    """Return the initial `plastic`: rest positions of yielding springs.

    Joint positions are those of `qpos_spring`, tendon ranges those of `tendon_lengthspring`.
    """
    given = [m.qpos_spring, m.tendon_lengthspring[:, 0], m.tendon_lengthspring[:, 1]]
    given.append(jnp.zeros_like(m.qpos_spring[:1]))
    worlds = np.broadcast_shapes(*(a.shape[1:] for a in given))
    return jnp.concatenate([jnp.broadcast_to(a, (len(a), *worlds)) for a in given])[_source(m)]


@cache_by_structure
def _source(s: Structure) -> np.ndarray:
    """Return the source index of each entry among positions, both spring lengths and a zero,
    [nplastic]."""
    source = np.full(s.nplastic, s.nq + 2 * s.ntendon)
    for joint in np.flatnonzero(s.jnt_plasticadr >= 0):
        place = np.arange(JointType(s.jnt_type[joint]).nq)
        source[s.jnt_plasticadr[joint] + place] = s.jnt_qposadr[joint] + place
    for tendon in np.flatnonzero(s.tendon_plasticadr >= 0):
        ends = np.array([0, s.ntendon])
        source[s.tendon_plasticadr[tendon] + np.arange(2)] = s.nq + tendon + ends
    return source
