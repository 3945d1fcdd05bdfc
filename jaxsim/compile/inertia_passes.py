"""The passes that determine the inertia of bodies, from their shapes: a part of `passes.py`.

They also run separately, on a copy of the model, when the tree is simplified and the inertia of its
bodies must be preserved (expand/original_inertia.py).
"""

from __future__ import annotations

from jaxsim.compile.asset.assets import assets
from jaxsim.compile.asset.hfields import hfields
from jaxsim.compile.asset.mesh.meshes import meshes
from jaxsim.compile.body.bodies import bodies
from jaxsim.compile.body.geoms import geoms
from jaxsim.compile.options.plugins import plugin_fields
from jaxsim.compile.step import Pass

INERTIA_PASSES: tuple[Pass, ...] = (plugin_fields, assets, bodies, hfields, meshes, geoms)
