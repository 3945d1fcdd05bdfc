"""Fields of Model and Data that are records take only records of their type and sizes."""

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.option import Option

BALL = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .1"><freejoint/>
<geom size=".1"/></body></worldbody></mujoco>"""
WRONG = {
    "int": 3,
    "true": True,
    "text": "x",
    "dict": {},
    "list": [1],
    "array": np.zeros(3),
    "object": object(),
    "function": lambda m, d: d,
    "none": None,
}
RECORDS = [
    *(("model", n) for n, f in Model.fields.items() if f.nested is not None or n == "structure"),
    *(("data", n) for n, f in Data.fields.items() if f.nested is not None),
]
OPTIONAL = {"callbacks", "contact", "solver"}


@pytest.fixture(scope="module")
def records():
    m = jaxsim.load_model(BALL)
    return {"model": m, "data": jaxsim.make_data(m, keep="all")}


def test_the_sweep_has_all_records():
    names = {name for _, name in RECORDS}
    assert names == {"structure", "opt", "stat", "callbacks", "contact", "solver"}


@pytest.mark.parametrize("value", [*WRONG, "model", "data"])
@pytest.mark.parametrize(("owner", "name"), RECORDS)
def test_other_values_are_refused_at_once(records, owner, name, value):
    given = WRONG.get(value, records.get(value))
    if value == "none" and name in OPTIONAL:
        assert getattr(records[owner].replace(**{name: None}), name) is None
        return
    with pytest.raises(ValueError, match=f"^{name}: ") as caught:
        records[owner].replace(**{name: given})
    message = str(caught.value)
    assert "expected " in message
    assert len(message) < 400
    if name != "structure" and value != "array":
        with pytest.raises(ValueError, match=f"^{name}: "):
            records[owner].tree_replace({name: given})


def test_a_record_of_other_sizes_is_refused(records):
    m, d = records["model"], records["data"]
    wide = jaxsim.make_data(jaxsim.load_model(BALL, contacts=7), keep="all")
    remedy = r"load_model\(\.\.\., contacts=n\) decides its size"
    with pytest.raises(ValueError, match=rf"^contact\.dist: expected shape \(1,\).*; .*{remedy}"):
        d.replace(contact=wide.contact)
    iterations = d.solver.replace_unchecked({"improvement": np.zeros(1)}, native=False)
    with pytest.raises(ValueError, match=r"^solver\.improvement: expected shape"):
        d.replace(solver=iterations)
    center = m.stat.replace_unchecked({"center": np.zeros(4)}, native=False)
    with pytest.raises(ValueError, match=r"^stat\.center: expected shape \(3,\)"):
        m.replace(stat=center)
    with pytest.raises(ValueError, match=r"^opt: the new one has no .*; tree_replace"):
        m.replace(opt=Option(timestep=m.opt.timestep))


def test_axes_of_a_vmap_take_the_place_of_records(records):
    m, d = records["model"], records["data"]
    axes = jax.tree.map(lambda x: None, m)
    assert axes.replace(opt=None, stat=0).stat == 0
    worlds = jax.tree.map(lambda x: np.stack([x, x]), d)
    in_axes = jax.tree.map(lambda x: 0, d).replace(contact=None, solver=0)
    shared = worlds.replace(contact=d.contact)
    depth = jax.vmap(lambda d: d.contact.dist, in_axes=(in_axes,))(shared)
    assert depth.shape == (2, 1)
    # equal records, of one world or of many, are accepted
    assert d.replace(contact=d.contact, solver=d.solver).contact is d.contact
    assert worlds.replace(contact=worlds.contact).contact is worlds.contact
    assert m.replace(opt=m.opt.replace(timestep=0.25)).opt.timestep == 0.25
