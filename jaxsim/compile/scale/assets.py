"""Instances of meshes and height fields that geoms and sites use at several scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.scale.dimension import Scale
from jaxsim.compile.scale.scales import UNIT_SCALE, Scales
from jaxsim.compile.scale.stretch import along_axes, axes_of
from jaxsim.spec import SpecElement

# The attribute of each kind of asset that gives its size.
_SIZE = {"mesh": "scale", "hfield": "size"}


@dataclass(eq=False)
class _Instance:
    """An asset at one scale: the linear map of its points, in its own axes, (3, 3)."""

    asset: SpecElement
    linear: np.ndarray


def scale_assets(c: Compilation, scales: Scales) -> None:
    """Create an instance of each asset for each scale at which geoms and sites use it.

    The first keeps the name `a`; the others are called `a@1`, `a@2` and so on. A mesh that is
    stretched along axes other than its own has no equivalent `scale`; `c.stretched` has the map of
    its element.
    """
    stretched: dict[SpecElement, np.ndarray] = {}
    bodies = c.spec.bodies
    users = [e for group in ("geoms", "sites") for body in bodies for e in getattr(body, group)]
    for kind in _SIZE:
        assets = {e.asset_name: e for e in c.spec.section("asset") if e.tag == kind}
        maps: dict[str, list[np.ndarray]] = {name: [] for name in assets if name}
        instances: list[_Instance] = []
        for user in users:
            name = user.get(kind)
            if name not in maps:
                continue
            linear = _map(c, user, scales.inside.get(user, UNIT_SCALE))
            same = (i for i, other in enumerate(maps[name]) if np.array_equal(linear, other))
            number = next(same, None)
            if number is None:
                number = len(maps[name])
                maps[name].append(linear)
                instances.append(_Instance(assets[name], linear))
            if number:
                user.attrs[kind] = f"{name}@{number}"
        stretched |= _make(instances)
    c.stretched = stretched


def _map(c: Compilation, user: SpecElement, scale: Scale) -> np.ndarray:
    """Return the map of positions in the axes of a geom or site, (3, 3)."""
    if not scale.map:
        return scale.linear
    R = axes_of(c, user)
    linear: np.ndarray = R.T @ scale.linear @ R
    return linear


def _make(instances: list[_Instance]) -> dict[SpecElement, np.ndarray]:
    """Set the scale of assets, in order of use; the second and later instances of an asset are
    copies.

    Returns:
      The maps of those whose factors no attribute can express.
    """
    stretched: dict[SpecElement, np.ndarray] = {}
    written = {x.asset: np.asarray(x.asset.get(_SIZE[x.asset.tag]), float) for x in instances}
    made = dict.fromkeys(written, 0)
    for instance in instances:
        asset, linear = instance.asset, instance.linear
        target = asset if made[asset] == 0 else asset.holder.adopt(asset.copy())
        if made[asset]:
            target.attrs["name"] = f"{asset.asset_name}@{made[asset]}"
        factors = along_axes(linear, np.eye(3))
        if asset.tag == "mesh" and np.any(linear != np.diag(np.diag(linear))):
            stretched[target] = linear
        elif made[asset] or np.any(factors != 1):
            # the last size of a height field is the depth of its base
            sizes = factors if asset.tag == "mesh" else factors[[0, 1, 2, 2]]
            target.attrs[_SIZE[asset.tag]] = written[asset] * sizes
        made[asset] += 1
    return stretched


# Attributes that give a mesh its points and their placement; they are removed when the points are
# written.
_SOURCE = (
    *("file", "content_type", "builtin", "params", "normal", "face", "texcoord"),
    *("scale", "refpos", "refquat"),
)


def write_stretched(c: Compilation) -> None:
    """Write the points of meshes that are stretched along arbitrary axes as a list.

    They are in single precision, as all written points of a mesh. Normals are recomputed from the
    faces, and texture coordinates are kept if each point has its own.
    """
    number = {element: i for i, element in enumerate(c.elements["mesh"])}
    for element in c.stretched:
        mesh = c.meshes[number[element]]
        source = mesh.surface.source
        name = element.asset_name
        for attr in _SOURCE:
            element.unset(attr)
        if name:
            element.attrs["name"] = name
        element.attrs["vertex"] = mesh.placement.point(mesh.surface.vertex).ravel()
        if len(source.face):
            element.attrs["face"] = mesh.placement.orient_faces(mesh.surface.face).ravel()
        if source.texcoord is not None and source.face_texcoord is None:
            element.attrs["texcoord"] = np.ravel(source.texcoord)
