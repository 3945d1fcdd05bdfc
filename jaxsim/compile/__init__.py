"""Compile an editable model to the arrays of the physics, in numpy float64."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike

from jaxsim.compile.context import Compilation as Compilation
from jaxsim.compile.context import Compiled as Compiled
from jaxsim.compile.passes import PASSES as PASSES
from jaxsim.compile.run import run_passes
from jaxsim.compile.write.write_back import flatten as flatten
from jaxsim.compile.write.write_back import spec_from_tables as spec_from_tables
from jaxsim.mjcf import find_model, read_string
from jaxsim.spec import Spec


def compile_spec(spec: Spec) -> Compiled:
    """Compile a model; the spec itself is not changed.

    Raises:
      ModelError: the model cannot be compiled; it lists every fault found by the pass that failed.
    """
    return Compiled.of(run_passes(spec))


def compile_file(
    path: str | PathLike[str],
    assets: Mapping[str, bytes] | None = None,
    data: bytes | None = None,
) -> Compiled:
    """Compile an MJCF file.

    Args:
      path: the file or archive, its name in `assets`, or a URI that has a provider.
      assets: files in memory, searched before the disk.
      data: contents of the file itself, if they have been read already.
    """
    return compile_spec(Spec.from_source(find_model(path, assets, data)))


def compile_string(text: str, assets: Mapping[str, bytes] | None = None) -> Compiled:
    """Compile an MJCF text; the files it names are in `assets`, or in the current folder."""
    return compile_spec(Spec.from_element(read_string(text, assets=assets), files=assets))
