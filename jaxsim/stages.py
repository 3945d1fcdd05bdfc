"""Single stages of a step, MuJoCo's components, in the order in which a step calls them.

Each is a function of a model and a state under MuJoCo's name without the prefix. A stage reads the
results of earlier stages from `Data`: docs/reference/stages.md lists reads and writes, and
`make_data(m, keep=[...])` keeps the fields; a value that is missing is recomputed from the others,
or an error names the field to keep. `step`, `forward` and `inverse` call all stages.
"""

from jaxsim.arrays.array import Array
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float
from jaxsim.physics import inverse as _inverse
from jaxsim.physics import step as _step
from jaxsim.physics.body.applied_force import xfrc_accumulate as _xfrc_accumulate
from jaxsim.physics.body.rne import rne as _rne
from jaxsim.physics.pipeline import standalone as _standalone
from jaxsim.physics.pipeline.stages import STAGES
from jaxsim.physics.public.split_step import forward_skip as forward_skip
from jaxsim.physics.public.split_step import inverse_skip as inverse_skip
from jaxsim.physics.public.wrapper import make_public, public_stage
from jaxsim.physics.query import constraint_update as _constraint_update
from jaxsim.physics.query.island import island as _island
from jaxsim.physics.query.mass_matrix import factor_m as _factor_m

# Checks of `step` for an invalid state, in order.
check_pos = make_public(_step.check_pos)
check_vel = make_public(_step.check_vel)
check_acc = make_public(_step.check_acc, callbacks=True)

# Positions.
fwd_kinematics = make_public(_standalone.fwd_kinematics)
fwd_position = make_public(_standalone.fwd_position)
kinematics = public_stage("kinematics")
com_pos = public_stage("com_pos")
camlight = public_stage("camlight")
flex = public_stage("flex")
tendon = public_stage("tendon")
crb = public_stage("crb")
factor_m = make_public(_factor_m)
collision = public_stage("collision")
make_constraint = make_public(_standalone.make_constraint)
island = make_public(_island)
transmission = public_stage("transmission")
project_constraint = make_public(_constraint_update.project_constraint)
sensor_pos = public_stage("sensor_pos")
energy_pos = public_stage("energy_pos")

# Velocities.
fwd_velocity = make_public(_standalone.fwd_velocity)
com_vel = public_stage("com_vel")
passive = public_stage("passive")
tendon_bias = make_public(_standalone.tendon_bias)
subtree_vel = public_stage("subtree_vel")
sensor_vel = public_stage("sensor_vel")
energy_vel = public_stage("energy_vel")

# Forces and accelerations.
fwd_actuation = public_stage("fwd_actuation")
xfrc_accumulate = make_public(_xfrc_accumulate)
fwd_acceleration = make_public(_standalone.fwd_acceleration)
solve = make_public(_standalone.solve)
constraint_update = make_public(_constraint_update.constraint_update)
rne_postconstraint = make_public(_standalone.rne_postconstraint)
sensor_acc = public_stage("sensor_acc")

# Integrators and inverse dynamics.
euler = make_public(_standalone.euler)
implicit = make_public(_standalone.implicit)
rungekutta4 = make_public(_standalone.rungekutta4)
inv_constraint = make_public(_inverse.inv_constraint)
compare_fwd_inv = make_public(_inverse.compare_fwd_inv)

# Aliases: MuJoCo has several names for these stages.
fwd_constraint = solve
inv_position = fwd_position
inv_velocity = fwd_velocity
make_m = crb


def rne(m: Model, d: Data, flg_acc: bool = False) -> Float[Array, "nv"]:
    """Compute inverse dynamics of the bodies alone: M qacc + bias force, without armature.

    Corresponds to `mj_rne` in MuJoCo.

    Args:
      m: the model.
      d: a world after `com_vel`.
      flg_acc: include the acceleration `d.qacc`; False: at zero acceleration.

    Returns:
      Generalized force, (nv,) [N or N m].
    """
    return _rne_acc(m, d) if flg_acc else _rne_bias(m, d)


def _rne_at_qacc(m: Model, d: Data) -> Array:
    return _rne(m, d, d.qacc)


_rne_bias = make_public(_rne)
_rne_acc = make_public(_rne_at_qacc, name="rne", fields=STAGES["rne_at_qacc"].fields)
vars(rne)["carries"] = vars(_rne_acc)["carries"]

__all__ = sorted(name for name, f in globals().items() if hasattr(f, "carries") and name[0] != "_")
