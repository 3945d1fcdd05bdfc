"""Compile materials: `mat_*`, the appearance of surfaces, without effect on the physics."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.step import declare_pass
from jaxsim.spec import SpecElement

# Roles of textures, in the order of MuJoCo's mjtTextureRole.
_TEXTURE_ROLES = (
    "user",
    "rgb",
    "occlusion",
    "roughness",
    "metallic",
    "normal",
    "opacity",
    "emissive",
    "rgba",
    "orm",
)

_SCALARS = ("emission", "specular", "shininess", "reflectance", "metallic", "roughness")


@declare_pass(needs="assets", gives="mat")
def materials(c: Compilation) -> None:
    """Add all fields of materials; their numbers have single precision, as in MuJoCo."""
    elements = c.elements["material"]
    for attr in _SCALARS:
        c.fields[f"mat_{attr}"] = np.array([e.get(attr) for e in elements], np.float32)
    c.fields.update(
        mat_texid=np.array([_textures(c, e) for e in elements], np.int32).reshape(
            -1, len(_TEXTURE_ROLES)
        ),
        mat_texuniform=np.array([e.get("texuniform") == "true" for e in elements], bool),
        mat_texrepeat=np.array([e.get("texrepeat") for e in elements], np.float32).reshape(-1, 2),
        mat_rgba=np.array([e.get("rgba") for e in elements], np.float32).reshape(-1, 4),
    )


def _textures(c: Compilation, element: SpecElement) -> list[int]:
    """Return the texture in each role, -1 for none; `texture` alone gives the color."""
    found = [-1] * len(_TEXTURE_ROLES)
    for role, (source, attr) in roles(element).items():
        found[_TEXTURE_ROLES.index(role)] = c.resolve_attribute("texture", source, attr)
    return found


def roles(element: SpecElement) -> dict[str, tuple[SpecElement, str]]:
    """Return for each role the element and the attribute that name its texture, including those of
    classes."""
    found = {}
    for layer in element.layers():
        if layer.own("texture"):
            found["rgb"] = layer, "texture"
        found |= {str(child.get("role")): (child, "texture") for child in layer.children}
    return found
