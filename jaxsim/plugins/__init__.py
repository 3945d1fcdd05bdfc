"""The engine's own plugins, written as a user writes them: those of MuJoCo 4.0 in its order, then
those that it had before."""

from jaxsim.assets.sdf.shapes import SHAPES
from jaxsim.extend.plugin import ShapePlugin
from jaxsim.extend.registry import engine_plugins
from jaxsim.plugins.cable import Cable
from jaxsim.plugins.pid import Pid
from jaxsim.plugins.touch_grid import TouchGrid

PLUGINS = (
    Pid(),
    TouchGrid(),
    *(ShapePlugin(name, shape) for name, shape in SHAPES.items()),
    Cable(),
)

engine_plugins(PLUGINS)
