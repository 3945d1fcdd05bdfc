"""Options that determine the traced program of the collision stage."""

from typing import NamedTuple

import numpy as np

from jaxsim.model.model import Model


class Options(NamedTuple):
    """Static options of the collision stage.

    Attributes:
      pair_flags: flags that select candidate pairs, see `Model.pair_flags`.
      enableflags, sdf_initpoints, sdf_iterations, ccd_iterations: those of `m.opt`.
      prisms: most prisms of a height field that may be under one geom.
      smooth: contacts are smoothed (`m.smooth`).
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
        """Return the options of a model."""
        prisms = int(np.max(m.structure.geom_prismnum, initial=0))
        opt = {name: int(getattr(m.opt, name)) for name in cls._fields[1:-2]}
        return cls(m.pair_flags, **opt, prisms=prisms, smooth=m.smooth is not None)
