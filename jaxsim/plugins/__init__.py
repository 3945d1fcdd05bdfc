"""The built-in plugins, written like those of users: MuJoCo 4.0's in its order, then older ones."""

from jaxsim.assets.sdf.shapes import SDF_SHAPES
from jaxsim.extend.plugin import ShapePlugin
from jaxsim.extend.registry import engine_plugins
from jaxsim.plugins.cable import Cable
from jaxsim.plugins.pid import Pid
from jaxsim.plugins.touch_grid import TouchGrid

PLUGINS = (
    Pid(),
    TouchGrid(),
    *(ShapePlugin(name, shape) for name, shape in SDF_SHAPES.items()),
    Cable(),
)

engine_plugins(PLUGINS)
