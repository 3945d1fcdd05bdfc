"""The lights and the skybox of a model, on a viser server.

MuJoCo's lights have no unit: a diffuse color of one, along the normal, makes a white surface white.
The page's renderer divides by pi. Attenuation is approximated by its leading power of the distance.
Ambient light, and a weak environment map, represent the headlight.
"""

from typing import Any

import numpy as np

from jaxsim.enums import LightType
from jaxsim.math.quaternion import quat_from_matrix
from jaxsim.model.describe import name_of
from jaxsim.model.model import Model
from jaxsim.optional import require
from jaxsim.view.browser.draw.poses import Poses
from jaxsim.view.browser.draw.shape import TriangleShape
from jaxsim.view.browser.draw.surface import image_of
from jaxsim.view.picture.sample import CUBE_AXES

_SKYBOX_TYPE = 2  # mjTEXTURE_SKYBOX
_AMBIENT_STRENGTH = 0.2  # strength of the environment in addition to the lights of a model
# Ambient light for the headlight: half of MuJoCo's on surfaces that face it.
_HEADLIGHT_STRENGTH = 0.3
_UNLIT_EXTENSION = "KHR_materials_unlit"
_SKY_EXTENTS = 60.0  # half side of the skybox, in extents of the model
_LAMP_EXTENTS = 5.0  # distance of directional lights, in extents of the model


class Lights:
    """The lights of the first world.

    Attributes:
      ids: ids of the lights that are drawn.
      visible: the lights of the model are on; else viser's default lights.
    """

    def __init__(self, server: Any, m: Model):
        self._server, self._m = server, m
        self.ids = np.flatnonzero(m.light_active & (m.light_type != LightType.IMAGE))
        self._handles: dict[int, Any] = {}
        self._ambient: Any = None
        self.visible = False
        self.shine(bool(len(self.ids)))

    def shine(self, visible: bool) -> None:
        """Switch the lights on or off; later poses move them."""
        if visible == self.visible:
            return
        self.visible = visible
        scene = self._server.scene
        scene.configure_default_lights(enabled=not visible)
        scene.configure_environment_map(environment_intensity=_AMBIENT_STRENGTH if visible else 1.0)
        if visible:
            self._handles = {int(i): self._lamp(int(i)) for i in self.ids}
            color = _HEADLIGHT_STRENGTH + np.asarray(self._m.light_ambient)[self.ids].sum(axis=0)
            self._ambient = scene.add_light_ambient(
                "/lights/ambient", color=_bytes(color), intensity=np.pi * _light_strength(color)
            )
            return
        for handle in (*self._handles.values(), self._ambient):
            handle.remove()
        self._handles = {}

    def show(self, poses: Poses) -> None:
        """Move the lights to new poses."""
        for i, handle in self._handles.items():
            pos, way = poses.light_xpos[0, i], poses.light_xdir[0, i]
            if not np.isfinite([pos, way]).all():
                continue
            # A directional light of viser shines from its position towards the origin.
            if self._m.light_type[i] == LightType.DIRECTIONAL:
                handle.position = -_LAMP_EXTENTS * float(self._m.stat.extent) * way
            else:
                handle.position, handle.wxyz = pos, _rotation_towards(way)

    def _lamp(self, i: int) -> Any:
        """Add one light to the scene by its type, and return its handle."""
        m, scene = self._m, self._server.scene
        name = name_of(m, "light", i)
        path, color = f"/lights/{name.replace('/', '|')}", np.asarray(m.light_diffuse)[i]
        strength, decay = _attenuation_power(np.asarray(m.light_attenuation)[i])
        how = {
            "color": _bytes(color),
            "intensity": float(np.pi * _light_strength(color) * strength),
            "cast_shadow": bool(m.light_castshadow[i]),
        }
        if m.light_type[i] == LightType.DIRECTIONAL:
            return scene.add_light_directional(path, **how)
        if m.light_type[i] == LightType.POINT or np.asarray(m.light_cutoff)[i] > 90:
            return scene.add_light_point(path, decay=decay, **how)
        angle = float(np.deg2rad(np.asarray(m.light_cutoff)[i]))
        return scene.add_light_spot(path, angle=angle, penumbra=1.0, decay=decay, **how)


def add_sky(server: Any, m: Model) -> Any:
    """Draw the skybox of a model, and return its handle; None if it has none."""
    skies = np.flatnonzero((m.tex_type == _SKYBOX_TYPE) & (m.tex_adr >= 0))
    if not len(skies):
        return None
    image = image_of(m, int(skies[0]))[..., :3]
    shape, texcoord = _box(image.shape[0] == image.shape[1])
    trimesh, visual = require("trimesh", "view"), require("trimesh.visual", "view")
    material = require("trimesh.visual.material", "view").PBRMaterial(
        baseColorTexture=require("PIL.Image", "view").fromarray(image)
    )
    uv = np.stack([texcoord[:, 0], 1 - texcoord[:, 1]], axis=1)
    looks = visual.TextureVisuals(uv=uv, material=material)
    mesh = trimesh.Trimesh(
        _SKY_EXTENTS * float(m.stat.extent) * shape.vertex, shape.face, process=False, visual=looks
    )
    data = bytes(mesh.export(file_type="glb", tree_postprocessor=_make_unlit))
    return server.scene.add_glb("/sky", data, cast_shadow=False, receive_shadow=False)


def _make_unlit(tree: dict[str, Any]) -> None:
    """Make the materials of a glTF file unlit, so that the skybox looks the same in any light.

    The extension KHR_materials_unlit, https://github.com/KhronosGroup/glTF.
    """
    tree["extensionsUsed"] = [*tree.get("extensionsUsed", ()), _UNLIT_EXTENSION]
    for material in tree["materials"]:
        material["extensions"] = {_UNLIT_EXTENSION: {}}


def _box(single_image: bool) -> tuple[TriangleShape, np.ndarray]:
    """Return a box seen from inside, and the texture coordinates of its corners in a strip of six
    images.

    Args:
      single_image: all sides have the same image.
    """
    vertex, texcoord, face = [], [], []
    for side, (right, down) in enumerate(CUBE_AXES):
        ahead = np.zeros(3)
        ahead[side // 2] = 1 - 2 * (side % 2)
        u, v = (np.sign(k) * np.eye(3)[abs(k) - 1] for k in (right, down))
        for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
            # Slightly inside of the image, so that the next one of the strip is not sampled.
            across, along = (0.5 + 0.498 * k for k in (x, y))
            vertex.append(ahead + x * u + y * v)
            texcoord.append((across, along if single_image else (side + along) / 6))
        face += [np.array(k) + 4 * side for k in ((0, 1, 2), (0, 2, 3))]
    # Rotate y up, as in the cube, to z up, as in the world; orient all faces inward.
    turned = np.array(vertex)[:, [0, 2, 1]] * [1, -1, 1]
    corner = turned[np.array(face)]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    inward = (normal * corner.mean(axis=1)).sum(axis=1) < 0
    turned_face = np.where(inward[:, None], face, np.array(face)[:, ::-1])
    return TriangleShape(turned, -turned, turned_face), np.array(texcoord)


def _attenuation_power(attenuation: np.ndarray) -> tuple[float, float]:
    """Return the strength at one meter and the power of the distance of 1 / (c0 + c1 r + c2
    r^2)."""
    power = int(np.flatnonzero(attenuation).max(initial=0))
    return 1 / max(float(attenuation[power]), 1e-6) if attenuation.any() else 1.0, float(power)


def _rotation_towards(way: np.ndarray) -> np.ndarray:
    """Return the rotation from -z to a direction, (4,)."""
    z = -way / max(float(np.linalg.norm(way)), 1e-9)
    x = np.cross([0.0, 1.0, 0.0] if abs(z[0]) > 0.5 else [1.0, 0.0, 0.0], z)
    x = x / np.linalg.norm(x)
    return quat_from_matrix(np.stack([x, np.cross(z, x), z], axis=1))


def _light_strength(color: np.ndarray) -> float:
    return float(max(color.max(), 0.0))


def _bytes(color: np.ndarray) -> tuple[int, int, int]:
    r, g, b = (int(c) for c in np.clip(255 * color / max(_light_strength(color), 1e-9), 0, 255))
    return r, g, b
