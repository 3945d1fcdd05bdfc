"""Loading of MJCF: every number is where its declaration specifies, equal to MuJoCo's."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import DYNAMICS, ROUNDING

from jaxsim.compile import compile_file
from jaxsim.errors import ModelError
from jaxsim.io.assemble import undeclared_arrays
from jaxsim.io.bridge import put_model
from jaxsim.io.load import load_model
from jaxsim.io.save import to_bytes
from jaxsim.io.write_back import write_back
from jaxsim.model.model import Model
from jaxsim.spec import Spec

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
FILES = sorted(CONFIGS.glob("*.xml"))
# real numbers that are no leaves: only drawn, or state of plastic springs, which are refused
NOT_LEAVES = re.compile(
    r"(geom|site|tendon)_rgba|light_.*|cam_(intrinsic|ipd|sensorsize)|key_plastic"
)
# leaves that no file has: they are arguments of the loader
ASKED_FOR = {"callbacks", "smooth"}
ARM = """
<mujoco>
  <worldbody><body><joint name="a"/><geom size="0.1" pos="0.2 0 0"/></body></worldbody>
</mujoco>
"""


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_compiled_by_us_is_compiled_by_mujoco(path):
    mine, theirs = load_model(path), put_model(mujoco.MjModel.from_xml_path(str(path)))
    for name in Model.fields:
        if name in ("structure", "opt", "stat"):
            continue
        if name in ASKED_FOR:
            assert getattr(mine, name) is getattr(theirs, name) is None
            continue
        np.testing.assert_allclose(
            getattr(mine, name),
            getattr(theirs, name),
            rtol=DYNAMICS["rtol"],
            atol=ROUNDING["atol"],
            err_msg=name,
        )
    for name in set(mine.structure) & set(theirs.structure) - {"names", "ncontact"}:
        np.testing.assert_array_equal(
            getattr(mine, name), getattr(theirs, name), err_msg=name, strict=True
        )
    assert mine.ncontact == theirs.ncontact
    assert mine.names["body"] == theirs.names["body"]
    assert mine.names["joint"] == theirs.names["joint"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_every_real_number_is_a_declared_leaf(path):
    compiled = compile_file(path)
    assert [n for n in undeclared_arrays(compiled.fields) if not NOT_LEAVES.fullmatch(n)] == []
    m = load_model(path)
    for record in (m, m.opt, m.stat):
        assert {n for n in record.fields if getattr(record, n) is None} <= ASKED_FOR


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_nothing_that_mujoco_computes_with_is_missing(path):
    """The tables of `put_model` that the compiler does not make must be empty in these models."""
    mine, theirs = load_model(path), put_model(mujoco.MjModel.from_xml_path(str(path)))
    absent = set(theirs.structure) - set(mine.structure)
    assert not {name for name in absent if np.any(getattr(theirs, name))}


def test_text_and_file_are_the_same_model(tmp_path):
    file = tmp_path / "arm.xml"
    file.write_text(ARM)
    from_text, from_path, from_string = load_model(ARM), load_model(file), load_model(str(file))
    assert from_text.structure == from_path.structure == from_string.structure
    assert jax.tree.structure(from_text) == jax.tree.structure(from_path)


def test_assets_come_from_memory():
    main = '<mujoco><include file="part.xml"/></mujoco>'
    assert load_model(main, {"part.xml": ARM.encode()}).njnt == 1


def test_precision_is_the_default_of_jax():
    assert load_model(ARM).body_mass.dtype == jnp.float64
    with jax.enable_x64(False):
        m = load_model(ARM)
    assert {x.dtype.name for x in jax.tree.leaves(m)} == {"float32"}


def test_room_for_contacts_can_be_given():
    assert load_model(ARM, contacts=7).ncontact == 7
    for wrong in (-1, 2.5, 10**12, True, "7"):
        with pytest.raises(ValueError, match=f"contacts: expected a whole number.* got .*{wrong}"):
            load_model(ARM, contacts=wrong)


def test_invalid_source_and_assets_are_rejected():
    with pytest.raises(
        ValueError, match=r"got bytes; .* load_model\('model.xml', {'model.xml': con"
    ):
        load_model(ARM.encode())
    assert load_model("model.xml", {"model.xml": ARM.encode()}).njnt == 1  # the remedy
    assert load_model("arm.jxm", {"arm.jxm": to_bytes(load_model(ARM))}).njnt == 1
    with pytest.raises(ValueError, match=r"source: .* got MjModel; jaxsim\.put_model takes it"):
        load_model(mujoco.MjModel.from_xml_string(ARM))
    with pytest.raises(
        ValueError, match=r"assets: expected the contents of files by name, .* list"
    ):
        load_model(ARM, ["a"])


def test_no_such_file():
    with pytest.raises(ModelError, match=r"absent\.xml"):
        load_model("absent.xml")


def test_a_mistake_names_file_line_and_remedy(tmp_path):
    file = tmp_path / "arm.xml"
    file.write_text(ARM.replace('size="0.1"', 'siz="0.1"'))
    with pytest.raises(ModelError, match=r"arm\.xml:3: <geom> .*'siz'.* did you mean 'size'\?"):
        load_model(file)


def test_a_spec_is_loaded_and_a_changed_model_written_back():
    spec = Spec()
    body = spec.at("worldbody").add("body", name="b")
    body.add("joint", name="j", damping=0.5)
    body.add("geom", size=0.1)
    m = load_model(spec)
    assert m.nv == 1
    heavier = m.replace(body_mass=m.body_mass * 2, opt=m.opt.replace(timestep=m.opt.timestep / 2))
    again = load_model(write_back(spec, heavier).to_xml())
    np.testing.assert_array_equal(again.body_mass, heavier.body_mass)
    np.testing.assert_array_equal(again.opt.timestep, heavier.opt.timestep)
    np.testing.assert_array_equal(again.dof_damping, m.dof_damping)
    with pytest.raises(ValueError, match="assets: not allowed with a Spec"):
        load_model(spec, {"a": b""})
