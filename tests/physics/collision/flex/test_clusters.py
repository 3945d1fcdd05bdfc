"""Near elements of large flexes by boxes of clusters, against the table of all pairs and MuJoCo."""

from collections.abc import Iterator
from contextlib import ExitStack

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import DIFFERENCE, DYNAMICS

import jaxsim
from jaxsim.physics.body.inertia import com_pos
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.collision.candidates.plan import collision_layout
from jaxsim.physics.collision.contacts import contact_reach, place_collision_geoms, place_flexes
from jaxsim.physics.collision.flex.broadphase import select_near_entries
from jaxsim.physics.collision.flex.clusters import cluster_sizes
from jaxsim.physics.collision.params import contact_params
from jaxsim.physics.flex.flex import flex
from jaxsim.transforms import tuning
from jaxsim.transforms.layout import unpack_record

WORLDS = 3
COMPILER = {"xla_backend_optimization_level": 0}  # the programs run a few times
LONG_TABLE, NO_TABLE = 10**9, 0
ITSELF, ALONE = 'selfcollide="auto"', 'selfcollide="none"'


def grid(name: str, dim: int, count: str, pos: str, more: str = "", contact: str = ALONE) -> str:
    return (
        f'<flexcomp name="{name}" type="grid" dim="{dim}" count="{count}" spacing=".02 .02 .02" '
        f'radius=".005" mass=".5" pos="{pos}" {more}>'
        f'<contact {contact} margin=".002" gap=".001" condim="1"/></flexcomp>'
    )


def balls(number: int) -> str:
    place = [(0.04 * (k % 3) - 0.04, 0.05 * (k // 3) - 0.05, 0.512) for k in range(number)]
    return "".join(
        f'<body pos="{x} {y} {z}"><freejoint/><geom size=".012" conaffinity="2"/></body>'
        for x, y, z in place
    )


TURNED = 'euler="5 3 20"'
CASES = {
    # what touches is found in closed form
    "simple": grid("a", 1, "30 1 1", "0 0 0", contact=ITSELF)
    + grid("b", 1, "24 1 1", "0 0 .008", 'euler="0 0 20"')
    + grid("c", 1, "20 1 1", ".1 0 .004", 'euler="0 0 90"', contact=ITSELF)
    + grid("sheet", 2, "8 7 1", "0 0 .5", contact=ALONE + ' contype="2" conaffinity="1"')
    + balls(9),
    "sheets": grid("a", 2, "9 8 1", "0 0 0") + grid("b", 2, "7 10 1", ".007 .003 .008", TURNED),
    "solids": grid("a", 3, "4 4 4", "0 0 0", contact=ALONE + ' activelayers="2"')
    + grid("b", 3, "4 4 4", ".007 .003 .055", TURNED),
    "sheet on solid": grid("a", 2, "8 9 1", "0 0 0") + grid("b", 3, "4 5 3", "0 0 .02", TURNED),
    "itself": grid("a", 2, "8 9 1", "0 0 0", contact=ITSELF)
    + grid("b", 3, "4 5 4", "0 0 .2", contact=ITSELF + ' activelayers="2"'),
}


# Entered by `load`.
CONTEXTS = ExitStack()


@pytest.fixture(autouse=True)
def default_table() -> Iterator[None]:
    """Leave the contexts that `load` entered."""
    yield
    CONTEXTS.close()


def text(case: str) -> str:
    return f"<mujoco><worldbody>{CASES[case]}</worldbody></mujoco>"


def load(case: str, table: int, **capacities: int) -> jaxsim.Model:
    """A model whose groups of more entries than `table` are made of clusters, from now on."""
    CONTEXTS.enter_context(tuning.override(max_table_entries=table))
    m = jaxsim.load_model(text(case), **capacities)
    some = [g for g in collision_layout(m).flex_groups if g.sizes[1] > 1]
    assert some
    assert all((g.clusters is None) == (table == LONG_TABLE) for g in some)
    return m


def poses(m: jaxsim.Model) -> np.ndarray:
    start = np.asarray(jaxsim.make_data(m).qpos)
    return start + np.random.default_rng(0).normal(size=(WORLDS, m.nq)) * 0.001


def posed(m: jaxsim.Model, qpos: jax.Array) -> jaxsim.Data:
    d = jaxsim.make_data(m, keep="all").replace(qpos=qpos)
    for stage in (
        jaxsim.stages.kinematics,
        jaxsim.stages.com_pos,
        jaxsim.stages.flex,
        jaxsim.stages.collision,
    ):
        d = stage(m, d)
    return d


def entries(m: jaxsim.Model, qpos: jax.Array) -> list:
    """Return the entries of each group that the narrow phase tests."""
    native, d = unpack_record(m, 0), unpack_record(jaxsim.make_data(m).replace(qpos=qpos), 0)
    d = flex(native, com_pos(native, kinematics(native, d)))
    of_model = collision_layout(m)
    geoms, soft = place_collision_geoms(native, d, of_model), place_flexes(native, d)
    reach = contact_reach(native, d, of_model, contact_params(native, of_model.pairs))
    found = []
    for group in of_model.flex_groups:
        near = select_near_entries(m.structure, group, geoms, soft, reach)
        ids = [i.array(near.reach) for i in (near.pair, near.first, near.second, near.rank)]
        found.append((jnp.stack(ids, axis=1), near.reach, near.dropped))
    return found


@pytest.mark.short("sheet on solid")
@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=pytest.mark.slow) if c in ("sheets", "solids") else c for c in CASES],
)
def test_near_elements_are_those_of_the_table(case):
    found = []
    for table in (LONG_TABLE, NO_TABLE):
        # fewer than there are entries, of which the table would not test any otherwise
        m = load(case, table, pairs=300 if case == "simple" else 4000)
        assert not any(g.tests_every_entry for g in collision_layout(m).flex_groups)
        run = jax.jit(jax.vmap(lambda q, m=m: entries(m, q)), compiler_options=COMPILER)
        found.append(run(poses(m)))
    number = 0
    for by_table, by_clusters in zip(*found, strict=True):
        assert not np.any(by_table[2])
        assert not np.any(by_clusters[2])
        for k in range(WORLDS):
            ids = [
                np.asarray(ids[k])[np.asarray(reach[k]) > -1]
                for ids, reach, _ in (by_table, by_clusters)
            ]
            expected, ours = (a[np.argsort(a[:, 3])][:, :3] for a in ids)
            np.testing.assert_array_equal(ours, expected)
            assert len(np.unique(ids[1][:, 3])) == len(ours)
            number += len(ours)
    assert number > 20 * WORLDS


def test_contacts_are_those_of_mujoco_in_its_order():
    compare_contacts("simple", NO_TABLE, DYNAMICS)


@pytest.mark.slow
@pytest.mark.parametrize("table", [LONG_TABLE, NO_TABLE])
@pytest.mark.parametrize("case", ["sheets", "solids", "sheet on solid"])
def test_searched_contacts_are_those_of_mujoco(case, table):
    # the oracle searches between shapes with a radius, up to 1e-6 of depth
    compare_contacts(case, table, {"rtol": 0, "atol": 3e-4})


def compare_contacts(case: str, table: int, tolerance: dict) -> None:
    mj = mujoco.MjModel.from_xml_string(text(case))
    m = load(case, table, contacts=4000, pairs=4000)
    qpos = poses(m)
    found = jax.jit(jax.vmap(lambda q: posed(m, q)), compiler_options=COMPILER)(qpos)
    state = mujoco.MjData(mj)
    for k in range(WORLDS):
        state.qpos[:] = qpos[k]
        mujoco.mj_fwdPosition(mj, state)
        n = state.ncon
        assert int(found.ncon[k]) == n > 20
        assert not found.warning[k].any()
        for name in ("geom", "flex", "elem", "vert"):
            ours = np.asarray(getattr(found.contact, name))[k][:n]
            np.testing.assert_array_equal(ours, getattr(state.contact, name), err_msg=name)
        np.testing.assert_allclose(found.contact.dist[k][:n], state.contact.dist, **tolerance)


@pytest.mark.slow
def test_batched_world_equals_single_world():
    m = load("simple", NO_TABLE, pairs=300)
    qpos = poses(m)
    run = lambda q: posed(m, q)  # noqa: E731
    together = jax.jit(jax.vmap(run), compiler_options=COMPILER)(qpos)
    alone = jax.jit(run, compiler_options=COMPILER)
    for k in range(WORLDS):
        one = alone(qpos[k])
        n = int(one.ncon)
        assert n == int(together.ncon[k]) > 20
        np.testing.assert_array_equal(one.contact.elem, together.contact.elem[k])
        np.testing.assert_allclose(one.contact.dist[:n], together.contact.dist[k][:n], **DYNAMICS)


@pytest.mark.slow
def test_gradient_of_distances():
    m = load("simple", NO_TABLE, pairs=300)
    start = jnp.asarray(poses(m)[0])
    along = jnp.asarray(np.random.default_rng(1).normal(size=m.nq))

    def total(t):
        d = posed(m, start + t * along)
        return jnp.sum(jnp.where(d.contact.dist < 1, jnp.sin(100 * d.contact.dist), 0))

    run = jax.jit(total, compiler_options=COMPILER)
    forwards = jax.jit(
        lambda t: jax.jvp(total, (t,), (jnp.ones_like(t),))[1], compiler_options=COMPILER
    )
    slope = forwards(jnp.zeros(()))
    above, below = run(jnp.asarray(1e-7)), run(jnp.asarray(-1e-7))
    np.testing.assert_allclose(slope, (above - below) / 2e-7, **DIFFERENCE | {"rtol": 1e-5})


@pytest.mark.slow
def test_contacts_beyond_capacity_are_counted():
    """Capacity for few pairs of clusters, for few of elements, and the suggested one."""
    m = load("simple", NO_TABLE)
    states = jax.vmap(lambda q: jaxsim.make_data(m).replace(qpos=q))(jnp.asarray(poses(m)))
    enough = jaxsim.suggest_capacities(m, states)._asdict()
    expected = int(jax.jit(lambda q: posed(m, q).ncon)(states.qpos[0]))
    for capacities, lost in (({"pairs": 3}, True), ({"pairs": 12}, True), (enough, False)):
        own = load("simple", NO_TABLE, **capacities)
        d = jax.jit(lambda q, own=own: posed(own, q), compiler_options=COMPILER)(states.qpos[0])
        assert bool(d.warning[1] > 0) == lost
        assert (int(d.ncon) < expected) == lost


def test_clusters_are_nodes_of_a_tree_of_halves():
    for number in (1, 16, 17, 4968, 10001):
        sizes = cluster_sizes(number)
        assert sizes.sum() == number
        assert sizes.max() <= tuning.tuning().max_cluster_elements
        assert np.ptp(sizes) <= 1


def ring(around: int, across: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of a torus."""
    u, v = np.meshgrid(*(2 * np.pi * np.arange(n) / n for n in (around, across)), indexing="ij")
    far = 0.1 + 0.04 * np.cos(v)
    vertex = np.stack([far * np.cos(u), far * np.sin(u), 0.04 * np.sin(v)], axis=-1)
    number = np.arange(around * across).reshape(around, across)
    right, up = np.roll(number, -1, axis=0), np.roll(number, -1, axis=1)
    corner = np.roll(right, -1, axis=1)
    faces = np.stack([number, right, corner, number, corner, up], axis=-1)
    return vertex.reshape(-1, 3), faces.reshape(-1, 3)


def rings(around: int, across: int) -> str:
    vertex, faces = ring(around, across)
    point, element = (" ".join(map(str, a.ravel().round(6).tolist())) for a in (vertex, faces))
    bodies = "".join(
        f'<body name="{name}" pos="{pos}"><freejoint/><geom size=".2" mass="1"/>'
        f'<flexcomp name="{name}" type="direct" dim="2" rigid="true" radius=".002" '
        f'point="{point}" element="{element}">'
        '<contact selfcollide="none" contype="2" conaffinity="2"/></flexcomp></body>'
        for name, pos in (("one", "0 0 0"), ("other", ".1 0 .01"))
    )
    return f'<mujoco><worldbody><geom type="plane" size="1 1 1"/>{bodies}</worldbody></mujoco>'


def test_plan_of_two_large_flexes_is_small():
    """24.7 million pairs of elements."""
    m = jaxsim.load_model(rings(54, 46))
    (between,) = [g for g in collision_layout(m).flex_groups if g.clusters is not None]
    assert m.nflexelem == 2 * 4968
    assert between.clusters.number < 4968**2 / 50
    arrays = [
        a for a in jax.tree.leaves(collision_layout(m)._asdict()) if isinstance(a, np.ndarray)
    ]
    assert sum(a.nbytes for a in arrays) < 2**21
    assert between.rank.max() + 4968**2 < np.iinfo(np.int32).max
