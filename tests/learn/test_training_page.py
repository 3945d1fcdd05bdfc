"""The page of a training: evaluations play, training worlds follow, the curve grows."""

import time
import warnings
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from learn.tiny import SHORT_TRAINING
from view.visitor import Visitor

from jaxsim.cli import main
from jaxsim.learn.curve import CurveRow

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from jaxsim.learn.evaluate import Scores
    from jaxsim.learn.live.training_page import TrainingPage, _EvaluationMotion
    from jaxsim.learn.run import new_run

pytestmark = [pytest.mark.usefixtures("single_precision"), pytest.mark.filterwarnings("ignore")]

SETTINGS = 'task = "learn.tiny:Hold"\n' + SHORT_TRAINING
ANGLES = np.array([0.25, 0.5, 0.75])  # of the worlds of an evaluation, all the time


@pytest.fixture
def settings(tmp_path):
    path = tmp_path / "hold.toml"
    path.write_text(SETTINGS)
    return path


def scores(angles):
    """Evaluations of two seeds, of which the second has these angles in three episodes."""
    qpos = np.zeros((2, 25, 3, 1), np.float32)
    qpos[1] = angles[:, None]
    steps = np.full((2, 3), 25)
    return Scores(np.zeros((2, 3)), steps, np.zeros((2, 3), bool), {"qpos": qpos})


def rows(step, *values):
    return [
        CurveRow(step, 1.0, seed, value, 0.0, 25.0, 0, 0.0, 0.0)
        for seed, value in enumerate(values)
    ]


def orientation(angle):
    """The orientation of the pendulum at an angle."""
    return np.array([np.cos(angle / 2), 0, np.sin(angle / 2), 0])


def orientations(visitor):
    """The orientations of the worlds that are drawn, (worlds, 4)."""
    nodes = visitor.nodes.items()
    bodies = [n["wxyz"] for name, n in nodes if name.count("/") == 2 and "wxyz" in n]
    first = bodies if len(bodies) == 1 else []
    others = [n["batched_wxyzs"] for name, n in nodes if name.startswith("/worlds/")]
    return np.concatenate([np.reshape(x, (-1, 4)) for x in (*first, *others)] or [np.zeros((0, 4))])


def shows(visitor, angles):
    seen = orientations(visitor)
    expected = np.stack([orientation(a) for a in angles])
    return seen.shape == expected.shape and np.allclose(seen, expected, atol=1e-3)


def test_a_page_shows_the_evaluation_the_training_and_the_curve(settings, tmp_path):
    run = new_run(settings, tmp_path / "run")
    data = jax.eval_shape(run.learner.begin, run.start_keys()).env_state.world.data
    data = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), data)
    data = data.replace(qpos=data.qpos.at[0, :3, 0].set(jnp.array([1.0, 1.2, 1.4])))
    learner = SimpleNamespace(env_state=SimpleNamespace(world=SimpleNamespace(data=data)))

    with TrainingPage(run, worlds=3, port=0) as page:
        page.after_update(2_000, learner)  # no page is open: nothing is copied
        assert page._training is None
        with Visitor(page.viewer.server) as visitor:
            visitor.wait(lambda: "no evaluation yet" in visitor.text())
            time.sleep(0.2)  # longer than the shortest time between copies
            page.after_update(2_048, learner)
            visitor.wait(lambda: "**training** · 2,048 actions" in visitor.text())
            visitor.wait(lambda: shows(visitor, [1.0, 1.2, 1.4]))

            page.after_evaluation(2_048, rows(2_048, 3.0, 5.0), scores(ANGLES))
            visitor.wait(lambda: "2,048 of 4,000 actions: return 4" in visitor.text())
            visitor.wait(lambda: "**evaluation** after 2,048 actions" in visitor.text())
            visitor.wait(lambda: shows(visitor, ANGLES))
            time.sleep(0.2)
            page.after_update(3_000, learner)
            assert page._training is None  # the evaluation is shown

            page.after_evaluation(4_096, rows(4_096, 7.0, 6.0), scores(ANGLES))
            assert [x.tolist() for x in page._plot.data] == [
                [2_048, 4_096], [4.0, 6.5], [3.0, 7.0], [5.0, 6.0]
            ]  # fmt: skip
            visitor.wait(lambda: shows(visitor, [0, 0, 0]))  # the first seed is the best now

            visitor.set("show", "training worlds")
            visitor.wait(lambda: page._choice.value == "training worlds")
            page.after_update(4_096, learner)
            visitor.wait(lambda: shows(visitor, [1.0, 1.2, 1.4]))
        assert page.fault is None


def test_a_fault_of_the_drawing_is_shown_and_the_training_goes_on(settings, tmp_path, monkeypatch):
    def broken(_):
        raise RuntimeError("no more memory")

    run = new_run(settings, tmp_path / "run")
    with TrainingPage(run, worlds=2, port=0) as page, Visitor(page.viewer.server) as visitor:
        visitor.wait(page._is_open)
        monkeypatch.setattr(page.viewer, "show_state", broken)
        page.after_evaluation(2_048, rows(2_048, 3.0, 5.0), scores(ANGLES))
        visitor.wait(lambda: "**stopped**: no more memory" in visitor.text())
        assert str(page.fault) == "no more memory"
        page.after_evaluation(4_096, rows(4_096, 3.0, 5.0), scores(ANGLES))
        visitor.wait(lambda: "4,096 of 4,000 actions: return 4" in visitor.text())


def test_episodes_play_in_real_time_and_wait_for_the_longest():
    motion = {"qpos": np.arange(8.0).reshape(1, 4, 2, 1)}  # 2 t + episode
    given = Scores(np.zeros((1, 2)), np.array([[4, 2]]), np.zeros((1, 2), bool), motion)
    played = _EvaluationMotion(given, 0, 3, 0.5, 7)
    seen = []
    for time_of_motion in (0.0, 0.6, 1.2, 1.7, 2.1):
        state, now = played.at(played._began + time_of_motion)
        seen.append((now, state["qpos"][:, 0].tolist()))
    # the second episode ends after two actions; the third world repeats it
    assert seen == [
        (0.0, [0, 1, 1]), (0.5, [2, 3, 3]), (1.0, [4, 3, 3]), (1.5, [6, 3, 3]), (0.0, [0, 1, 1])
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "0"], "--port: only with --view"),
        (["--view-worlds", "3"], "--view-worlds: only with --view"),
        (["--view", "--processes", "1"], "--view: not with --distributed or --processes"),
    ],
)
def test_wrong_options_of_the_page(settings, tmp_path, capsys, options, message):
    words = ["train", str(settings), "--out", str(tmp_path / "run"), "--no-cache"]
    assert main([*words, *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
