"""Loads a model: MJCF text -> element tree -> spec -> compiled tables -> Model."""

from collections.abc import Mapping
from os import PathLike, fspath

from jaxsim.assemble import assemble
from jaxsim.compile import Compiled, compile_spec
from jaxsim.mjcf import read_file, read_string
from jaxsim.model import Model
from jaxsim.spec import Spec


def load_model(
    source: str | PathLike[str],
    assets: Mapping[str, bytes] | None = None,
    *,
    contacts: int | None = None,
) -> Model:
    """Loads a model from an MJCF file, or from MJCF text.

    Args:
      source: path of the file, or the XML text itself (then its first character is `<`).
      assets: contents of files, by the name the model gives them; looked up before the disk.
      contacts: number of contacts a world has room for. None: chosen from the candidate pairs of
        the model. A step that finds more keeps the deepest and counts the overflow in `d.warning`.

    Returns:
      The compiled model, in the default precision of JAX.

    Raises:
      ModelError: the model cannot be read, compiled or simulated; lists every fault with its place.
    """
    if contacts is not None and contacts < 0:
        raise ValueError(f"contacts: expected a count, got {contacts}")
    compiled, origin = _compile(source, assets)
    return assemble(
        compiled.fields,
        compiled.opt,
        compiled.stat,
        compiled.names,
        contacts=contacts,
        origin=origin,
    )


def is_xml_text(source: str | PathLike[str]) -> bool:
    """Whether a model source is the text itself rather than a path."""
    return isinstance(source, str) and source.lstrip().startswith("<")


def _compile(
    source: str | PathLike[str], assets: Mapping[str, bytes] | None
) -> tuple[Compiled, str | None]:
    if is_xml_text(source):
        return compile_spec(Spec.from_element(read_string(source, assets=assets))), None
    path = fspath(source)
    return compile_spec(Spec.from_element(read_file(path, assets=assets))), path
