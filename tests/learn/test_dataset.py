"""Datasets: rows are those of the task, shards are bounded, read in random order, and verified."""

import json
import shutil
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from learn.tiny import SHORT_TRAINING, Seen
from many_processes import finish, run_commands, start

from jaxsim.cli import main
from jaxsim.errors import InputError

pytest.importorskip("pyarrow", reason="the extra dataset is not installed")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from jaxsim.learn.dataset import Dataset, DatasetWriter
    from jaxsim.learn.dataset.collect import collect, prepare_collection
    from jaxsim.learn.dataset.episodes import Exploration
    from jaxsim.learn.dataset.layout import Column
    from jaxsim.learn.dataset.writer import GROUP_ROWS, begin_dataset
    from jaxsim.learn.run import CONFIG_FILE, new_run, old_run

pytestmark = [pytest.mark.usefixtures("single_precision"), pytest.mark.filterwarnings("ignore")]

COLUMNS = (
    Column("observation", "float32", (2, 3)),
    Column("next_observation", "float32", (2, 3)),
    Column("action", "float32", (1,)),
    Column("reward", "float32"),
    Column("terminated", "bool"),
    Column("truncated", "bool"),
)
ROW_BYTES = 8 + 4 + 4 * (6 + 6 + 1 + 1) + 2


def made_up(number, steps):
    """Rows that name their episode and step."""
    seen = 1000 * number + np.arange(steps + 1, dtype=np.float32)[:, None, None]
    seen = seen + np.linspace(0, 0.5, 6, dtype=np.float32).reshape(2, 3)
    return {
        "observation": seen[:-1],
        "next_observation": seen[1:],
        "action": np.full((steps, 1), number, np.float32),
        "reward": np.arange(steps, dtype=np.float32),
        "terminated": np.arange(steps) == steps - 1,
        "truncated": np.zeros(steps, bool),
    }


def write(folder, lengths, shard_bytes=10**6, start=0, **options):
    begin_dataset(folder, COLUMNS, {"task": "made up"}, resume=start > 0)
    with DatasetWriter(folder, COLUMNS, shard_bytes=shard_bytes, **options) as writer:
        for i, steps in enumerate(lengths, start):
            writer.append(i, made_up(i, steps), score=float(i))
    return Dataset(folder)


def test_episodes_are_read_as_written_from_shards_of_bounded_size(tmp_path):
    lengths = [40, 100, 2500, 7, 60]  # the third is longer than a shard and than a row group
    data = write(tmp_path / "data", lengths, shard_bytes=150 * ROW_BYTES)
    assert data.lengths.tolist() == lengths
    assert data.returns.tolist() == [0, 1, 2, 3, 4]
    assert data.rows == sum(lengths)
    assert repr(data) == "Dataset(made up: 5 episodes, 2707 rows, 3 shards)"
    for number, steps in enumerate(lengths):
        found, rows = data.episode(number), made_up(number, steps)
        np.testing.assert_array_equal(found.observations[:-1], rows["observation"])
        np.testing.assert_array_equal(found.observations[1:], rows["next_observation"])
        np.testing.assert_array_equal(found.actions, rows["action"])
        np.testing.assert_array_equal(found.rewards, rows["reward"])
        np.testing.assert_array_equal(found.terminations, rows["terminated"])
        assert not found.truncations.any()
        assert found.infos == {}
    with pytest.raises(ValueError, match="episode 5: there is none"):
        data.episode(5)


@pytest.mark.parametrize("buffer_rows", [1, 2 * GROUP_ROWS, 10**6])
def test_minibatches_have_each_row_once_in_an_order_of_the_key(tmp_path, buffer_rows):
    data = write(tmp_path / "data", [700] * 9, shard_bytes=2000 * ROW_BYTES)

    def rows(seed, columns=None):
        key = jax.random.key(seed)
        batches = data.minibatches(key, 128, columns=columns, buffer_rows=buffer_rows)
        batches = list(batches)
        assert {len(b["episode"]) for b in batches} == {128}
        return {n: np.concatenate([b[n] for b in batches]) for n in batches[0]}

    first = rows(0)
    places = first["episode"] * 700 + first["step"]
    assert len(places) == 6300 // 128 * 128
    assert len(np.unique(places)) == len(places)
    np.testing.assert_array_equal(first["action"][:, 0], first["episode"])  # rows stay whole
    expected = 1000 * first["episode"] + first["step"]
    np.testing.assert_array_equal(first["observation"][:, 0, 0], expected)
    again = rows(0, columns=["step", "episode"])
    assert list(again) == ["step", "episode"]
    np.testing.assert_array_equal(again["step"], first["step"])
    assert (rows(1)["step"] != first["step"]).any()
    if buffer_rows == 10**6:  # a uniform permutation: no correlation with the written order
        assert abs(np.corrcoef(places, np.arange(len(places)))[0, 1]) < 0.05


def test_a_killed_writer_continues_without_duplicates(tmp_path):
    folder = tmp_path / "data"

    def killed():
        begin_dataset(folder, COLUMNS, {"task": "made up"}, resume=False)
        with DatasetWriter(folder, COLUMNS, shard_bytes=60 * ROW_BYTES) as writer:
            for i in range(5):
                writer.append(i, made_up(i, 30), score=float(i))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        killed()
    assert Dataset(folder).episodes.tolist() == [0, 1, 2, 3]
    # killed between a shard and its index, and while a shard is written
    for name in ("000002.parquet", ".000003-0123abcd.parquet"):
        (folder / "shards" / "process-00000" / name).write_bytes(b"PAR1")
    with DatasetWriter(folder, COLUMNS, process=1) as other:
        assert other.written == {0, 1, 2, 3}
        with pytest.raises(ValueError, match="episode 3 is written already"):
            other.append(3, made_up(3, 30), score=0.0)
        other.append(5, made_up(5, 30), score=5.0)
    data = write(folder, [30], start=4)
    assert data.episodes.tolist() == [0, 1, 2, 3, 4, 5]
    data.verify()
    assert not list(folder.glob("*/*/.*"))
    with pytest.raises(InputError, match="there is a dataset already; continue it by --resume"):
        begin_dataset(folder, COLUMNS, {"task": "made up"}, resume=False)
    with pytest.raises(InputError, match="task: the dataset has 'made up', these episodes 'x'"):
        begin_dataset(folder, COLUMNS, {"task": "x"}, resume=True)


def test_any_damage_is_reported_with_its_file(tmp_path):
    data = write(tmp_path / "data", [300, 300, 300], shard_bytes=400 * ROW_BYTES)
    shard = data.folder / "shards" / "process-00000" / "000001.parquet"
    intact = shard.read_bytes()
    for place in (100, len(intact) // 2, len(intact) - 200, len(intact) - 6):
        shard.write_bytes(intact[:place] + bytes([intact[place] ^ 16]) + intact[place + 1 :])
        with pytest.raises(InputError, match=r"000001\.parquet: damaged: its SHA-256 differs"):
            data.verify()
    place = len(intact) // 2
    shard.write_bytes(intact[:place] + bytes([intact[place] ^ 1]) + intact[place + 1 :])
    with pytest.raises(InputError, match=r"000001\.parquet: cannot be read"):
        list(data.minibatches(jax.random.key(0), 10))
    np.testing.assert_array_equal(data.episode(0).rewards, np.arange(300))
    shard.write_bytes(intact[:-9])
    with pytest.raises(InputError, match=r"bytes, expected .*; delete it and .*000001\.json"):
        Dataset(data.folder)
    shard.unlink()
    with pytest.raises(InputError, match=r"000001\.parquet: damaged: the file is missing"):
        Dataset(data.folder)
    shard.write_bytes(intact)
    index = data.folder / "index" / "process-00000" / "000001.json"
    index.write_text(index.read_text().replace("300", "299"))
    with pytest.raises(InputError, match=r"000001\.json: damaged: its checksum"):
        Dataset(data.folder)
    index.unlink()
    for part in ("shards", "index"):  # copied
        shutil.copytree(data.folder / part / "process-00000", data.folder / part / "process-00001")
    with pytest.raises(InputError, match=r"episode 0 is in .*process-00000.* too"):
        Dataset(data.folder)


def test_wrong_arguments_are_named(tmp_path):
    with pytest.raises(InputError, match=r"there is no dataset: it has no dataset\.json"):
        Dataset(tmp_path)
    data = write(tmp_path / "data", [30])
    key = jax.random.key(0)
    with pytest.raises(ValueError, match="size: expected 1 to 30, the rows there are, got 31"):
        data.minibatches(key, 31)
    with pytest.raises(ValueError, match="no column 'rewards'; did you mean 'reward'"):
        data.minibatches(key, 3, columns=["rewards"])
    with pytest.raises(ValueError, match="buffer_rows: expected a positive number, got 0"):
        data.minibatches(key, 3, buffer_rows=0)
    with pytest.raises(ValueError, match="columns: 'reward' is missing"):
        begin_dataset(tmp_path / "other", COLUMNS[:3], {}, resume=False)
    writer = DatasetWriter(data.folder, COLUMNS)
    rows = made_up(1, 5)
    with pytest.raises(ValueError, match=r"reward: expected float32\[5\], got float64\[5\]"):
        writer.append(1, {**rows, "reward": rows["reward"].astype(float)}, score=0.0)
    with pytest.raises(ValueError, match="expected the columns"):
        writer.append(1, {**rows, "more": rows["reward"]}, score=0.0)
    with pytest.raises(ValueError, match="episode 1 has no rows"):
        writer.append(1, made_up(1, 0), score=0.0)


SETTINGS = 'task = "learn.tiny:Seen"\n' + SHORT_TRAINING
ROW = {"step": 0, "seconds": 1.0, "score_sd": 0.0, "actions": 25.0, "diverged": 0}


@pytest.fixture(scope="module")
def run(tmp_path_factory, single_precision):
    """A run with one checkpoint, of policies that have learned nothing."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "seen.toml").write_text(SETTINGS)
    run = new_run(folder / "seen.toml", folder / "run")
    run.folder.mkdir()
    (run.folder / CONFIG_FILE).write_text(SETTINGS)
    state = jax.jit(run.learner.begin)(run.start_keys())
    mean = {"training_score": 0.0, "training_actions": 25.0}
    rows = [ROW | mean | {"seed": seed, "score": float(seed)} for seed in range(2)]
    run.checkpoints.save(0, state, rows)
    return old_run(run.folder)


@pytest.fixture(scope="module")
def whole(run, tmp_path_factory, single_precision):
    """A dataset of ten episodes with noise, and what was reported."""
    folder, said = tmp_path_factory.mktemp("whole") / "data", []
    options = {"worlds": 4, "exploration": Exploration(0.05, 0.02), "states": True}
    collect(prepare_collection(run, folder, 10, **options), said.append)
    return Dataset(folder), options, said


def test_rows_are_those_of_a_world_that_takes_the_same_actions(whole, run):
    data, _, said = whole
    assert data.description["policy"] == 1  # the one with the highest return
    assert [p.done for p in said] == [0, 4, 8, 10]
    assert said[-1].rows == data.rows
    assert data.episodes.tolist() == list(range(10))
    assert 1 < data.lengths.min() < data.lengths.max() == 25  # both ends occur
    env = Seen()
    step = jax.jit(env.step)
    for number in (int(data.lengths.argmin()), int(data.lengths.argmax()), 9):
        found = data.episode(number)
        d = env.begin.replace(qpos=jnp.asarray(found.infos["qpos"][0]))
        state = env.begun(env.m, d)
        for i, action in enumerate(found.actions):
            np.testing.assert_allclose(
                found.observations["place"][i], state.obs["place"], rtol=1e-4
            )
            np.testing.assert_allclose(
                found.observations["speed"][i], state.obs["speed"], rtol=1e-3, atol=1e-4
            )
            np.testing.assert_array_equal(found.infos["qpos"][i], found.observations["place"][i])
            state = step(state, jnp.asarray(action))
            np.testing.assert_allclose(found.rewards[i], state.reward, rtol=1e-3, atol=1e-5)
            assert found.terminations[i] == bool(state.info["terminated"])
        np.testing.assert_allclose(found.observations["place"][-1], state.obs["place"], rtol=1e-4)
        assert found.truncations[-1] == (not found.terminations[-1])
        assert not found.truncations[:-1].any()
        assert data.returns[number] == pytest.approx(found.rewards.sum(dtype=float))


def test_actions_are_those_of_the_policy_with_noise(whole, run):
    data, _, _ = whole
    rows = next(data.minibatches(jax.random.key(0), data.rows))
    policy = jax.tree.map(lambda x: x[1], run.restore()[1])
    seen = {name: jnp.asarray(rows[f"observation.{name}"]) for name in ("place", "speed")}
    away = rows["action"] - np.asarray(run.learner.act(policy, seen))
    noise, random = np.abs(away) < 0.25, np.abs(away) > 0.25  # five standard deviations
    assert away[noise].std() == pytest.approx(0.05, rel=0.2)
    assert 0 < random.mean() < 0.06
    assert (np.abs(rows["action"]) <= 1).all()


def test_another_division_and_an_interruption_give_the_same_episodes(
    whole, run, tmp_path, monkeypatch
):
    data, options, _ = whole
    folder = tmp_path / "data"
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    small = {**options, "shard_bytes": 1}  # a shard for each episode
    for process in (0, 1):
        plan = prepare_collection(run, folder, 10, resume=process > 0, **small)
        monkeypatch.setattr(jax, "process_index", lambda process=process: process)

        def stop(progress, process=process):
            if process == 1:
                raise KeyboardInterrupt

        if process == 1:  # before its first batch
            with pytest.raises(KeyboardInterrupt):
                collect(plan, stop)
        else:
            collect(plan)
    assert Dataset(folder).episodes.tolist() == [0, 1, 2, 3, 8, 9]
    (
        folder / "index" / "process-00000" / "000001.json"
    ).unlink()  # killed before the index of episode 1
    monkeypatch.undo()
    result = collect(prepare_collection(run, folder, 10, resume=True, **small))
    assert result.done == result.total == 10
    again = Dataset(folder)
    assert again.episodes.tolist() == list(range(10))
    for number in range(10):
        jax.tree.map(np.testing.assert_array_equal, again.episode(number), data.episode(number))
    assert collect(prepare_collection(run, folder, 10, resume=True, **small)).rows == 0
    changed = {**small, "exploration": Exploration()}
    with pytest.raises(InputError, match=r"noise: the dataset has 0\.05, these episodes 0\.0"):
        prepare_collection(run, folder, 10, resume=True, **changed)


@pytest.mark.slow
def test_two_processes_write_the_episodes_of_one(run, tmp_path):
    words = f"collect {run.folder} --episodes 10 --worlds 4 --noise 0.1".split()
    words += ["--heartbeat", "600", "--out"]  # on a busy machine a process may be late
    first, second = run_commands([*words, "two"], 2, cwd=tmp_path)
    assert first.code == 0, first.err
    assert second.code == 0, second.err
    assert second.out == ""
    (one,) = finish([start(["-m", "jaxsim", *words, "one"], cwd=tmp_path)])
    assert one.code == 0, one.err
    two, one = Dataset(tmp_path / "two"), Dataset(tmp_path / "one")
    assert f"two: 10 episodes, {two.rows} new rows" in first.out
    assert sorted(p.name for p in (two.folder / "shards").iterdir()) == [
        "process-00000", "process-00001"
    ]  # fmt: skip
    for number in range(10):
        jax.tree.map(np.testing.assert_array_equal, two.episode(number), one.episode(number))


def test_the_command_reports_what_it_writes_and_wrong_options(whole, run, tmp_path, capsys):
    out = tmp_path / "data"
    words = ["collect", str(run.folder), "--out", str(out), "--no-cache"]
    assert main([*words, "--episodes", "3", "--worlds", "4", "--shard-size", "0.001"]) == 0
    text = capsys.readouterr().out
    assert "columns     observation.place[1], next_observation.place[1], " in text
    rows = Dataset(out).rows
    assert f"{out}: 3 episodes, {rows} new rows" in text
    assert len(list(out.glob("shards/*/*.parquet"))) > 1
    assert main([*words]) == 2
    assert "continue it by --resume" in capsys.readouterr().err
    for option, message in (
        (("--policy", "2"), "--policy: expected 0 to 1, got 2"),
        (("--random", "1.5"), "--random: expected a probability from 0 to 1, got 1.5"),
        (("--noise", "-1"), "--noise: expected a finite number of at least 0, got -1.0"),
        (("--checkpoint", "7"), "no checkpoint of step 7; there are 0"),
    ):
        assert main([*words, *option]) == 2
        assert message in capsys.readouterr().err


def test_a_missing_package_is_named_with_its_extra(run, tmp_path, capsys, monkeypatch):
    for name in [
        n for n in sys.modules if n.startswith(("jaxsim.learn.dataset", "jaxsim.cli.coll"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["collect", str(run.folder), "--out", str(tmp_path / "data"), "--no-cache"]) == 2
    assert (
        "this needs pyarrow; install the extra 'dataset': pip install '" in capsys.readouterr().err
    )


def test_descriptions_are_json_that_other_programs_read(whole):
    data, _, _ = whole
    content = json.loads((data.folder / "dataset.json").read_text())
    assert content["format"] == "jaxsim dataset"
    assert content["action_low"] == [-1.0]
    assert content["dt"] == pytest.approx(0.04)
    names = [column["name"] for column in content["columns"]]
    assert names[:2] == ["episode", "step"]
    assert names[-2:] == ["qpos", "qvel"]
    table = pytest.importorskip("pandas").read_parquet(data.folder / "shards")
    assert len(table) == data.rows
    assert set(names) <= set(table.columns)
