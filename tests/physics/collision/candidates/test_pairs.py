"""Candidate pairs against the oracle, on random trees in which everything overlaps."""

import itertools

import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.enums import DisableBit, GeomType
from jaxsim.physics.collision.candidates.pairs import candidate_pairs
from jaxsim.physics.collision.candidates.table import COLLIDERS, NON_COLLIDING_TYPES

SHAPES = ("sphere", "capsule", "box")


class _Scene:
    """A random scene as XML: bodies with and without joints, mocap bodies, pairs, exclusions."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.bodies = self.geoms = 0
        bodies = "".join(self.body(0) for _ in range(self.rng.integers(1, 4)))
        filterparent = self.rng.choice(["enable", "disable"], p=[0.7, 0.3])
        self.xml = f"""
        <mujoco><option><flag filterparent="{filterparent}"/></option>
          <worldbody>{self.geom("plane")}{self.geom()}{bodies}</worldbody>
          <contact>{self.listed("pair", "geom", self.geoms)}
            {self.listed("exclude", "body", self.bodies)}</contact></mujoco>"""

    def geom(self, shape: str | None = None) -> str:
        rng, k = self.rng, self.geoms
        self.geoms += 1
        bits = [1, 1] if rng.random() < 0.6 else rng.integers(0, 4, 2)
        return (
            f'<geom name="g{k}" type="{shape or rng.choice(SHAPES)}" size=".1 .1 .1" '
            f'contype="{bits[0]}" conaffinity="{bits[1]}" '
            f'condim="{rng.choice([1, 3, 4, 6])}" priority="{rng.choice([0, 0, 1])}"/>'
        )

    def body(self, depth: int) -> str:
        rng = self.rng
        self.bodies += 1
        head = f'<body name="b{self.bodies}" pos=".01 {0.01 * rng.normal()} 0"'
        joint = rng.choice(["", "<joint/>", "<freejoint/>"] if depth == 0 else ["", "<joint/>"])
        if depth == 0 and not joint and rng.random() < 0.6:
            head += ' mocap="true"'
        inside = "".join(self.geom() for _ in range(rng.integers(0, 3)))
        if depth < 3:
            inside += "".join(self.body(depth + 1) for _ in range(rng.integers(0, 3)))
        mass = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
        return f"{head}>{joint}{mass}{inside}</body>"

    def listed(self, tag: str, of: str, count: int) -> str:
        """A few `<pair>` or `<exclude>` elements, no two of the same objects."""
        first = 0 if of == "geom" else 1
        if count < 3:
            return ""
        pairs = {tuple(sorted(self.rng.choice(count, 2, replace=False))) for _ in range(2)}
        return "".join(
            f'<{tag} {of}1="{of[0]}{a + first}" {of}2="{of[0]}{b + first}"/>' for a, b in pairs
        )


@pytest.mark.parametrize("block", range(4))
def test_pairs_and_their_order_equal_the_oracle(block):
    """Every candidate pair touches in these scenes, so the contacts list them all."""
    for seed in range(25 * block, 25 * block + 25):
        mj = mujoco.MjModel.from_xml_string(_Scene(seed).xml)
        d = mujoco.MjData(mj)
        mujoco.mj_forward(mj, d)
        expected = list(dict.fromkeys(map(tuple, d.contact.geom.tolist())))
        dims = dict(zip(map(tuple, d.contact.geom.tolist()), d.contact.dim, strict=True))

        pairs = candidate_pairs(mj, mj.opt.disableflags)
        mine = list(zip(pairs.geom1.tolist(), pairs.geom2.tolist(), strict=True))
        # only the plane is not everywhere
        assert [p for p in mine if p in dims] == expected
        assert all(mj.geom_type[a] == GeomType.PLANE for a, b in mine if (a, b) not in dims)
        assert all(pairs.dim[i] == dims[p] for i, p in enumerate(mine) if p in dims)


def test_two_pair_elements_of_the_same_geoms_are_two_pairs():
    """Two contacts are detected, as in the oracle."""
    mj = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody>
        <body><freejoint/><geom name="a" size=".1"/></body>
        <body><freejoint/><geom name="b" size=".1"/></body></worldbody>
        <contact><pair geom1="a" geom2="b"/><pair geom1="b" geom2="a" condim="1"/></contact>
        </mujoco>"""
    )
    pairs = candidate_pairs(mj, 0)
    assert pairs.dim.tolist() == [3, 1]
    assert pairs.predefined.tolist() == [0, 1]


@pytest.mark.parametrize("flag", [DisableBit.CONTACT, DisableBit.CONSTRAINT])
def test_disabled_contacts_have_no_pairs(flag):
    mj = mujoco.MjModel.from_xml_string(_Scene(2).xml)
    assert len(candidate_pairs(mj, 0).geom1)
    assert not len(candidate_pairs(mj, flag).geom1)


REFUSED = {(GeomType.HFIELD, GeomType.SDF)}


def test_every_pair_of_shapes_has_a_collider_or_never_touches_or_is_refused():
    """All geom types that a model may have are covered."""
    shapes = [k for k in GeomType if GeomType.PLANE <= k <= GeomType.SDF]
    assert len(shapes) == 9
    for a, b in itertools.combinations_with_replacement(shapes, 2):
        assert sum([(a, b) in COLLIDERS, (a, b) in NON_COLLIDING_TYPES, (a, b) in REFUSED]) == 1


def test_a_height_field_under_an_sdf_geom_is_refused_by_name(refused):
    """Only where they may touch."""
    text = """<mujoco><extension><plugin plugin="mujoco.sdf.torus"><instance name="t">
      <config key="radius1" value=".2"/><config key="radius2" value=".05"/></instance></plugin>
      </extension><asset><mesh name="t"><plugin instance="t"/></mesh>
      <hfield name="h" nrow="2" ncol="2" size="1 1 .1 .1" elevation="0 0 0 0"/></asset>
      <worldbody><geom name="land" type="hfield" hfield="h"/><body name="b" pos="0 0 1"><freejoint/>
      <geom name="ring" type="sdf" mesh="t" {}><plugin instance="t"/></geom></body></worldbody>
      </mujoco>"""
    message = next(iter(refused(lambda: jaxsim.load_model(text.format("")))))
    assert "land" in message
    assert "ring" in message
    assert "a hfield and a sdf cannot collide" in message
    assert not jaxsim.load_model(text.format('contype="0" conaffinity="0"')).unsupported
