"""The compiler: from an editable model to the arrays of the physics, in numpy float64."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath

from jaxsim.compile.context import Compilation as Compilation
from jaxsim.compile.context import Compiled as Compiled
from jaxsim.compile.passes import PASSES as PASSES
from jaxsim.mjcf import read_file, read_string
from jaxsim.spec import Spec


def compile_spec(spec: Spec) -> Compiled:
    """Compiles a model; the spec itself is not changed.

    Raises:
      ModelError: the model cannot be compiled; it lists every fault found by the pass that failed.
    """
    c = Compilation(spec=spec.copy())
    for step in PASSES:
        step(c)
        # A later pass may rely on what an earlier one has checked.
        c.problems.raise_if_any()
    return Compiled.of(c)


def compile_file(path: str | PathLike[str], assets: Mapping[str, bytes] | None = None) -> Compiled:
    """Compiles an MJCF file.

    Args:
      path: the file, or its name in `assets`.
      assets: files in memory, which are looked up before the disk.
    """
    root = read_file(path, assets)
    return compile_spec(Spec.from_element(root, path=fspath(path), files=assets))


def compile_string(text: str, assets: Mapping[str, bytes] | None = None) -> Compiled:
    """Compiles an MJCF text; the files it names are in `assets`, or in the current folder."""
    return compile_spec(Spec.from_element(read_string(text, assets=assets), files=assets))
