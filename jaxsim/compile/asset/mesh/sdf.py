"""The surface of a mesh that an `sdf` plugin generates from the settings of its instance.

It replaces lists of vertices, normals and faces and built-in shapes, as in MuJoCo; texture
coordinates are kept. Such a mesh keeps the frame of its plugin.
"""

from __future__ import annotations

import numpy as np

from jaxsim.assets.sdf.shapes import shape_settings
from jaxsim.assets.sdf.surface import sdf_surface
from jaxsim.assets.surface import Surface
from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.orientation import mjcf_numbers
from jaxsim.compile.options.plugins import plugin_child
from jaxsim.errors import AssetError
from jaxsim.spec import SpecElement


def is_made_by_plugin(element: SpecElement) -> bool:
    """Return whether a plugin generates the mesh."""
    return plugin_child(element) is not None


def plugin_surface(c: Compilation, element: SpecElement) -> Surface | None:
    """Return the surface, or None if a fault of the plugin has been reported.

    Raises:
      AssetError: the settings give no surface, or the mesh has attributes that it cannot have.
    """
    instance = c.instances.of(plugin_child(element))
    shape = instance.plugin.shape if instance is not None else None
    if instance is None or shape is None or instance.fault:
        return None
    if element.get("file") is not None:
        raise AssetError("both plugin and file make its surface; remove one of them")
    scale = element.get("scale")
    if np.any(scale != np.ones(3)):
        raise AssetError(
            f"scale='{mjcf_numbers(scale)}' is not for meshes of plugins, whose signed distance it "
            "would"
            " not change; set the sizes of the plugin instead"
        )
    return sdf_surface(shape, shape_settings(shape, instance.config))
