"""Extension points: plugins, shapes, colliders, mesh decoders, and sources of files.

An extension is registered, for all models that are loaded afterwards; docs/extend.md has examples.
"""

from jaxsim.assets.read.decoder import register_decoder as register_decoder
from jaxsim.assets.read.decoder import unregister_decoder as unregister_decoder
from jaxsim.assets.source.filesystem import register_filesystems as register_filesystems
from jaxsim.assets.source.limits import limits as limits
from jaxsim.assets.source.provider import register_provider as register_provider
from jaxsim.assets.source.provider import unregister_provider as unregister_provider
from jaxsim.extend.plugin import Attached as Attached
from jaxsim.extend.plugin import Plugin as Plugin
from jaxsim.extend.registry import load_plugins as load_plugins
from jaxsim.extend.registry import register_collider as register_collider
from jaxsim.extend.registry import register_plugin as register_plugin
from jaxsim.extend.registry import register_shape as register_shape
from jaxsim.extend.registry import unregister_collider as unregister_collider
from jaxsim.extend.registry import unregister_plugin as unregister_plugin

__all__ = [
    "Attached",
    "Plugin",
    "limits",
    "load_plugins",
    "register_collider",
    "register_decoder",
    "register_filesystems",
    "register_plugin",
    "register_provider",
    "register_shape",
    "unregister_collider",
    "unregister_decoder",
    "unregister_plugin",
    "unregister_provider",
]
