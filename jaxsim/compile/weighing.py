"""The passes that find what bodies weigh, from their shapes: a part of the list in `passes.py`.

They also run by themselves, on a copy of the model, where the tree is to be simplified and the
weight of its bodies kept (expand/weigh.py).
"""

from __future__ import annotations

from jaxsim.compile.asset.assets import assets
from jaxsim.compile.asset.hfields import hfields
from jaxsim.compile.asset.mesh.meshes import meshes
from jaxsim.compile.body.bodies import bodies
from jaxsim.compile.body.geoms import geoms
from jaxsim.compile.step import Step
from jaxsim.compile.whole.plugins import plugins

WEIGHING: tuple[Step, ...] = (plugins, assets, bodies, hfields, meshes, geoms)
