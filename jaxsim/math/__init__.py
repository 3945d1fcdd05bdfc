"""Geometry by components: vectors, rotations, spatial vectors (see components.py)."""

from jaxsim.math.components import Components as Components
from jaxsim.math.components import concat as concat
from jaxsim.math.components import select_where as select_where
from jaxsim.math.guard import safe_arccos as safe_arccos
from jaxsim.math.guard import safe_atan2 as safe_atan2
from jaxsim.math.guard import safe_divide as safe_divide
from jaxsim.math.guard import safe_sqrt as safe_sqrt
from jaxsim.math.rotation import Quat as Quat
from jaxsim.math.rotation import Rot as Rot
from jaxsim.math.spatial import Inertia as Inertia
from jaxsim.math.spatial import Spatial as Spatial
from jaxsim.math.vector import Vec as Vec
