"""Writes cable.npz: what the cable plugin of MuJoCo 3.17, the last one that had it, computes.

pip install mujoco==3.17.0        # in an environment of its own: tests compare with 4.0
python tests/plugins/make_cable.py
"""

from pathlib import Path

import mujoco
import numpy as np

HERE = Path(__file__).parent
STEPS = 200  # of the trajectory of each cable
WORLDS = 6


def cable(geom: str, **config: str) -> str:
    """Six bodies that hang on a hinge, curved, with a joint after the first that slides too."""
    settings = "".join(f'<config key="{key}" value="{value}"/>' for key, value in config.items())
    plugin = '<plugin instance="rod"/>'
    first = f'<body pos="0 0 1"><joint axis="0 1 0"/>{plugin}{geom}'
    poses = ["euler='0 20 0'", "euler='15 0 30'", "", "euler='-40 10 0'", "euler='0 0 -70'"]
    slide = '<joint type="slide" axis="1 0 0" stiffness="40" damping=".1"/>'
    bodies = [
        f'<body pos=".1 {0.01 * k} 0" {pose}>{slide if k == 2 else ""}'
        f'<joint type="ball" damping="1e-3" armature="1e-5"/>{plugin}{geom}'
        for k, pose in enumerate(poses)
    ]
    return f"""<mujoco><option timestep="2e-4"><flag contact="disable"/></option>
    <extension><plugin plugin="mujoco.elasticity.cable"><instance name="rod">{settings}</instance>
    </plugin></extension>
    <worldbody><geom type="plane" size="1 1 .1"/>{first}{"".join(bodies)}{"</body>" * 6}</worldbody>
    </mujoco>"""


CAPSULE = '<geom type="capsule" size=".01" fromto="0 0 0 .1 0 0"/><geom size=".002"/>'
BOX = '<geom type="box" size=".05 .012 .005" pos=".05 0 0"/>'
CABLES = {
    "round": cable(CAPSULE, twist="1e6", bend="2e6", vmax=".1"),
    "flat": cable(BOX, twist="2e6", bend="1e6", flat="true"),
}


def states(m: mujoco.MjModel) -> list[mujoco.MjData]:
    """Worlds far from the shape without stress, not at rest."""
    found = []
    for k in range(WORLDS):
        rng, d = np.random.default_rng(k), mujoco.MjData(m)
        mujoco.mj_integratePos(m, d.qpos, 0.3 * rng.normal(size=m.nv), 1.0)
        d.qvel[:] = rng.normal(size=m.nv)
        found.append(d)
    return found


def figures(xml: str) -> dict[str, np.ndarray]:
    """Forces and accelerations in each world, and the motion of the first."""
    m = mujoco.MjModel.from_xml_string(xml)
    found = states(m)
    out = {name: np.array([getattr(d, name) for d in found]) for name in ("qpos", "qvel")}
    for d in found:
        mujoco.mj_forward(m, d)
    out |= {n: np.array([getattr(d, n) for d in found]) for n in ("qfrc_passive", "qacc")}
    mujoco.mj_step(m, found[0], STEPS)
    return out | {"qpos_end": found[0].qpos.copy(), "qvel_end": found[0].qvel.copy()}


if __name__ == "__main__":
    assert mujoco.__version__ == "3.17.0", mujoco.__version__
    all_figures = {
        f"{name}_{field}": value
        for name, xml in CABLES.items()
        for field, value in figures(xml).items()
    }
    np.savez_compressed(HERE / "cable.npz", **all_figures)
