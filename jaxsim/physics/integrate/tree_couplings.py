"""Trees coupled by the metric of a discrete step: by tendons, actuators and flexes.

MuJoCo's documentation, Computation: Numerical integration, Discrete-time. Such trees are solved
together and are in one island, as if a constraint row touched them; they also wake together.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column
from jaxsim.arrays.pattern import SparsityPattern
from jaxsim.enums import BiasType, DisableBit, GainType, SolverType
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.actuator.transmission import moment_pattern
from jaxsim.physics.flex.stiffness import trees_of_flexes
from jaxsim.physics.integrate.discrete import is_discrete
from jaxsim.physics.tendon.path import tendon_pattern


def metric_couplings(m: Model, like: Array) -> list[Array]:
    """Return groups of trees coupled by the metric, `[n, ntree, *W]` bool; none: []."""
    if not is_discrete(m) or m.opt.solver == SolverType.PGS:
        return []
    # Tendons that move several trees, if they have a spring or damper.
    ids, trees = _coupled_trees(m.structure)["tendon"]
    ties = []
    if len(ids):
        pulls = implicit_tendons(m, like)[ids]
        ties.append(pulls[:, None] & column(trees, like))
    # Actuators that move several trees, if their force depends on length or velocity.
    ids, trees = _coupled_trees(m.structure)["actuator"]
    feeds_back = np.isin(m.actuator_biastype, _STATE_DEPENDENT_BIASES) | np.isin(
        m.actuator_gaintype, _STATE_DEPENDENT_GAINS
    )
    which = np.isin(ids, np.flatnonzero(feeds_back))
    if which.any() and not m.opt.disableflags & DisableBit.ACTUATION:
        here = jnp.asarray(column(trees[which], like))
        ties.append(jnp.broadcast_to(here, (*here.shape[:2], *like.shape[1:])))
    return ties


def flex_couplings(m: Model, awake: Array) -> list[Array]:
    """Return groups of awake trees coupled by elasticity, `[n, ntree, *W]` bool; none: [].

    MuJoCo puts them in one island with any integrator, although only forces couple them.
    """
    # Flexes on several trees; only their awake trees.
    several = [t for t in trees_of_flexes(m.structure) if len(t) > 1]
    if not several:
        return []
    member = np.array([np.isin(np.arange(m.ntree), trees) for trees in several])
    ties = awake[None] & column(member, awake)
    return [ties & (jnp.sum(ties, axis=1, keepdims=True) > 1)]


def implicit_tendons(m: Model, like: Array) -> Array:
    """Return the tendons with a spring or damper, `[ntendon, *W]` bool."""
    out = jnp.zeros((m.ntendon, *like.shape[1:]), bool)
    if not m.opt.disableflags & DisableBit.SPRING:
        out = out | (m.tendon_stiffness != 0) | (m.tendon_stiffnesspoly != 0).any(axis=1)
    if not m.opt.disableflags & DisableBit.DAMPER:
        driven = column(m.tendon_actuatorid != -1, like)
        out = out | (m.tendon_damping != 0) | (m.tendon_dampingpoly != 0).any(axis=1) | driven
    return out


# Types whose force may depend on length or velocity.
_STATE_DEPENDENT_BIASES = (BiasType.AFFINE, BiasType.MUSCLE, BiasType.DCMOTOR, BiasType.SO3)
_STATE_DEPENDENT_GAINS = (GainType.AFFINE, GainType.MUSCLE, GainType.DCMOTOR, GainType.SO3)


@cache_by_structure
def _coupled_trees(s: Structure) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return tendons and actuators that move several trees: `[n]` ids, `[n, ntree]` bool."""
    patterns = {
        "tendon": (tendon_pattern(s), np.arange(s.ntendon)),
        "actuator": (moment_pattern(s), np.repeat(np.arange(s.nactuator), s.actuator_outnum)),
    }
    return {name: _shared_owners(s, *of) for name, of in patterns.items()}


def _shared_owners(
    s: Structure, pattern: SparsityPattern, owner: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    # Trees moved by each owner.
    moves = np.zeros((len(np.unique(owner)), s.ntree), bool)
    moves[owner[pattern.row], s.dof_treeid[pattern.col]] = True
    ids = np.flatnonzero(moves.sum(axis=1) > 1)
    return ids, moves[ids]
