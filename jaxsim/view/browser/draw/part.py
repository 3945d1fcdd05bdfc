"""The drawable parts of a model: every visible geom and site, with its body."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxsim.enums import GeomType
from jaxsim.math.quaternion import quat_multiply, quat_rotate
from jaxsim.model.describe import name_of
from jaxsim.model.model import Model
from jaxsim.view.browser.draw.shape import TriangleShape, hull_of, shape_of
from jaxsim.view.browser.draw.surface import Appearance, appearance_of, texture_mesh

_PART_KINDS = ("geom", "site")
NGROUP = 6  # MuJoCo's mjNGROUP
SURFACES, HULLS, WIREFRAME = GEOMETRY = ("surfaces", "convex hulls", "wireframe")


@dataclass(frozen=True, eq=False)
class Part:
    """A geom or site.

    Attributes:
      m: the model.
      kind: "geom" or "site".
      id: its id.
      name: its name, or its kind and id.
      body: id of its body.
      group: its group, 0 to 5.
      type: `GeomType`.
      size: size parameters, (3,).
      pos, quat: its pose in the frame of the body, (3,) [m] and (4,).
      look: color, material, texture.
      shape: triangles in its own frame.
      data: id of its mesh or height field, or -1.
    """

    m: Model
    kind: str
    id: int
    name: str
    body: int
    group: int
    type: GeomType
    size: np.ndarray
    pos: np.ndarray
    quat: np.ndarray
    look: Appearance
    shape: TriangleShape
    data: int
    _files: dict[tuple[float, bool, bool], bytes] = field(default_factory=dict, repr=False)

    @property
    def endless(self) -> bool:
        """Return whether it is a plane that is infinite in some direction."""
        return self.type == GeomType.PLANE and bool(np.any(self.size[:2] <= 0))

    def hull(self) -> TriangleShape | None:
        """Return the convex hull of a mesh; None for other shapes and meshes without a hull."""
        is_mesh = self.type in (GeomType.MESH, GeomType.SDF) and self.data >= 0
        return hull_of(self.m, self.data) if is_mesh else None

    def glb(self, opacity: float = 1.0, solid: bool = False, hull: bool = False) -> bytes:
        """Return the part, or its convex hull, in its own frame, as a binary glTF file."""
        if (opacity, solid, hull) not in self._files:
            shape, look = self.shape, self.look
            if hull and (outside := self.hull()) is not None:
                shape, look = outside, look._replace(texture=-1)
            mesh = texture_mesh(self.m, shape, self.type, self.size, look, opacity, solid)
            file = bytes(mesh.export(file_type="glb", include_normals=True))
            self._files[opacity, solid, hull] = file
        return self._files[opacity, solid, hull]


# Called with a viser handle, the part that it draws, and the index of its first world.
OnPart = Callable[[Any, Part, int], None]


def parts_of(m: Model) -> list[Part]:
    """Return the parts of a model, geoms first; invisible ones and those without a surface are left
    out."""
    return [part for kind in _PART_KINDS for part in _parts_of_kind(m, kind)]


def _parts_of_kind(m: Model, kind: str) -> list[Part]:
    columns = ("bodyid", "group", "type", "size", "pos", "quat", "rgba", "matid", "dataid")
    table = [np.asarray(getattr(m, f"{kind}_{column}")) for column in columns]
    found = []
    for i, row in enumerate(zip(*table, strict=True)):
        body, group, shape_type, size, pos, quat, rgba, material, data = row
        look = appearance_of(m, rgba, int(material))
        shape = shape_of(m, int(shape_type), size.astype(float), int(data))
        if look.rgba[3] <= 0 or shape is None:
            continue
        place = int(body), int(np.clip(group, 0, NGROUP - 1)), GeomType(int(shape_type))
        if kind == "site" and shape_type == GeomType.MESH:  # geoms of meshes already have this pose
            pos = pos + quat_rotate(quat, np.asarray(m.mesh_pos[data]))
            quat = quat_multiply(quat, np.asarray(m.mesh_quat[data]))
        name, mesh = name_of(m, kind, i), int(data)
        found.append(Part(m, kind, i, name, *place, size, pos, quat, look, shape, mesh))
    return found
