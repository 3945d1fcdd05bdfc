"""The inertia of a single body, before it is fused with others or loses geoms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.compile.geometry.pose import FramePose
from jaxsim.spec import Body, SpecElement


@dataclass(eq=False)
class KnownInertia:
    """Mass and inertia of one body.

    Attributes:
      mass: [kg].
      moments: about the principal axes [kg m^2], (3,).
      frame: the principal axes at the center of mass, in the body.
      placed: the body in its parent.
      explicit: given by an `<inertial>`, not by the geoms.
      adjusted: changed by the bounds of `<compiler>`.
    """

    mass: float
    moments: np.ndarray
    frame: FramePose
    placed: FramePose
    explicit: bool
    adjusted: bool

    def write(self, body: Body) -> None:
        """Write this inertia as the `<inertial>` of a body."""
        if body.inertial is not None:
            body.inertial.remove()
        element, row = body.element, body.element.row.children["inertial"]
        attrs = {
            "pos": self.frame.pos,
            "quat": self.frame.quat,
            "mass": self.mass,
            "diaginertia": self.moments,
        }
        body.inertial = element.adopt(
            SpecElement("inertial", attrs, place=element.place, row=row), 0
        )
        self.explicit = True
