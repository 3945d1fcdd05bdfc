"""Inertias, friction, armature and offsets of a robot arm by linear least squares of torques.

The torque of inverse dynamics is linear in mass, mass times center of mass and inertia about the
frame's origin of each body, in armature, viscous and Coulomb friction, and offsets:

    torque = Y(q, v, a) p

(Atkeson, An and Hollerbach, Estimation of inertial parameters of manipulator loads and links,
1986). Columns of Y are differences of `jaxsim.inverse` of models that differ in one of these
numbers; they are exact because it is linear. Rows are weighted by the residual of each joint. Many
directions of p have no effect on torques: they keep the values of the given model, by a weak prior.

Positions, velocities and torques are resampled at 1 kHz and pass the same zero-phase Butterworth
filter; accelerations are central differences of the filtered velocities.
"""

import argparse
from typing import NamedTuple

import jax
import numpy as np
from lxml import etree
from scipy import signal

import jaxsim

RATE, CUTOFF, ORDER, EVERY, EDGE = 1000.0, 10.0, 4, 10, 500  # [Hz], [Hz], and samples
TRAIN = 2 / 3  # of the log; the rest is held back
SMOOTHING = 0.02  # velocity within which Coulomb friction changes sign [rad/s]
# Prior deviations: part of the mass, of mass times a length [m], of mass times its square
PRIOR, LENGTH = 0.5, 0.1
ARMATURE_SD, FRICTION_SD, OFFSET_SD = 1.0, 10.0, 10.0
RANK_TOLERANCE = 1e-3  # part of the largest singular value, for columns of unit norm
KINDS = ("m", "mx", "my", "mz", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


class Motion(NamedTuple):
    """Filtered samples: positions, velocities, accelerations, torques, (n, 7) each."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    torque: np.ndarray


def read_motion(path) -> Motion:
    """Return the filtered samples of a log."""
    log = np.load(path)
    time = log["time"].astype(float)
    even = np.arange(time[0], time[-1], 1 / RATE)
    b, a = signal.butter(ORDER, CUTOFF, fs=RATE)

    def smooth(name: str) -> np.ndarray:
        columns = [np.interp(even, time, x) for x in log[name].astype(float).T]
        return signal.filtfilt(b, a, np.stack(columns, 1), axis=0)

    q, v, torque = smooth("qpos"), smooth("qvel"), smooth("torque")
    rows = slice(EDGE, len(even) - EDGE, EVERY)
    return Motion(q[rows], v[rows], np.gradient(v, 1 / RATE, axis=0)[rows], torque[rows])


def bare_arm(path) -> tuple[jaxsim.Model, np.ndarray, np.ndarray]:
    """Return an arm without geoms, damping and armature, and these two of its joints, (7,) each."""
    tree = etree.parse(str(path))
    for name in ("geom", "asset", "actuator", "sensor", "keyframe", "contact", "light", "site"):
        for element in tree.findall(f".//{name}"):
            element.getparent().remove(element)
    given = jaxsim.load_model(etree.tostring(tree, encoding="unicode"))
    damping, armature = np.array(given.dof_damping), np.array(given.dof_armature)
    for joint in tree.findall(".//joint"):
        for name in ("damping", "armature", "frictionloss"):
            joint.attrib.pop(name, None)
    m = jaxsim.load_model(etree.tostring(tree, encoding="unicode"))
    return m, damping, armature


def to_linear(m: jaxsim.Model) -> np.ndarray:
    """Return mass, mass times center, inertia about the origin of each body, (nbody, 10)."""
    found = []
    fields = (m.body_mass, m.body_ipos, m.body_iquat, m.body_inertia)
    for mass, center, quat, moments in zip(*map(np.asarray, fields), strict=True):
        R = rotation(quat)
        inertia = R @ np.diag(moments) @ R.T + mass * (center @ center * np.eye(3))
        inertia -= mass * np.outer(center, center)
        found.append([mass, *(mass * center), *(inertia[i, j] for i, j in PAIRS)])
    return np.array(found)


def rotation(quat: np.ndarray) -> np.ndarray:
    """Return the matrix of a quaternion w, x, y, z."""
    w, x, y, z = quat
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


def from_linear(p: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Return mass, center, orientation and moments of the principal axes; see `to_linear`."""
    if p[0] == 0:  # a frame without matter
        return 0.0, np.zeros(3), np.array([1.0, 0, 0, 0]), np.zeros(3)
    mass, center = p[0], p[1:4] / p[0]
    inertia = np.zeros((3, 3))
    for value, (i, j) in zip(p[4:], PAIRS, strict=True):
        inertia[i, j] = inertia[j, i] = value
    inertia -= mass * (center @ center * np.eye(3) - np.outer(center, center))
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 2] *= np.linalg.det(axes)
    trace = np.trace(axes)
    if trace > 0:
        w = np.sqrt(1 + trace) / 2
        vector = np.array(
            [axes[2, 1] - axes[1, 2], axes[0, 2] - axes[2, 0], axes[1, 0] - axes[0, 1]]
        )
        return mass, center, np.array([w, *(vector / (4 * w))]), moments
    # half a revolution or nearly: the largest diagonal entry determines the axis
    i = int(np.argmax(np.diag(axes)))
    j, k = (i + 1) % 3, (i + 2) % 3
    r = np.sqrt(1 + axes[i, i] - axes[j, j] - axes[k, k])
    quat = np.zeros(4)
    quat[0], quat[1 + i] = (axes[k, j] - axes[j, k]) / (2 * r), r / 2
    quat[1 + j], quat[1 + k] = (
        (axes[j, i] + axes[i, j]) / (2 * r),
        (axes[k, i] + axes[i, k]) / (2 * r),
    )
    return mass, center, quat, moments


def torques(m: jaxsim.Model, bodies: np.ndarray, motion: Motion) -> np.ndarray:
    """Return torques of models whose bodies have other inertias, (models, n, nv).

    Args:
      m: the model.
      bodies: linear parameters of all bodies of each model, (models, nbody, 10).
      motion: the samples.
    """
    fields = [[from_linear(p) for p in model[1:]] for model in bodies]
    d = jaxsim.make_data(m)

    def one(mass, ipos, iquat, inertia, q, v, a):
        world = np.zeros(1), np.zeros((1, 3)), np.eye(4)[:1], np.zeros((1, 3))
        given = (mass, ipos, iquat, inertia)
        whole = [jax.numpy.concatenate([w, x]) for w, x in zip(world, given, strict=True)]
        names = ("body_mass", "body_ipos", "body_iquat", "body_inertia")
        changed = m.replace(**dict(zip(names, whole, strict=True)))
        return jaxsim.inverse(changed, d.replace(qpos=q, qvel=v, qacc=a)).qfrc_inverse

    samples = jax.vmap(one, (None, None, None, None, 0, 0, 0))
    program = jax.jit(samples)
    columns = [
        np.stack([np.stack([body[k] for body in model]) for model in fields]) for k in range(4)
    ]
    rows = zip(*columns, strict=True)
    return np.stack([np.asarray(program(*row, motion.q, motion.v, motion.a)) for row in rows])


class Regressor(NamedTuple):
    """Y of all samples, (n, nv, k), names of the columns, and prior means and deviations, (k,)."""

    Y: np.ndarray
    names: list[str]
    mean: np.ndarray
    sd: np.ndarray


def regressor(m: jaxsim.Model, motion: Motion, damping, armature) -> Regressor:
    """Return the regressor of the bodies that joints move, and of the joints."""
    base = to_linear(m)
    moving = [b for b in range(1, m.nbody) if m.body_weldid[b] != 0 and base[b, 0] > 0]
    variants, names, mean, sd = [base], [], [], []
    for body in moving:
        for k, kind in enumerate(KINDS):
            changed = base.copy()
            changed[body, k] += base[body, 0] * LENGTH ** (0 if k == 0 else 1 if k < 4 else 2)
            variants.append(changed)
            names.append(f"{m.names['body'][body]}.{kind}")
            mean.append(base[body, k])
            sd.append(PRIOR * (changed - base)[body, k])
    found = torques(m, np.array(variants), motion)
    Y = np.moveaxis((found[1:] - found[0]) / (np.array(sd) / PRIOR)[:, None, None], 0, -1)
    joints = np.eye(m.nv)[None] * np.ones((len(motion.q), 1, 1))
    parts = (
        ("armature", motion.a, armature, ARMATURE_SD),
        ("damping", motion.v, damping, FRICTION_SD),
        ("frictionloss", np.tanh(motion.v / SMOOTHING), np.zeros(m.nv), FRICTION_SD),
        ("offset", np.ones_like(motion.v), np.zeros(m.nv), OFFSET_SD),
    )
    columns = [Y]
    for name, by, value, deviation in parts:
        columns.append(joints * by[:, :, None])
        names += [f"{m.names['joint'][j]}.{name}" for j in range(m.nv)]
        mean += list(value)
        sd += [deviation] * m.nv
    return Regressor(np.concatenate(columns, 2), names, np.array(mean), np.array(sd))


def solve(r: Regressor, torque: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return estimates and their standard deviations, (k,) each; columns not used keep their mean.

    The deviations include the prior; those of the noise are inflated by the ratio of the rate of
    the samples to twice the cutoff, as filtered samples are correlated.
    """
    noise = np.ones(torque.shape[1])
    correlated = max(RATE / EVERY / (2 * CUTOFF), 1.0)
    for _ in range(3):
        weight = 1 / (noise * np.sqrt(correlated))
        A = (r.Y * weight[None, :, None])[:, :, used] * r.sd[used]
        y = (torque - r.Y @ r.mean) * weight
        A, y = A.reshape(-1, A.shape[2]), y.ravel()
        H = A.T @ A + np.eye(A.shape[1])
        z = np.linalg.solve(H, A.T @ y)
        p = r.mean.copy()
        p[used] += r.sd[used] * z
        noise = (torque - r.Y @ p).std(0)
    sd = np.zeros(len(p))
    sd[used] = r.sd[used] * np.sqrt(np.diag(np.linalg.inv(H)))
    return p, sd


def rms(error: np.ndarray, torque: np.ndarray) -> dict:
    """Return root mean squares by joint [N m], and as parts of the deviation of the torque."""
    each = np.sqrt(np.mean(error**2, axis=0))
    parts = each / torque.std(0)
    return {"rms": each.tolist(), "normalized": parts.tolist(), "mean": float(parts.mean())}


def identifiable(r: Regressor) -> dict:
    """Return the rank of the columns, and names of parameters that no torque depends on."""
    A = r.Y.reshape(-1, r.Y.shape[2])
    norms = np.linalg.norm(A, axis=0)
    without = norms < RANK_TOLERANCE**2 * norms.max()
    scaled = A / np.where(without, 1, norms)
    values, axes = np.linalg.eigh(scaled.T @ scaled)
    singular = np.sqrt(np.maximum(values[::-1], 0))
    rank = int((singular > RANK_TOLERANCE * singular[0]).sum())
    lost = axes[:, ::-1][:, rank:]
    share = (lost**2).sum(1)
    return {
        "columns": A.shape[1],
        "rank": rank,
        "singular_values": singular.tolist(),
        "no_effect": [n for n, w in zip(r.names, without, strict=True) if w],
        "determined_alone": [n for n, s in zip(r.names, share, strict=True) if s < 1e-2],
    }


def is_physical(p: np.ndarray) -> bool:
    """Return whether the pseudo-inertia of linear parameters is positive definite."""
    inertia = np.zeros((3, 3))
    for value, (i, j) in zip(p[4:], PAIRS, strict=True):
        inertia[i, j] = inertia[j, i] = value
    pseudo = np.zeros((4, 4))
    pseudo[:3, :3] = np.trace(inertia) / 2 * np.eye(3) - inertia
    pseudo[:3, 3] = pseudo[3, :3] = p[1:4]
    pseudo[3, 3] = p[0]
    return bool(np.linalg.eigvalsh(pseudo)[0] > 0)


def panda(args: argparse.Namespace) -> dict:
    """Fit the first part of a log, predict the rest, and return all figures."""
    jax.config.update("jax_enable_x64", True)
    motion = read_motion(args.log)
    m, damping, armature = bare_arm(args.model)
    r = regressor(m, motion, damping, armature)
    cut = int(TRAIN * len(motion.q))
    train = r._replace(Y=r.Y[:cut])
    held, torque = r.Y[cut:], motion.torque[cut:]
    links = np.array(["." in n and n.split(".")[1] in KINDS for n in r.names])
    results = {
        "samples": [cut, len(torque)],
        "torque_deviation": torque.std(0).tolist(),
        "identifiable": identifiable(train),
        "errors": {"given model": rms(held @ r.mean - torque, torque)},
    }
    rigid = np.where(links, r.mean, 0)
    results["errors"]["given inertias alone"] = rms(held @ rigid - torque, torque)
    if args.friction:
        one, two, three = np.loadtxt(args.friction, delimiter=",")
        sigmoid = one / (1 + np.exp(-two * (motion.v + three))) - one / (1 + np.exp(-two * three))
        error = held @ rigid + sigmoid[cut:] - torque
        results["errors"]["given inertias, published friction"] = rms(error, torque)
    for name, used in (("friction, armature, offsets", ~links), ("all", np.ones_like(links))):
        p, sd = solve(train, motion.torque[:cut], used)
        results["errors"][name] = rms(held @ p - torque, torque)
        results["errors"][f"{name}, of the fitted part"] = rms(
            train.Y @ p - motion.torque[:cut], motion.torque[:cut]
        )
        results[name] = {
            n: {"value": v, "sd": s, "given": g, "prior_sd": b}
            for n, v, s, g, b, u in zip(r.names, p, sd, r.mean, r.sd, used, strict=True)
            if u
        }
        results[name]["physical"] = {
            n.split(".")[0]: is_physical(p[i : i + 10])
            for i, n in enumerate(r.names)
            if n.endswith(".m")
        }
    for name, found in results["errors"].items():
        print(f"{name:45} {np.round(found['rms'], 3)} N m, {100 * found['mean']:.1f} %")
    rank = results["identifiable"]
    print(f"rank {rank['rank']} of {rank['columns']}; no effect: {', '.join(rank['no_effect'])}")
    return results
