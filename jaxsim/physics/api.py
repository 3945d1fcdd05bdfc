"""The physics as public functions of one world, to be used under jit, vmap, grad and scan.

The names are MuJoCo's without the prefix. `step`, `forward`, `inverse`, `constraint_rows`, mass
matrix and Jacobians compute all they need from the state. A single stage reads the results of the
stages before it, and says so if its Data does not carry them.
"""

import functools
import inspect
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator.actuation import actuation as _actuation
from jaxsim.physics.actuator.transmission import transmission as _transmission
from jaxsim.physics.arguments import check_array, check_data, check_model
from jaxsim.physics.arrays.native import worlds
from jaxsim.physics.body.configuration import differentiate_pos as _differentiate_pos
from jaxsim.physics.body.configuration import integrate_pos as _integrate_pos
from jaxsim.physics.body.inertia import com_pos as _com_pos
from jaxsim.physics.body.inertia import crb as _crb
from jaxsim.physics.body.kinematics import kinematics as _kinematics
from jaxsim.physics.body.rne import com_vel as _com_vel
from jaxsim.physics.body.rne import rne as _rne
from jaxsim.physics.body.subtree import subtree_vel as _subtree_vel
from jaxsim.physics.forward import forward as _forward
from jaxsim.physics.integrate.step import step as _step
from jaxsim.physics.inverse import inverse as _inverse
from jaxsim.physics.passive.energy import energy_pos as _energy_pos
from jaxsim.physics.passive.energy import energy_vel as _energy_vel
from jaxsim.physics.passive.passive import passive as _passive
from jaxsim.physics.query import jacobian as body_jacobian
from jaxsim.physics.query import mass_matrix
from jaxsim.physics.query.constraint_rows import constraint_rows as _constraint_rows
from jaxsim.physics.tendon.tendon import tendon as _tendon


def _public(core: Callable, carries: str = "") -> Callable:
    """The public form of a function of the physics.

    Args:
      core: takes unpacked records and arrays `[items, *W]`.
      carries: fields that the function reads or whose value is its result.
    """
    native, signature = worlds(core), inspect.signature(core)
    names, name = tuple(signature.parameters), core.__name__.lstrip("_")

    @functools.wraps(core)
    def function(*args, **named):
        args = signature.bind(*args, **named).args
        m = args[0]
        check_model(name, m)
        for argument, value in zip(names[1:], args[1:], strict=False):
            if argument == "d":
                check_data(name, m, value)
                _check_carries(name, value, carries.split())
            else:
                check_array(name, m, argument, value)
        arrays = (a if isinstance(a, Data) else _items(a, m.qpos0.dtype) for a in args[1:])
        return _apart(native(m, *arrays))

    return function


def _check_carries(name: str, d: Data, fields: list[str]) -> None:
    absent = [field for field in fields if getattr(d, field) is None]
    if absent:
        raise ValueError(
            f"{name}: this Data does not carry {absent[0]!r}; keep it: make_data(m, keep=...)"
        )


def _items(a, dtype) -> jax.Array:
    """An argument in the form of the physics: one number is one item."""
    whole = jnp.issubdtype(jnp.result_type(a), np.integer)
    a = jnp.asarray(a).astype(jnp.int32 if whole else dtype)
    return a if a.ndim else a[None]


def _apart(out):
    """Results in buffers of their own, so that all of them can be donated to the next call.

    A program gives each result one; outside a program the same array may stand in two fields.
    """
    seen: set[int] = set()

    def own(a):
        if isinstance(a, jax.core.Tracer) or id(a) not in seen:
            seen.add(id(a))
            return a
        return jnp.array(a, copy=True)

    return jax.tree.map(own, out)


step = _public(_step)
forward = _public(_forward)
inverse = _public(_inverse, "qacc qfrc_inverse")
constraint_rows = _public(_constraint_rows, "qacc")

# stages
kinematics = _public(_kinematics)
com_pos = _public(_com_pos, "xpos xmat xipos ximat xanchor xaxis cdof cinert subtree_com")
tendon = _public(_tendon, "site_xpos geom_xpos geom_xmat subtree_com cdof ten_length ten_J")
crb = _public(_crb, "cdof cinert ten_J crb M")
transmission = _public(
    _transmission,
    "xquat site_xpos site_xmat subtree_com cdof ten_length ten_J actuator_length actuator_moment",
)
com_vel = _public(_com_vel, "cdof cvel cdof_dot")
passive = _public(_passive, "xipos ximat geom_xpos geom_xmat cvel cdof ten_J qfrc_passive")
fwd_actuation = _public(_actuation, "actuator_length actuator_velocity actuator_moment")
subtree_vel = _public(_subtree_vel, "xipos cvel subtree_com subtree_linvel subtree_angmom")
energy_pos = _public(_energy_pos, "xipos energy")
energy_vel = _public(_energy_vel, "M energy")

# configurations: (m, qpos, qvel, dt) and (m, dt, qpos1, qpos2)
integrate_pos = _public(_integrate_pos)
differentiate_pos = _public(_differentiate_pos)

# from the configuration alone
full_m = _public(mass_matrix.full_m)
mul_m = _public(mass_matrix.mul_m)
solve_m = _public(mass_matrix.solve_m)
jac = _public(body_jacobian.jac)
jac_body = _public(body_jacobian.jac_body)
jac_body_com = _public(body_jacobian.jac_body_com)
jac_geom = _public(body_jacobian.jac_geom)
jac_site = _public(body_jacobian.jac_site)


def rne(m: Model, d: Data, flg_acc: bool = False) -> jax.Array:
    """Inverse dynamics of the bodies alone: M qacc + bias force, without armature.

    Args:
      m: the model.
      d: a world after `com_vel`.
      flg_acc: with the acceleration `d.qacc`; without it, at zero.

    Returns:
      Generalized force, (nv,) [N or N m].
    """
    return _rne_acc(m, d) if flg_acc else _rne_bias(m, d)


def _rne_at_qacc(m: Model, d: Data):
    return _rne(m, d, d.qacc)


_rne_bias = _public(_rne, "cinert cdof cdof_dot cvel")
_rne_acc = _public(_rne_at_qacc, "cinert cdof cdof_dot cvel qacc")
