"""What of speculative contacts is not simulated."""

from jaxsim.enums import EnableBit
from jaxsim.model.model import Model
from jaxsim.physics.refusal import Refusal
from jaxsim.physics.sleep.trees import sleeps


def beyond_following(m: Model) -> list[Refusal]:
    """With the flag speculative: sleep, and contacts that are felt from afar."""
    if not m.opt.enableflags & EnableBit.SPECULATIVE:
        return []
    found = []
    if sleeps(m):
        found.append(
            Refusal("option flag speculative with flag sleep is not supported; remove one")
        )
    if m.smooth is not None:
        found.append(
            Refusal("option flag speculative with smooth contacts is not supported; remove one")
        )
    return found
