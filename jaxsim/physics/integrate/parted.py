"""A step, the forward and the inverse dynamics in parts, between which a program sets what it will.

MuJoCo's documentation, Programming: Simulation loop. What a part needs of those before it and no
Data carries is found again (resume.py).
"""

from collections.abc import Callable

from jaxsim.cache import bounded
from jaxsim.enums import IntegratorType, Stage
from jaxsim.model.callbacks import Callbacks
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.callback import control
from jaxsim.physics.forward import from_actuation, from_control, to_position, to_velocity
from jaxsim.physics.forward import step1 as until_control
from jaxsim.physics.integrate.step import advanced, checked
from jaxsim.physics.inverse import inverse_forces
from jaxsim.physics.public import NO_STAGE, public
from jaxsim.physics.stage import Stage as Declared

_OF_POSITION = frozenset(
    "xpos xquat xipos ximat geom_xpos geom_xmat site_xpos site_xmat cam_xpos subtree_com cdof "
    "cinert M ten_length ten_J flexvert_xpos flexedge_length flexedge_J actuator_length "
    "actuator_moment contact found readings".split()
)
_OF_VELOCITY = frozenset(
    "cvel cdof_dot ten_velocity actuator_velocity qfrc_bias qfrc_passive rows".split()
)
# what the parts after a stage read that is computed before them
AFTER = {
    Stage.NONE: NO_STAGE,
    Stage.POS: Declared(_OF_POSITION, frozenset()),
    Stage.VEL: Declared(_OF_POSITION | _OF_VELOCITY, frozenset()),
}


def _step1(m: Model, d: Data) -> Data:
    """The first part of a step: what follows from positions and velocities.

    A control callback is called at its end; or the caller sets controls and applied forces, and
    calls `step2`. Forces, accelerations and the sensors of these stay what they were.
    """
    return control(m, until_control(m, checked(m, d)))


def _step2(m: Model, d: Data) -> Data:
    """The second part of a step: forces, acceleration, and the state one time step later.

    With the integrator RK4, whose stages ask for a whole step, it is Euler's method. What no Data
    carries is found again; `make_data(m, keep=[..., jaxsim.step2])` keeps it.
    """
    kind = IntegratorType(m.opt.integrator)
    d = from_actuation(m, d)
    return advanced(m, d, IntegratorType.EULER if kind == IntegratorType.RK4 else kind)


step1 = public(_step1, callbacks=True)
step2 = public(_step2, callbacks=True, stage=AFTER[Stage.VEL])


def forward_skip(
    m: Model,
    d: Data,
    skipstage: Stage = Stage.NONE,
    skipsensor: bool = False,
    *,
    callbacks: Callbacks | None = None,
) -> Data:
    """The forward dynamics without stages whose results `d` has already.

    Args:
      m: the model.
      d: a world; after `forward` at the same positions if these are skipped, and at the same
        velocities if these are.
      skipstage: NONE; POS, the stages of the configuration; VEL, also those of the velocity.
      skipsensor: whether sensors stay as they are.
      callbacks: functions of the user.

    Returns:
      As of `forward`.
    """
    rest = _rest("forward_skip", from_control, Stage(skipstage), bool(skipsensor))
    return rest(m, d, callbacks=callbacks)


def inverse_skip(
    m: Model,
    d: Data,
    skipstage: Stage = Stage.NONE,
    skipsensor: bool = False,
    *,
    callbacks: Callbacks | None = None,
) -> Data:
    """The inverse dynamics without stages whose results `d` has already.

    Args:
      m: the model.
      d: a world with `qacc`; else as for `forward_skip`.
      skipstage, skipsensor, callbacks: as for `forward_skip`.

    Returns:
      As of `inverse`.
    """
    rest = _rest("inverse_skip", inverse_forces, Stage(skipstage), bool(skipsensor))
    return rest(m, d, callbacks=callbacks)


@bounded(64)
def _rest(name: str, last: Callable, skipstage: Stage, skipsensor: bool) -> Callable:
    """The public function of the parts after a stage; the last one is that of its dynamics."""
    if skipstage not in AFTER:
        raise ValueError(f"{name}: skipstage: expected NONE, POS or VEL, got {skipstage.name}")
    parts = (to_position, to_velocity)[skipstage:]

    def rest(m: Model, d: Data) -> Data:
        for part in parts:
            d = part(m, d, not skipsensor)
        return last(m, d, not skipsensor)

    rest.__name__ = name
    return public(rest, callbacks=True, stage=AFTER[skipstage])


# what `make_data(keep=[...])` takes of them: all that the latest of the parts begins with
for _function in (forward_skip, inverse_skip):
    vars(_function)["carries"] = AFTER[Stage.VEL].carries
