"""What decides the form of the collision stage."""

from typing import NamedTuple

import numpy as np

from jaxsim.model.model import Model


class Options(NamedTuple):
    """What decides the form of the collision stage: of `m.opt`, under the names there, and
    `prisms`, the most prisms of a height field that may be under one geom."""

    disableflags: int
    sdf_initpoints: int
    sdf_iterations: int
    ccd_iterations: int
    prisms: int

    @classmethod
    def of(cls, m: Model) -> "Options":
        """The options of a model."""
        prisms = int(np.max(m.structure.geom_prismnum, initial=0))
        opt = {name: int(getattr(m.opt, name)) for name in cls._fields if name != "prisms"}
        return cls(**opt, prisms=prisms)
