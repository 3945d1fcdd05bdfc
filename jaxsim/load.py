"""Loads a model: MJCF -> compiled tables -> Model. The front door of the engine."""

from collections.abc import Mapping
from os import PathLike, fspath

from jaxsim.assemble import assemble
from jaxsim.compile import compile_file, compile_string
from jaxsim.model import Model


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
      ModelError: the model cannot be read or compiled; lists every fault with its place.

    Warns:
      UnsupportedWarning: the model has what the physics cannot simulate. It can be looked at,
        changed and saved; `make_data` refuses it, with the place of each such thing.
    """
    if contacts is not None and contacts < 0:
        raise ValueError(f"contacts: expected a count, got {contacts}")
    text = is_xml_text(source)
    compiled = compile_string(str(source), assets) if text else compile_file(source, assets)
    return assemble(
        compiled.fields,
        compiled.opt,
        compiled.stat,
        compiled.names,
        contacts=contacts,
        origin=None if text else fspath(source),
        places=compiled.places,
    )


def is_xml_text(source: str | PathLike[str]) -> bool:
    """Whether a model source is the text itself rather than a path."""
    return isinstance(source, str) and source.lstrip().startswith("<")
