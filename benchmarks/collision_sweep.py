"""Contacts of all pairs of geom types in many poses, compared with MuJoCo.

    python benchmarks/collision_sweep.py [--kinds sphere box ...] [--poses 1000]
        [--json benchmarks/results/collision_sweep.json]

Each pair of types is tested in poses of the classes in `placements.py`, with geoms of random sizes,
in double precision. A pose agrees if the number of contacts is equal and each, paired with the
nearest one of MuJoCo, has its distance, normal and position to 1e-7 (pairs with formulas) or 1e-5
(iterative pairs; on round surfaces the normals of MuJoCo are accurate to 1e-4). `deepest` compares
the least distance alone. MuJoCo's iterations have tighter limits than its defaults:
`placements.SEARCH`.

Where flat faces touch, MuJoCo keeps four of the corners; rounding may decide which (a cylinder's
cap is a regular polygon of 16 corners), so distances and positions of some poses differ without an
error. Prints the percentages by pair, and of its worst class; the JSON file has them by class, with
the largest errors, their poses, and `contacts`, the number of MuJoCo's contacts in a pose.
"""

import argparse
import itertools
import json
import time
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import placements
from placements import ANALYTIC, CLASSES, KINDS, PAIRS, ROUND, STATIONS

import jaxsim
from jaxsim.errors import ModelError, UnsupportedWarning
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.collision.contacts import collision
from jaxsim.transforms.layout import batched

ROOM = 50  # contacts of a pair: MuJoCo's limit
FORMULA, SEARCHED, ROUND_NORMAL = 1e-7, 1e-5, 1e-4  # tolerances
COLUMNS = ("count", "deepest", "dist", "normal", "pos", "all")


def main() -> None:
    args = arguments()
    jax.config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore", UnsupportedWarning)
    rows = []
    print(heading())
    for pair in PAIRS:
        if set(pair) <= set(args.kinds):
            rows.append(sweep(pair, args.poses, args.seed))
            print(line(rows[-1]), flush=True)
            jax.clear_caches()
    if args.json:
        what = {"mujoco": mujoco.__version__, "jax": jax.__version__, "poses": args.poses}
        args.json.write_text(json.dumps(what | {"rows": rows}, indent=1))


def arguments() -> argparse.Namespace:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    ap.add_argument("--poses", type=int, default=1000, help="of each pair of kinds, about")
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--json", type=Path, help="file for the results")
    return ap.parse_args()


def sweep(pair: tuple[str, str], poses: int, seed: int) -> dict:
    """Return the agreement of one pair of types, by class and of all poses."""
    row: dict = {"pair": "-".join(pair)}
    text, began = placements.xml(pair, seed), time.perf_counter()
    try:
        ours = contacts_of(text)
    except ModelError as error:
        return row | {"refused": str(error).splitlines()[0].split("): ")[-1]}
    theirs = placements.oracle(text)
    tolerance = tolerances(pair)
    each = -(-poses // (len(CLASSES) * STATIONS))
    errors, number = {}, {}
    for name, kind in CLASSES.items():
        placed = placements.place(theirs, name, each, seed)
        found = ours(placed.qpos, kind.margin)
        number[name] = float(np.mean([len(c) for of in placed.contacts for c in of]))
        errors[name] = [
            compare(a, b)
            for mine, oracle in zip(found, placed.contacts, strict=True)
            for a, b in zip(mine, oracle, strict=True)
        ]
    row |= summary(list(itertools.chain(*errors.values())), tolerance)
    row["classes"] = {
        name: summary(of, tolerance) | {"contacts": round(number[name], 2), "worst": worst(of)}
        for name, of in errors.items()
    }
    return row | {"tolerance": tolerance.tolist(), "seconds": round(time.perf_counter() - began, 1)}


def tolerances(pair: tuple[str, str]) -> np.ndarray:
    """Return the tolerances of the errors in COLUMNS."""
    size = FORMULA if pair in ANALYTIC else SEARCHED
    normal = ROUND_NORMAL if pair not in ANALYTIC and set(pair) & set(ROUND) else size
    return np.array([size, size, size, normal, size])


def contacts_of(text: str):
    """Return a function from qpos `[poses, nq]` and a margin to contacts, compiled once.

    Its results have the form of `placements.Placements.contacts`.
    """
    m = jaxsim.load_model(text, contacts=STATIONS * ROOM)
    start = jaxsim.make_data(m, keep=("contact", "ncon"))

    def one(m, d):
        return collision(m, kinematics(m, d))

    many = jax.jit(jax.vmap(batched(one), in_axes=(None, 0)))

    def contacts(qpos: np.ndarray, margin: float) -> list[list[np.ndarray]]:
        model = m.replace(pair_margin=jnp.full_like(m.pair_margin, margin))
        d = jax.tree.map(lambda a: jnp.broadcast_to(a, (len(qpos), *a.shape)), start)
        c = jax.device_get(many(model, d.replace(qpos=jnp.asarray(qpos))).contact)
        table = np.concatenate([c.dist[..., None], c.pos, c.frame[..., 0, :]], axis=-1)
        of = np.where(c.geom[..., 0] >= 0, placements.station_of(c.geom), -1)
        return [
            [rows[at == k] for k in range(STATIONS)] for rows, at in zip(table, of, strict=True)
        ]

    return contacts


def compare(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return the errors of the contacts of one pose, by COLUMNS but the last; inf if missing."""
    count = 0.0 if len(ours) == len(theirs) else np.inf
    if not len(ours) or not len(theirs):
        return np.full(5, count)
    deepest = abs(ours[:, 0].min() - theirs[:, 0].min())
    if count:
        return np.array([np.inf, deepest, np.inf, np.inf, np.inf])
    gap = np.abs(ours[matched(ours, theirs)] - theirs).max(axis=0)
    return np.array([0.0, deepest, gap[0], gap[4:].max(), gap[1:4].max()])


def matched(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Match contacts greedily by distance; return our index for each of theirs."""
    far = np.abs(ours[:, None] - theirs[None]).max(axis=2)
    order = np.zeros(len(theirs), int)
    for _ in theirs:
        i, j = np.unravel_index(np.argmin(far), far.shape)
        order[j] = i
        far[i], far[:, j] = np.inf, np.inf
    return order


def summary(errors: list[np.ndarray], tolerance: np.ndarray) -> dict:
    """Return percentages of poses that agree, by COLUMNS."""
    good = np.array(errors) <= tolerance
    good = np.c_[good, good.all(axis=1)]
    return {"n": len(good)} | {
        name: round(100.0 * float(share), 2)
        for name, share in zip(COLUMNS, good.mean(axis=0), strict=True)
    }


def worst(errors: list[np.ndarray]) -> dict:
    """Return the largest finite error of each kind, and the indices of its pose and station."""
    table = np.array(errors)
    table = np.where(np.isfinite(table), table, -1.0)
    at = table.argmax(axis=0)
    return {
        name: {
            "error": float(table[i, k]),
            "pose": int(i) // STATIONS,
            "station": int(i) % STATIONS,
        }
        for k, (name, i) in enumerate(zip(COLUMNS, at, strict=False))
        if k and table[i, k] >= 0
    }


def heading() -> str:
    return f"{'pair':22s}" + "".join(f"{c:>9s}" for c in COLUMNS) + "  worst class"


def line(row: dict) -> str:
    if "refused" in row:
        return f"{row['pair']:22s} refused: {row['refused'][:110]}"
    low = min(row["classes"], key=lambda name: row["classes"][name]["all"])
    shares = "".join(f"{row[c]:9.1f}" for c in COLUMNS)
    share = row["classes"][low]["all"]
    return f"{row['pair']:22s}{shares}" + (f"  {low} {share:.1f}" if share < 100 else "")


if __name__ == "__main__":
    main()
