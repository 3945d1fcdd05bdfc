"""Load a model: MJCF or URDF -> compiled tables -> Model, or a saved model. The public entry."""

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

import jax.numpy as jnp

from jaxsim.assets.source.provider import display_name
from jaxsim.compile import compile_file, compile_spec, compile_string
from jaxsim.compile.context import Compiled
from jaxsim.io.assemble import assemble, freed_model
from jaxsim.io.phase import named_phase
from jaxsim.io.save import from_bytes, is_saved
from jaxsim.io.smooth_contacts import set_straight_through, smooth_contacts
from jaxsim.mjcf import file_contents
from jaxsim.model.model import Model
from jaxsim.model.switch.switches import Free
from jaxsim.physics.constants.length_range import find_length_ranges
from jaxsim.physics.public.arguments import check_capacity, check_smooth
from jaxsim.spec import Spec


@named_phase("load the model")
def load_model(
    source: str | PathLike[str] | Spec,
    assets: Mapping[str, bytes] | None = None,
    *,
    contacts: int | None = None,
    pairs: int | None = None,
    free: Free = (),
    smooth: float | None = None,
    straight_through: bool | None = None,
) -> Model:
    """Load a model from an MJCF file, an archive of one, MJCF text, a `Spec`, or a saved model.

    Args:
      source: path of the file, its name in `assets`, a URI that a registered provider reads, the
        XML text itself (then its first character is `<`), or an editable model. The file may be a
        model archive (`.mjz`, `.zip`) or one that `save_model` wrote.
      assets: contents of files by the names the model gives them, looked up before the disk.
      contacts: contact capacity of a world; a step that detects more keeps the deepest and counts
        the overflow in `d.warning`. None: as saved, or as specified by the custom number
        `max_contact_points` of the model (of each condim), or chosen from its pairs.
      pairs: capacity of near pairs of geoms, for each group of pairs with one collision function,
        that the narrow phase tests; the first ones are kept, the overflow is counted. None: as
        saved, or as specified by `max_geom_pairs` (of each two types), or chosen.
        `suggest_capacities` measures both.
      free: names of real fields that may change after loading though they are zero now, such as
        "dof_frictionloss" or "opt.density", or "all". A field that is zero for every item and not
        free is compiled out, and `Model.replace` rejects a change of it; one nonzero item keeps it
        live for all items. Name here the fields that you batch, randomize or differentiate from
        zero; `model/switch/switches.py` has the table. "mesh_vert" matters on accelerators, where
        a program does not check whether vertices moved.
      smooth: smoothing length of contacts [m], so that gradients exist before geoms touch
        (docs/physics/contacts.md, Smooth contact). None or 0: contacts are those of MuJoCo. For a
        saved model None keeps its length, 0 removes it.
      straight_through: contacts are smooth in derivatives alone; the motion is that of hard
        contacts. It needs a smoothing length. None: as saved, or False.

    Returns:
      The compiled model, in the default precision of JAX.

    Raises:
      ModelError: the model cannot be read or compiled; lists every fault with file and line.
      ValueError: an argument is not one of those above.

    Warns:
      UnsupportedWarning: the physics cannot simulate the model; `make_data` will raise.

    Example:
      >>> arm = "<body><joint axis='0 1 0'/><geom size='0.1' pos='0 0 -1'/></body>"
      >>> m = load_model(f"<mujoco><worldbody>{arm}</worldbody></mujoco>")
      >>> m.nv, round(float(m.body_mass[1]), 3)
      (1, 4.189)
    """
    check_capacity(contacts, pairs)
    smooth = check_smooth(smooth)
    _check_source(source, assets)
    if isinstance(source, Spec):
        compiled, origin = compile_spec(source), source.path or None
        source.compiled = compiled.identities  # for `recompile`
    elif is_xml_text(source):
        compiled, origin = compile_string(str(source), assets), None
    else:
        origin = fspath(source)
        data = file_contents(origin, assets)
        if is_saved(data):
            m = _set_smoothing_length(from_bytes(data, origin), smooth)
            m = freed_model(_set_capacities(m, contacts, pairs), free)
            return m if straight_through is None else set_straight_through(m, straight_through)
        compiled = compile_file(origin, assets, data)
    m = freed_model(_model_of_compilation(compiled, origin, contacts, pairs, smooth), free)
    return set_straight_through(m, bool(straight_through))


def _model_of_compilation(
    compiled: Compiled,
    origin: str | None,
    contacts: int | None,
    pairs: int | None,
    smooth: float | None,
) -> Model:
    """Return the Model of a compilation; length ranges that need a simulation are computed now."""
    m = assemble(
        compiled.fields,
        compiled.opt,
        compiled.stat,
        compiled.names,
        contacts=contacts,
        pairs=pairs,
        smooth=smooth,
        origin=None if origin is None else display_name(origin),
        locations=compiled.locations,
        plugins=compiled.plugins,
        actuator_origin=compiled.actuator_origin,
    )
    wanted = compiled.length_ranges
    return m if wanted is None else find_length_ranges(m, wanted)


def _check_source(source: Any, assets: Any) -> None:
    """Raise ValueError if `source` is no model source, or `assets` no mapping of files."""
    if isinstance(source, bytes | bytearray | memoryview):
        raise ValueError(
            "source: expected a path, XML text or a Spec, got bytes; the contents of a file are an "
            "asset: load_model('model.xml', {'model.xml': contents})"
        )
    if not isinstance(source, str | PathLike | Spec):
        kind = type(source).__name__
        remedy = "; jaxsim.put_model takes it" if kind == "MjModel" else ""
        raise ValueError(f"source: expected a path, XML text or a Spec, got {kind}{remedy}")
    if not isinstance(assets, Mapping | None):
        raise ValueError(
            f"assets: expected the contents of files by name, in a dict or a Vfs, got "
            f"{type(assets).__name__}"
        )
    if isinstance(source, Spec) and assets is not None:
        raise ValueError("assets: not allowed with a Spec, which has its own; set spec.files")


def is_xml_text(source: str | PathLike[str]) -> bool:
    """Return whether a model source is the text itself rather than a path."""
    return isinstance(source, str) and source.lstrip().startswith("<")


def _set_capacities(m: Model, contacts: int | None, pairs: int | None) -> Model:
    """Return a saved model with other capacities of contacts and near pairs, where they are
    given."""
    capacities = {"ncontact": contacts, "nnear": pairs}
    given = {name: max(1, number) for name, number in capacities.items() if number is not None}
    return m.replace(structure=m.structure.replace(**given)) if given else m


def _set_smoothing_length(m: Model, smooth: float | None) -> Model:
    """Return a saved model with another smoothing length, if one is given; 0 removes it."""
    if smooth is None:
        return m
    if smooth and m.smooth is None:
        return smooth_contacts(m, smooth)
    return m.replace(smooth=jnp.asarray(smooth, m.qpos0.dtype) if smooth else None)
