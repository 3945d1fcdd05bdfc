"""What of the options of a model decides the form of the collision stage."""

from typing import NamedTuple

from jaxsim.model.model import Model


class Options(NamedTuple):
    """What of `m.opt` decides the form of the collision stage; names as there."""

    disableflags: int
    sdf_initpoints: int
    sdf_iterations: int
    ccd_iterations: int

    @classmethod
    def of(cls, m: Model) -> "Options":
        """The options of a model."""
        return cls(*(int(getattr(m.opt, name)) for name in cls._fields))
