"""Write tosses.npz from the recordings of the ContactNets data set.

    python make_data.py RECORDINGS.npz tosses.npz

RECORDINGS.npz has all 470 tosses: `pos` (n, 3) [m], `quat` (n, 4) as w, x, y, z, `start` (471,),
the first row of each toss, and `dt` [s]. 164 tosses are drawn at random: 64 for fits, 100 held
back.

Velocities are not measured. That of the first sample is the line through the samples of the free
flight, less the fall: the only derived number in the file, and NaN in all later rows.
"""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from jaxsim.identify import TimeSeries, write_recordings

COUNT, SEED = 164, 0
GRAVITY, HALF, CLEARANCE = 9.81, 0.0524, 0.004
MIN_SAMPLES, MAX_SAMPLES = 3, 14  # of the flight
CORNERS = HALF * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
NAMES = [*(f"qpos:root[{i}]" for i in range(7)), *(f"qvel:root[{i}]" for i in range(6))]


def flight(pos: np.ndarray, rotations: Rotation) -> int:
    """Return how many samples precede the first contact, within bounds."""
    lowest = [(r.apply(CORNERS)[:, 2] + p[2]).min() for r, p in zip(rotations, pos, strict=True)]
    return int(np.clip(np.argmax(np.array(lowest) < CLEARANCE), MIN_SAMPLES, MAX_SAMPLES))


def initial_velocity(times: np.ndarray, pos: np.ndarray, rotations: Rotation) -> np.ndarray:
    """Return the velocity at the first sample of a flight, as in qvel, (6,)."""
    fallen = pos + 0.5 * GRAVITY * times[:, None] ** 2 * [0, 0, 1]
    centered = times - times.mean()
    linear = centered @ fallen / (centered @ centered)
    # the moments of inertia of a cube are equal: it rotates about a fixed axis
    turned = (rotations[0].inv() * rotations).as_rotvec()
    return np.concatenate([linear, centered @ turned / (centered @ centered)])


def toss(pos: np.ndarray, quat: np.ndarray, dt: float) -> TimeSeries:
    """Return a toss with quaternions of continuous sign."""
    flips = np.cumprod([1, *(np.sign(a @ b) for a, b in pairwise(quat))])
    quat = quat * flips[:, None]
    times, rotations = dt * np.arange(len(pos)), Rotation.from_quat(quat, scalar_first=True)
    velocity = np.full((len(pos), 6), np.nan)
    n = flight(pos, rotations)
    velocity[0] = initial_velocity(times[:n], pos[:n], rotations[:n])
    return TimeSeries(times, np.concatenate([pos, quat, velocity], 1), NAMES)


def main(source: str, target: str) -> None:
    data = np.load(source)
    pos, quat = (data[n].astype(np.float64) for n in ("pos", "quat"))
    starts = np.append(data["start"][:-1], len(pos))
    chosen = np.random.default_rng(SEED).permutation(len(starts) - 1)[:COUNT]
    rows = [slice(starts[k], starts[k + 1]) for k in chosen]
    write_recordings(target, [toss(pos[r], quat[r], float(data["dt"])) for r in rows])
    print(f"{target}: {COUNT} tosses, {Path(target).stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
