"""Replacement of `mujoco.mjx` by `jaxsim.mjx`, for programs with unmodified imports."""

import importlib
import importlib.util
import sys
from contextlib import redirect_stdout

from jaxsim.extra import needed
from jaxsim.mjx.inner.absent import MODULES, PACKAGE, Finder

THEIRS = "mujoco.mjx"


def take_place() -> None:
    """Make `mujoco.mjx` and its inner modules those of jaxsim, for all later imports.

    The records of Brax subclass those of MJX, so Brax, if installed, is imported before, with MJX;
    its environments with the backend "mjx" then run on jaxsim.
    """
    mujoco = needed("mujoco", "test")
    taken = sys.modules.get(THEIRS) is sys.modules[PACKAGE]
    if not taken and importlib.util.find_spec("brax") and importlib.util.find_spec(THEIRS):
        with redirect_stdout(sys.stderr):  # MJX prints which packages it lacks
            importlib.import_module("brax.envs")
        importlib.import_module("jaxsim.envs.brax_pipeline").take_mjx_backend()
    for name in [n for n in sys.modules if n == THEIRS or n.startswith(f"{THEIRS}.")]:
        del sys.modules[name]
    for inner in ("", "._src", *(f"._src.{name}" for name in MODULES)):
        sys.modules[THEIRS + inner] = sys.modules[PACKAGE + inner]
    vars(mujoco)["mjx"] = sys.modules[PACKAGE]
    if not any(isinstance(f, Finder) and f.package == THEIRS for f in sys.meta_path):
        sys.meta_path.insert(0, Finder(THEIRS))
