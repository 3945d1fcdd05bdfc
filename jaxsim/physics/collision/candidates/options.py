"""What decides the form of the collision stage."""

from typing import NamedTuple

import numpy as np

from jaxsim.model.model import Model


class Options(NamedTuple):
    """What decides the form of the collision stage.

    `pair_flags`, which geoms may touch; of `m.opt`, under the names there; `prisms`, the most
    prisms of a height field that may be under one geom; and whether contacts are `smooth`.
    """

    pair_flags: int
    enableflags: int
    sdf_initpoints: int
    sdf_iterations: int
    ccd_iterations: int
    prisms: int
    smooth: bool

    @classmethod
    def of(cls, m: Model) -> "Options":
        """The options of a model."""
        prisms = int(np.max(m.structure.geom_prismnum, initial=0))
        opt = {name: int(getattr(m.opt, name)) for name in cls._fields[1:-2]}
        return cls(m.pair_flags, **opt, prisms=prisms, smooth=m.smooth is not None)
