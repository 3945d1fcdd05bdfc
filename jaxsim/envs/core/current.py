"""Results of the moment of a state: `step` leaves those of the moment before it."""

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.forward import step1
from jaxsim.transforms.layout import batched

_run_step1 = batched(step1)


def refresh_world(m: Model, d: Data) -> Data:
    """A world with poses, velocities and their sensors of its state, as after `mj_step1`.

    Forces, accelerations and their sensors stay as they are. Of what `d` carries; under `jit` only
    what is read afterwards is computed.
    """
    new: Data = _run_step1(m, d)
    return new
