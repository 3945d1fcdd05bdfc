"""Single stages of a step, MuJoCo's components, in the order in which a step calls them.

Each is a function of a model and a state under MuJoCo's name without the prefix. A stage reads the
results of earlier stages from `Data`: docs/reference/stages.md lists reads and writes, and
`make_data(m, keep=[...])` keeps the fields. `step`, `forward` and `inverse` call all stages.
"""

from jaxsim.physics.api import camlight as camlight
from jaxsim.physics.api import check_acc as check_acc
from jaxsim.physics.api import check_pos as check_pos
from jaxsim.physics.api import check_vel as check_vel
from jaxsim.physics.api import collision as collision
from jaxsim.physics.api import com_pos as com_pos
from jaxsim.physics.api import com_vel as com_vel
from jaxsim.physics.api import compare_fwd_inv as compare_fwd_inv
from jaxsim.physics.api import constraint_update as constraint_update
from jaxsim.physics.api import crb as crb
from jaxsim.physics.api import energy_pos as energy_pos
from jaxsim.physics.api import energy_vel as energy_vel
from jaxsim.physics.api import euler as euler
from jaxsim.physics.api import factor_m as factor_m
from jaxsim.physics.api import flex as flex
from jaxsim.physics.api import forward_skip as forward_skip
from jaxsim.physics.api import fwd_acceleration as fwd_acceleration
from jaxsim.physics.api import fwd_actuation as fwd_actuation
from jaxsim.physics.api import fwd_constraint as fwd_constraint
from jaxsim.physics.api import fwd_kinematics as fwd_kinematics
from jaxsim.physics.api import fwd_position as fwd_position
from jaxsim.physics.api import fwd_velocity as fwd_velocity
from jaxsim.physics.api import implicit as implicit
from jaxsim.physics.api import inv_constraint as inv_constraint
from jaxsim.physics.api import inv_position as inv_position
from jaxsim.physics.api import inv_velocity as inv_velocity
from jaxsim.physics.api import inverse_skip as inverse_skip
from jaxsim.physics.api import island as island
from jaxsim.physics.api import kinematics as kinematics
from jaxsim.physics.api import make_constraint as make_constraint
from jaxsim.physics.api import make_m as make_m
from jaxsim.physics.api import passive as passive
from jaxsim.physics.api import project_constraint as project_constraint
from jaxsim.physics.api import rne as rne
from jaxsim.physics.api import rne_postconstraint as rne_postconstraint
from jaxsim.physics.api import rungekutta4 as rungekutta4
from jaxsim.physics.api import sensor_acc as sensor_acc
from jaxsim.physics.api import sensor_pos as sensor_pos
from jaxsim.physics.api import sensor_vel as sensor_vel
from jaxsim.physics.api import solve as solve
from jaxsim.physics.api import subtree_vel as subtree_vel
from jaxsim.physics.api import tendon as tendon
from jaxsim.physics.api import tendon_bias as tendon_bias
from jaxsim.physics.api import transmission as transmission
from jaxsim.physics.api import xfrc_accumulate as xfrc_accumulate

__all__ = [
    "camlight",
    "check_acc",
    "check_pos",
    "check_vel",
    "collision",
    "com_pos",
    "com_vel",
    "compare_fwd_inv",
    "constraint_update",
    "crb",
    "energy_pos",
    "energy_vel",
    "euler",
    "factor_m",
    "flex",
    "forward_skip",
    "fwd_acceleration",
    "fwd_actuation",
    "fwd_constraint",
    "fwd_kinematics",
    "fwd_position",
    "fwd_velocity",
    "implicit",
    "inv_constraint",
    "inv_position",
    "inv_velocity",
    "inverse_skip",
    "island",
    "kinematics",
    "make_constraint",
    "make_m",
    "passive",
    "project_constraint",
    "rne",
    "rne_postconstraint",
    "rungekutta4",
    "sensor_acc",
    "sensor_pos",
    "sensor_vel",
    "solve",
    "subtree_vel",
    "tendon",
    "tendon_bias",
    "transmission",
    "xfrc_accumulate",
]
