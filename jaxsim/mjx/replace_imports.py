"""Replacement of `mujoco.mjx` by `jaxsim.mjx`, for programs with unmodified imports."""

import importlib
import importlib.util
import sys
from contextlib import redirect_stdout

from jaxsim.mjx.inner.missing_names import MJX_PACKAGE, MODULES, Finder
from jaxsim.optional import require

MJX_MODULE = "mujoco.mjx"


def replace_mjx_modules() -> None:
    """Make `mujoco.mjx` and its inner modules those of jaxsim, for all later imports.

    The records of Brax subclass those of MJX, so Brax, if installed, is imported before, with MJX;
    its environments with the backend "mjx" then run on jaxsim.
    """
    mujoco = require("mujoco", "mujoco")
    # Import Brax with MJX, and let its environments use jaxsim.
    taken = sys.modules.get(MJX_MODULE) is sys.modules[MJX_PACKAGE]
    if not taken and importlib.util.find_spec("brax") and importlib.util.find_spec(MJX_MODULE):
        with redirect_stdout(sys.stderr):  # MJX prints which packages it lacks
            importlib.import_module("brax.envs")
        importlib.import_module("jaxsim.envs.brax_pipeline").take_mjx_backend()
    # Forget MJX, and register the modules of jaxsim under its names.
    for name in [n for n in sys.modules if n == MJX_MODULE or n.startswith(f"{MJX_MODULE}.")]:
        del sys.modules[name]
    for inner in ("", "._src", *(f"._src.{name}" for name in MODULES)):
        sys.modules[MJX_MODULE + inner] = sys.modules[MJX_PACKAGE + inner]
    vars(mujoco)["mjx"] = sys.modules[MJX_PACKAGE]
    # Names without a counterpart raise errors that give their replacement.
    if not any(isinstance(f, Finder) and f.package == MJX_MODULE for f in sys.meta_path):
        sys.meta_path.insert(0, Finder(MJX_MODULE))
