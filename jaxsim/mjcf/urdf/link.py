"""Convert a URDF link to the contents of an MJCF body: its inertial and its geoms.

A visual becomes a geom of group 1 that neither collides nor has mass; a collision becomes a geom of
group 0. As in MuJoCo, the color of a visual also applies to the following geoms of its link, until
the next color.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from jaxsim.errors import Problems
from jaxsim.math.quaternion import quat_from_euler, quat_to_matrix
from jaxsim.mjcf.element import AttrValue, Element
from jaxsim.mjcf.schema import ROOT

_log = logging.getLogger(__name__)

_WORLD = ROOT.children["worldbody"]
BODY_ROW = _WORLD.children["body"]
_MESH = ROOT.children["asset"].children["mesh"]

_VISUAL: dict[str, AttrValue] = {"contype": 0, "conaffinity": 0, "group": 1, "density": 0.0}


@dataclass
class LinkContext:
    """State shared by the links of a model.

    Attributes:
      colors: colors of materials by name; the first definition counts.
      discard: visuals are discarded, and only their colors are used.
      meshes: mesh assets made so far.
      geom_names: names of geoms made so far.
    """

    problems: Problems
    colors: dict[str, np.ndarray]
    discard: bool
    meshes: list[Element] = field(default_factory=list)
    geom_names: set[str] = field(default_factory=set)
    _mesh_names: dict[tuple[str, bytes], str] = field(default_factory=dict)
    _mesh_stems: dict[str, int] = field(default_factory=dict)

    def mesh(self, source: Element) -> str:
        """Return the name of the mesh asset of a file at a scale; a new asset is created if
        necessary.

        Its name is that of the file without folder and extension; duplicates get a number.
        """
        name, scale = str(source.attrs["filename"]), source.attrs.get("scale", np.ones(3))
        key = name, np.asarray(scale).tobytes()
        if key in self._mesh_names:
            return self._mesh_names[key]
        stem = name.replace("\\", "/").rsplit("/", 1)[-1].rsplit(".", 1)[0]
        count = self._mesh_stems.get(stem, 0)
        self._mesh_stems[stem] = count + 1
        taken = {"", *self._mesh_names.values()}
        wanted = unique = f"{stem}{count or ''}"
        number = 0
        while unique in taken:
            number += 1
            unique = f"{wanted}_{number}"
        attrs: dict[str, AttrValue] = {
            "name": unique,
            "file": name,
            "scale": np.array(scale, float),
        }
        self.meshes.append(Element("mesh", attrs, [], source.place, _MESH))
        self._mesh_names[key] = unique
        return unique


def collect_colors(robot: Element) -> dict[str, np.ndarray]:
    """Return the colors of all named materials of the file; the first definition counts."""
    colors: dict[str, np.ndarray] = {}
    for element in robot.walk():
        if element.tag == "material" and "name" in element.attrs:
            color = element.find("color")
            if color is not None:
                colors.setdefault(str(element.attrs["name"]), _rgba(color))
    return colors


def contents(link: Element, shared: LinkContext) -> list[Element]:
    """Return the inertial and the geoms of a link, as children of a body."""
    found = [_inertial(e, shared.problems) for e in link.find_all("inertial")]
    color: np.ndarray | None = None
    for element in link.children:
        if element.tag == "visual":
            color = _color(element, shared, color)
        if element.tag == "collision" or (element.tag == "visual" and not shared.discard):
            found.append(_geom(element, shared, color))
    return [element for element in found if element is not None]


def pose(element: Element) -> dict[str, AttrValue]:
    """Return the `<origin>` of an element as attributes; `rpy` is `euler` in the sequence XYZ."""
    origin = element.find("origin")
    if origin is None:
        return {}
    names = {"xyz": "pos", "rpy": "euler"}
    return {names[key]: value for key, value in origin.attrs.items() if key in names}


def required_child(element: Element, tag: str, problems: Problems) -> Element | None:
    """Return a required child; report its absence."""
    found = element.find(tag)
    if found is None:
        problems.add(element.place, f"{element.label} needs the element <{tag}>")
    return found


def _color(visual: Element, shared: LinkContext, current: np.ndarray | None) -> np.ndarray | None:
    """Return the color of a visual: its own, else that of its material, else the current one."""
    material = visual.find("material")
    if material is None:
        return current
    color = material.find("color")
    if color is not None:
        return _rgba(color)
    return shared.colors.get(str(material.attrs.get("name", "")), current)


def _rgba(color: Element) -> np.ndarray:
    return np.array(color.attrs.get("rgba", np.ones(4)), float)


def _geom(element: Element, shared: LinkContext, color: np.ndarray | None) -> Element | None:
    """Return a visual or a collision as a geom; None, and a problem, without a shape."""
    geometry = required_child(element, "geometry", shared.problems)
    if geometry is None:
        return None
    shapes = {shape.tag: shape for shape in reversed(geometry.children)}
    tag = next((tag for tag in _SHAPES if tag in shapes), None)
    if tag is None:
        message = f"<geometry> of {element.label} has no shape; give one of {', '.join(_SHAPES)}"
        shared.problems.add(geometry.place, message)
        return None
    attrs = pose(element) | _SHAPES[tag](shapes[tag], shared)
    if element.tag == "visual":
        attrs |= _VISUAL
    if color is not None:
        attrs["rgba"] = color.copy()
    name = element.attrs.get("name")
    if isinstance(name, str) and name in shared.geom_names:
        message = "%s: the name of %s is taken, so its geom gets none; rename one of them"
        _log.warning(message, element.place, element.label)
    elif isinstance(name, str):
        attrs["name"] = name
        shared.geom_names.add(name)
    return Element("geom", attrs, [], element.place, BODY_ROW.children["geom"])


def _box(shape: Element, shared: LinkContext) -> dict[str, AttrValue]:
    return {"type": "box", "size": np.array(shape.attrs.get("size", np.ones(3)), float) / 2}


def _sphere(shape: Element, shared: LinkContext) -> dict[str, AttrValue]:
    return {"type": "sphere", "size": np.array([_read_number(shape, "radius")])}


def _round_shape(shape: Element, shared: LinkContext) -> dict[str, AttrValue]:
    size = np.array([_read_number(shape, "radius"), _read_number(shape, "length") / 2])
    return {"type": shape.tag, "size": size}


def _mesh(shape: Element, shared: LinkContext) -> dict[str, AttrValue]:
    if "filename" not in shape.attrs:
        return {"type": "mesh"}
    return {"type": "mesh", "mesh": shared.mesh(shape)}


_SHAPES: dict[str, Callable[[Element, LinkContext], dict[str, AttrValue]]] = {
    "box": _box,
    "cylinder": _round_shape,
    "sphere": _sphere,
    "capsule": _round_shape,
    "mesh": _mesh,
}


def _read_number(element: Element, attr: str) -> float:
    """Return a checked number; if it is missing, the model is rejected anyway."""
    return float(element.attrs.get(attr, 1.0))


def _inertial(element: Element, problems: Problems) -> Element | None:
    """Return the inertial with its matrix rotated to the body axes."""
    mass, inertia = (
        required_child(element, "mass", problems),
        required_child(element, "inertia", problems),
    )
    if mass is None or inertia is None:
        return None
    xx, yy, zz, xy, xz, yz = (_read_number(inertia, f"i{ij}") for ij in "xx yy zz xy xz yz".split())
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    placed = pose(element)
    if "euler" in placed:
        # Roll, pitch and yaw [rad] are about the fixed axes x, y and z, in this order.
        R = quat_to_matrix(quat_from_euler(np.asarray(placed["euler"]), "XYZ"))
        matrix = R @ matrix @ R.T
    attrs: dict[str, AttrValue] = {
        "pos": placed.get("pos", np.zeros(3)),
        "mass": _read_number(mass, "value"),
    }
    if np.any(matrix):
        attrs["fullinertia"] = matrix[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    return Element("inertial", attrs, [], element.place, BODY_ROW.children["inertial"])
