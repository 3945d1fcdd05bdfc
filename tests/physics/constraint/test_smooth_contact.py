"""Contacts that are felt from a distance: their force, its limit, gradients before touch."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from programs import program_text
from tolerance import ROUGH_DIFFERENCE, ROUNDING, SOLVER, STIFF

import jaxsim
from jaxsim.physics.collision.smooth import SMOOTHING_CUTOFF, smooth_distance
from jaxsim.physics.constraint.impedance import impedance, reference_law

H = 1e-3
RADIUS = 0.1
# a ball that moves along x and z over a floor; the solver goes on to the last digit
BALL = """<mujoco><option cone="{cone}" tolerance="0" iterations="30" ls_iterations="50"/>
<worldbody><geom type="plane" size="1 1 .1" solref="{solref}" condim="{condim}"/>
<body pos="0 0 .1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
<geom size=".1" mass="2" solref="{solref}" condim="{condim}"/></body></worldbody></mujoco>"""
SOLREFS = (".02 1", "-2000 -60")
LANDING = jnp.linspace(-4.1, 9.7, 20) * H  # through touch-down, up to where nothing is felt


def ball(cone="pyramidal", solref=SOLREFS[0], condim=3, smooth: float | None = H):
    return jaxsim.load_model(BALL.format(cone=cone, solref=solref, condim=condim), smooth=smooth)


def force(m, height, speed=(0.0, 0.0)):
    """Constraint force along x and z on the ball at a height of its lowest point."""
    d = jaxsim.make_data(m)
    d = d.replace(qpos=jnp.zeros(2).at[1].set(height), qvel=jnp.asarray(speed))
    return jaxsim.forward(m, d).qfrc_constraint


def slopes(function, x, step):
    return (function(x + step) - function(x - step)) / (2 * step)


# the force over the height


@pytest.mark.short("elliptic--2000 -60")
@pytest.mark.parametrize(
    ("cone", "solref"),
    [
        ("pyramidal", SOLREFS[0]),
        ("elliptic", SOLREFS[1]),
        pytest.param("pyramidal", SOLREFS[1], marks=pytest.mark.slow),
        pytest.param("elliptic", SOLREFS[0], marks=pytest.mark.slow),
    ],
)
def test_the_force_of_a_landing_ball_is_smooth(cone, solref):
    m = ball(cone, solref)

    def at(height):
        return force(m, height, (0.3, -0.1))

    values = jax.jit(jax.vmap(at))
    derivatives = jax.jit(jax.vmap(jax.jacfwd(at)))(LANDING)
    friction, push = values(LANDING).T
    assert (push > 0).all()
    assert (np.diff(push) < 0).all()
    assert (friction < 0).all()
    assert (np.diff(friction) > 0).all()
    assert (derivatives[:, 1] < 0).all()
    # the step: a small part of H; its square, and rounding by it, leave nine digits of the largest
    differences = slopes(values, LANDING, 1e-4 * H)
    scale = float(np.abs(derivatives).max())
    np.testing.assert_allclose(derivatives, differences, rtol=1e-6, atol=1e-8 * scale)


@pytest.mark.parametrize("solref", [SOLREFS[0], pytest.param(SOLREFS[1], marks=pytest.mark.slow)])
def test_the_force_is_that_of_the_formula(solref):
    """Without friction: f = (aref - a0) / (A + R), the impedance times the weight."""
    m = ball(solref=solref, condim=1)
    mass, weight0, speed, gravity = 2.0, float(m.body_invweight0[1, 0]), -0.2, 9.81
    s, w = smooth_distance(LANDING, jnp.full_like(LANDING, H), jnp.ones(20, bool))
    np.testing.assert_allclose(s, -H * np.log1p(np.exp(-LANDING / H)), **ROUNDING)
    np.testing.assert_allclose(w, 1 / (1 + np.exp(LANDING / H)), **ROUNDING)
    solimp = tuple(jnp.float64(x) for x in (0.9, 0.95, 0.001, 0.5, 2.0))
    given = [jnp.float64(x) for x in solref.split()]
    imp = w * impedance(solimp, s)
    spring = reference_law(m, given, solimp[1], imp)
    aref = -spring.damping * speed - spring.stiffness * imp * s
    expected = (aref + gravity) / (1 / mass + (1 - imp) / imp * weight0)
    found = jax.jit(jax.vmap(lambda z: force(m, z, (0.0, speed))[1]))(LANDING)
    np.testing.assert_allclose(found, expected, **SOLVER)


@pytest.mark.slow
def test_distant_contact_force_is_small():
    """At the end of the reach the force is below 1e-4 of what it is in touch."""
    m = ball()
    heights = H * jnp.array([0.0, SMOOTHING_CUTOFF - 1e-6, SMOOTHING_CUTOFF + 1e-6])
    touch, last, none = jax.jit(jax.vmap(lambda z: force(m, z, (0.0, -1.0))[1]))(heights)
    assert 0 < last < 1e-4 * touch
    assert none == 0


@pytest.mark.slow
def test_distances_and_margins_are_those_of_the_geometry():
    m = ball()
    d = jaxsim.make_data(m)
    d = jax.jit(jaxsim.forward)(m, d.replace(qpos=jnp.array([0.0, 5 * H])))
    assert d.ncon == 1
    assert d.contact.efc_address[0] == 0
    np.testing.assert_allclose(d.contact.dist[0], 5 * H, **ROUNDING)
    np.testing.assert_allclose(d.contact.includemargin[0], 0)
    # its force, asked for later, and the inverse dynamics know of the smooth contact
    np.testing.assert_allclose(
        jaxsim.support.contact_force(m, d, 0)[0], d.qfrc_constraint[1], **STIFF
    )
    inverse = jax.jit(jaxsim.inverse)(m, d)
    np.testing.assert_allclose(inverse.qfrc_inverse, 0, **STIFF)


# the limit of hard contacts


@pytest.mark.slow
def test_with_a_shrinking_length_the_step_becomes_that_of_hard_contacts():
    """At each height the difference ends like exp(-|height| / h), in the mean it is of order h."""
    hard, soft = ball(smooth=None), ball()
    heights = np.concatenate([-np.arange(0.5, 80), np.arange(0.5, 80)]) * 5e-5
    d = jaxsim.make_data(hard)

    def after(m, h, height):
        if h is not None:
            m = m.replace(smooth=h)
        qpos = jnp.zeros(2).at[1].set(height)
        return jaxsim.step(m, d.replace(qpos=qpos, qvel=jnp.array([0.1, -0.2]))).qvel

    exact = jax.jit(jax.vmap(lambda z: after(hard, None, z)))(heights)
    run = jax.jit(jax.vmap(jax.vmap(lambda h, z: after(soft, h, z), (None, 0)), (0, None)))
    lengths = np.array([4e-4, 2e-4, 1e-4, 5e-5, 0.0])
    error = np.abs(run(lengths, heights) - exact[None]).max(axis=-1)
    mean = error[:-1].mean(axis=1)
    orders = np.log2(mean[:-1] / mean[1:])
    np.testing.assert_allclose(orders, 1, atol=0.15)
    far = np.abs(heights) > 30 * lengths[3]
    assert far.any()
    assert error[3, far].max() < 1e-10
    np.testing.assert_allclose(error[4], 0, atol=1e-10)  # length 0: those of today


@pytest.mark.slow
def test_the_bias_of_a_resting_ball_is_of_the_size_of_the_length():
    """The height at which the force is the weight, with a length and without."""
    m = ball()
    lengths = jnp.array([0.0, 1e-4, 1e-3, 1e-2])
    weight = 2 * 9.81
    push = jax.jit(jax.vmap(lambda h, z: force(m.replace(smooth=h), z)[1]))
    low, high = -2e-3 - 0 * lengths, 10 * lengths
    for _ in range(40):
        middle = (low + high) / 2
        below = push(lengths, middle) > weight
        low, high = jnp.where(below, middle, low), jnp.where(below, high, middle)
    bias = (low - low[0])[1:] / lengths[1:]
    assert (np.abs(bias) > 0.01).all()
    assert (np.abs(bias) < 1.2).all()


# gradients


# a plate on a spring; the ball that is thrown at it is still above it in the end
THROW = """<mujoco><option timestep=".005" tolerance="0" iterations="30" ls_iterations="50"/>
<worldbody><body gravcomp="1"><joint type="slide" axis="0 0 1" stiffness="100"/>
<geom type="box" size=".5 .5 .01"/></body>
<body pos="0 0 .06"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
<geom size=".05" mass="1"/></body></worldbody></mujoco>"""
START = jnp.array([0.05, 0.0])  # height above the plate, speed upwards


def landing(m, start):
    """Return how far the plate is pushed down [mm], and the least gap during the motion."""
    d = jaxsim.make_data(m)
    d = d.replace(qpos=d.qpos.at[2].set(start[0]), qvel=jnp.array([0, 0.3, 0]).at[2].set(start[1]))

    def step(d, _):
        d = jaxsim.step(m, d)
        return d, d.qpos[2] - d.qpos[0]

    d, gaps = jax.lax.scan(step, d, length=19)
    return -1e3 * d.qpos[0], gaps.min()


@pytest.mark.slow
def test_the_gradient_of_a_landing_is_not_zero_before_touch_down():
    hard, soft = jaxsim.load_model(THROW), jaxsim.load_model(THROW, smooth=2e-3)
    gradient = jax.jit(jax.value_and_grad(landing, argnums=1, has_aux=True))
    (pushed, gap), none = gradient(hard, START)
    assert gap > 0
    assert pushed == 0
    np.testing.assert_array_equal(none, 0)
    (pushed, gap), some = gradient(soft, START)
    assert gap > 0
    assert pushed > 0
    assert (some < -0.01 * pushed).all()  # from higher, or thrown up, it pushes less
    cost = jax.jit(jax.vmap(lambda x: landing(soft, x)[0]))
    step = 1e-6 * jnp.eye(2)
    near = jnp.concatenate([START[None] + step, START[None] - step])
    differences = (cost(near)[:2] - cost(near)[2:]) / 2e-6
    np.testing.assert_allclose(some, differences, **ROUGH_DIFFERENCE)


BOX = """<mujoco><option tolerance="0" iterations="30" ls_iterations="50"/><worldbody>
<geom type="plane" size="1 1 .1"/><body pos="0 0 .03"><joint type="slide" axis="1 0 0"/>
<joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/>
<geom type="box" size=".02 .02 .02" mass="1"/></body></worldbody></mujoco>"""


@pytest.mark.slow
def test_a_tipping_box_changes_its_corners_without_a_jump():
    """At a level diagonal the lowest corners change: force and gradient are continuous."""
    m = jaxsim.load_model(BOX, smooth=5e-3)
    d = jaxsim.make_data(m)

    def at(angle):
        return jaxsim.forward(m, d.replace(qpos=d.qpos.at[2].set(angle))).qfrc_constraint

    offsets = np.array([1e-3, 1e-5])
    angles = jnp.pi / 4 + jnp.asarray(np.stack([offsets, -offsets]))
    both = jax.jit(jax.vmap(jax.vmap(lambda a: (at(a), jax.jacfwd(at)(a)))))
    values, derivatives = both(angles)
    for jump in (np.abs(values[0] - values[1]), np.abs(derivatives[0] - derivatives[1])):
        wide, narrow = jump.max(axis=-1)
        assert wide > 1e-6  # something happens there
        assert narrow < 0.02 * wide
    # the torque, in which a corner that is chosen hard has a lever, also to the left and right
    differences = slopes(jax.jit(jax.vmap(at)), angles[:, 0], 1e-5)
    np.testing.assert_allclose(derivatives[:, 0], differences, **ROUGH_DIFFERENCE)


@pytest.mark.slow
def test_the_length_can_be_differentiated_and_annealed():
    m = ball()

    def push(h, height):
        return force(m.replace(smooth=h), height)[1]

    for height in (-2 * H, 0.0, 3 * H):
        value = jax.jit(jax.value_and_grad(push))
        step = 1e-4 * H
        difference = (value(H + step, height)[0] - value(H - step, height)[0]) / (2 * step)
        np.testing.assert_allclose(value(H, height)[1], difference, rtol=1e-6)


# many worlds


PILE = """<mujoco><option cone="elliptic" tolerance="0" iterations="30" ls_iterations="50"/>
<worldbody><geom type="plane" size="1 1 .1"/>
<body pos="0 0 .101"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body pos=".02 0 .3015"><freejoint/><geom type="capsule" size=".1 .1" euler="90 0 0"/></body>
<body pos="3 0 1"><joint type="slide"/><geom size=".1"/></body>
</worldbody></mujoco>"""


@pytest.mark.slow
def test_many_worlds_are_each_like_one():
    m = jaxsim.load_model(PILE, smooth=H, contacts=8)  # of 14 candidates
    rng = np.random.default_rng(0)
    d = jaxsim.make_data(m)
    qvel = jnp.asarray(rng.uniform(-0.3, 0.3, (3, m.nv)))
    lengths = jnp.array([0.0, 0.5, 2.0]) * H

    def run(h, v):
        d1 = jaxsim.step(m.replace(smooth=h), d.replace(qvel=v))
        return d1.qvel, d1.ncon

    one = jax.jit(run)
    many, number = jax.jit(jax.vmap(run))(lengths, qvel)
    alone = [one(h, v) for h, v in zip(lengths, qvel, strict=True)]
    np.testing.assert_allclose(many, np.stack([x for x, _ in alone]), **STIFF)
    assert number.tolist() == [int(n) for _, n in alone] == [0, 6, 6]


@pytest.mark.slow
def test_single_precision_has_finite_derivatives():
    """Also those of contacts that are far away, or deep, for lengths from tiny to large."""
    m = jaxsim.load_model(PILE, smooth=H)
    m, d = jax.tree.map(
        lambda a: a.astype(jnp.float32) if a.dtype == jnp.float64 else a, (m, jaxsim.make_data(m))
    )

    def total(h, qpos):
        x = jaxsim.forward(m.replace(smooth=h), d.replace(qpos=qpos))
        return (x.qacc * x.qacc).sum()

    derivatives = jax.jit(jax.vmap(jax.grad(total, (0, 1)), (0, None)))
    lengths = jnp.array([0, 1e-20, 1e-14, 1e-6, 1e-1], jnp.float32)
    for drop in (0.0, 0.05):
        for a in derivatives(lengths, d.qpos.at[2].add(-drop)):
            assert a.dtype == jnp.float32
            assert np.isfinite(a).all()


# the switch


def test_zero_smoothing_compiles_the_same_program():
    def program(m):
        return program_text(jaxsim.step, m, jaxsim.make_data(m))

    today = program(ball(smooth=None))
    assert program(ball(smooth=0)) == today
    assert program(ball().replace(smooth=None)) == today
    assert program(ball()) != today


def test_a_saved_model_keeps_its_length(tmp_path):
    path = tmp_path / "ball.jxm"
    jaxsim.save_model(ball(), path)
    assert float(jaxsim.load_model(path).smooth) == H
    assert float(jaxsim.load_model(path, smooth=2 * H).smooth) == 2 * H
    assert jaxsim.load_model(path, smooth=0).smooth is None
    jaxsim.save_model(ball(smooth=None), path)
    assert jaxsim.load_model(path).smooth is None
    # a model that was saved without gets the points and the capacity too
    found = jaxsim.load_model(path, smooth=H)
    assert (float(found.smooth), found.ncontact) == (H, ball().ncontact)
    with pytest.raises(ValueError, match="smooth: was None when the model was made"):
        ball(smooth=None).replace(smooth=jnp.asarray(H))


def test_a_model_of_mujoco_may_be_smooth():
    theirs = mujoco.MjModel.from_xml_string(BOX)
    m, ours = jaxsim.put_model(theirs, smooth=H), jaxsim.load_model(BOX, smooth=H)
    assert float(m.smooth) == H
    assert m.ncontact == ours.ncontact == 8
    assert jaxsim.load_model(BOX).ncontact == 4


@pytest.mark.parametrize("length", [-1e-3, np.nan, np.inf, "1", True, np.ones(2)])
def test_a_length_that_is_none_is_refused(length):
    with pytest.raises(ValueError, match="smooth: expected a length in meters, at least 0"):
        ball(smooth=length)


# what may pull


@pytest.mark.slow
def test_contacts_with_adhesion_stay_as_they_are():
    xml = BALL.format(cone="elliptic", solref=".02 1", condim=3)
    xml = xml.replace('mass="2"', 'mass="2" adhesion="50" gap=".002"')
    hard, soft = jaxsim.load_model(xml), jaxsim.load_model(xml, smooth=H)
    heights = jnp.array([-1e-3, 1e-3, 3e-3])  # within, across the gap, beyond

    def felt_by(m):
        def at(z):
            d = jaxsim.make_data(m)
            d = jaxsim.forward(m, d.replace(qpos=jnp.zeros(2).at[1].set(z)))
            return d.qacc, d.ncon

        return jax.jit(jax.vmap(at))(heights)

    (before, number), (after, same) = felt_by(hard), felt_by(soft)
    np.testing.assert_array_equal(after, before)
    assert number.tolist() == same.tolist() == [1, 1, 0]


@pytest.mark.slow
def test_a_suction_cup_draws_by_the_weight_of_its_contact():
    xml = BALL.format(cone="pyramidal", solref=".02 1", condim=3)
    xml = xml.replace('<body pos="0 0 .1">', '<body name="cup" pos="0 0 .1">')
    cup = '<actuator><adhesion body="cup" ctrlrange="0 1" gain="7"/></actuator></mujoco>'
    m = jaxsim.load_model(xml.replace("</mujoco>", cup), smooth=H)

    def drawn(z):
        d = jaxsim.make_data(m)
        d = d.replace(qpos=jnp.zeros(2).at[1].set(z), ctrl=jnp.ones(1))
        return jaxsim.forward(m, d).qfrc_actuator[1]

    heights = H * jnp.array([-20.0, -1.0, 0.0, 2.0, 20.0])
    weights = np.where(heights < SMOOTHING_CUTOFF * H, 1 / (1 + np.exp(heights / H)), 0)
    np.testing.assert_allclose(jax.jit(jax.vmap(drawn))(heights), -7 * weights, **ROUNDING)


@pytest.mark.slow
def test_what_is_written_back_is_without_the_length():
    spec = jaxsim.Spec.from_string(BOX)
    m = jaxsim.load_model(spec, smooth=H)
    again = jaxsim.load_model(jaxsim.write_back(spec, m.replace(body_mass=2 * m.body_mass)))
    assert again.smooth is None
    np.testing.assert_array_equal(again.body_mass, 2 * m.body_mass)
