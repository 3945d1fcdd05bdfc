"""Capacities for contacts and near pairs: from the call, from custom numbers, or by default."""

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.enums import GeomType, WarningType
from jaxsim.io.bridge import put_model
from jaxsim.io.capacity.initial_poses import boxes_at_start
from jaxsim.io.capacity.near_pairs import near_at_start
from jaxsim.physics.collision.candidates.plan import collision_layout

BALLS = "".join(
    f'<body pos="{0.3 * i} 0 0"><freejoint/><geom size=".1" condim="{dim}"/>'
    f'<geom type="ellipsoid" size=".1 .1 .2" pos="0 0 .3" condim="{dim}"/></body>'
    for i, dim in enumerate((1, 3, 3, 3, 1, 3))
)


def text(**numbers: float) -> str:
    custom = "".join(f'<numeric name="{name}" data="{n}"/>' for name, n in numbers.items())
    return f"<mujoco><custom>{custom}</custom><worldbody>{BALLS}</worldbody></mujoco>"


def budgets(m) -> list[int]:
    return [group.budget for group in collision_layout(m).groups]


@pytest.mark.parametrize(
    "load",
    [jaxsim.load_model, lambda xml, **room: put_model(mujoco.MjModel.from_xml_string(xml), **room)],
)
def test_custom_numbers_of_the_file(load):
    """Contacts of each condim, pairs of each two types; arguments of the call take precedence."""
    chosen = load(text())
    asked = load(text(max_contact_points=3, max_geom_pairs=2))
    assert asked.ncontact == 6 < chosen.ncontact
    kinds = [len(group.kinds) for group in collision_layout(asked).groups]
    assert max(kinds) == 2  # a sphere or an ellipsoid, with an ellipsoid
    assert budgets(asked) == [4, 4]
    assert all(b > 4 for b in budgets(chosen))
    called = load(text(max_contact_points=3, max_geom_pairs=2), contacts=5, pairs=1)
    assert called.ncontact == 5
    assert budgets(called) == [1, 1]


@pytest.mark.parametrize("name", ["contacts", "pairs"])
@pytest.mark.parametrize(
    "load",
    [jaxsim.load_model, lambda xml, **room: put_model(mujoco.MjModel.from_xml_string(xml), **room)],
)
def test_a_capacity_of_zero_is_refused(load, name):
    with pytest.raises(ValueError, match=f"{name}: expected a capacity of at least 1, got 0"):
        load(text(), **{name: 0})


@pytest.mark.parametrize("none", [0, -1, "nan"])
def test_numbers_that_ask_for_nothing(none):
    """MJX takes -1 for no bound."""
    chosen, asked = (
        jaxsim.load_model(text(**given)) for given in ({}, {"max_contact_points": none})
    )
    assert asked.ncontact == chosen.ncontact
    assert budgets(asked) == budgets(chosen)


def test_parts_that_are_put_together_have_room():
    """A cube of 27 boxes, each near up to 26 others: 158 pairs, of which 54 share a face."""
    at = [(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)]
    bodies = "".join(
        f'<body pos="{x} {y} {z}" euler="0 0 {90 * x}"><joint type="ball"/>'
        f'<geom type="box" size=".5 .5 .5"/></body>'
        for x, y, z in at
    )
    text = f'<mujoco><worldbody><body quat="1 .3 .2 .1">{bodies}</body></worldbody></mujoco>'
    m = jaxsim.load_model(text, contacts=300)
    number = near_at_start(m, boxes_at_start(m))["kind_near"]
    assert number[GeomType.BOX, GeomType.BOX] == 200  # a quarter more, and up to eights
    assert number.sum() == 200
    assert budgets(m) == [200]
    d = jax.jit(jaxsim.forward)(m, jaxsim.make_data(m))
    assert d.warning[WarningType.CONTACTFULL] == 0
    assert budgets(jaxsim.load_model(text, pairs=20)) == [20]


def test_near_at_the_start_are_all_that_touch():
    """Joint, frame and offset transformations are all applied: the oracle agrees."""
    rng = np.random.default_rng(0)

    def numbers(n: int, size: float = 1) -> str:
        return " ".join(f"{x:.4f}" for x in rng.normal(0, size, n))

    def body(depth: int) -> str:
        shapes = "".join(
            f'<geom type="{shape}" size=".1 .1 .1" pos="{numbers(3, 0.1)}" quat="{numbers(4)}"/>'
            for shape in rng.choice(["sphere", "box", "cylinder", "ellipsoid"], 2)
        )
        return f"""<body pos="{numbers(3, 0.1)}" quat="{numbers(4)}">
          <joint ref="30" axis="{numbers(3)}"/>{shapes}{body(depth - 1) if depth else ""}</body>"""

    text = f"<mujoco><worldbody>{''.join(body(3) for _ in range(4))}</worldbody></mujoco>"
    m, mj = jaxsim.load_model(text), mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(mj)
    mujoco.mj_forward(mj, d)
    pairs = np.unique(np.sort(d.contact.geom, axis=1), axis=0)
    kinds = np.sort(mj.geom_type[pairs], axis=1)
    touching = np.zeros((len(GeomType), len(GeomType)))
    np.add.at(touching, tuple(kinds.T), 1)
    assert len(pairs) > 50
    near = near_at_start(m, boxes_at_start(m))
    assert (near["kind_near"] >= 1.25 * touching).all()
    assert m.ncontact >= near["nstart"] >= d.ncon


@pytest.mark.parametrize(
    ("shape", "height"),
    [
        ('type="box" size=".026 .01 .1"', 0.1),
        ('type="capsule" size=".02 .1"', 0.12),
        ('type="sphere" size=".03"', 0.03),
        ('type="cylinder" size=".02 .1"', 0.1),
        ('type="ellipsoid" size=".02 .02 .1"', 0.1),
    ],
)
def test_a_ring_stands_on_all_its_parts(shape, height):
    """The capacity covers all ground contacts of the free body twice, as it may carry another."""
    text = f"""<mujoco><worldbody><geom type="plane" size="1 1 1"/>
      <body pos="0 0 {height - 1e-5}" euler="0 0 7"><freejoint/>
        <replicate count="12" euler="0 0 30"><geom {shape} pos="0 -.12 0"/></replicate>
      </body></worldbody></mujoco>"""
    m, mj = jaxsim.load_model(text), mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(mj)
    mujoco.mj_forward(mj, d)
    assert d.ncon >= 12
    assert m.structure.body_rest[1] >= d.ncon
    candidates = sum(group.points for group in collision_layout(m).groups)
    assert m.ncontact >= min(2 * d.ncon, candidates)


def test_what_is_packed_densely_has_room():
    """A cube of 27 boxes with gaps, which close in two directions when it is pressed."""
    at = [(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)]
    slides = '<joint type="slide" axis="0 1 0"/><joint type="slide"/>'
    bodies = "".join(
        f'<body pos="{x} {y} {z}">{slides}<geom type="box" size=".49 .49 .49"/></body>'
        for x, y, z in at
    )
    text = f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"
    m, mj = jaxsim.load_model(text), mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(mj)
    mujoco.mj_forward(mj, d)
    assert d.ncon == 0
    d.qpos[:] = -0.03 * np.array(at)[:, 1:].ravel()
    mujoco.mj_forward(mj, d)
    assert d.ncon == 240
    assert m.ncontact >= d.ncon
