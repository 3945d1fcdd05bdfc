"""What of speculative contacts is not simulated."""

import numpy as np

from jaxsim.enums import EnableBit
from jaxsim.model.model import Model
from jaxsim.physics.refusal import Refusal
from jaxsim.physics.sleep.trees import sleeps


def beyond_following(m: Model) -> list[Refusal]:
    """With the flag speculative: sleep, contacts that are felt from afar, and those of flexes."""
    if not m.opt.enableflags & EnableBit.SPECULATIVE:
        return []
    clashes = {
        "flag sleep": sleeps(m),
        "smooth contacts": m.smooth is not None,
        "flexes that may touch": bool(np.any(m.flex_touches)),
    }
    return [
        Refusal(f"option flag speculative with {what} is not supported; remove one")
        for what, there in clashes.items()
        if there
    ]
