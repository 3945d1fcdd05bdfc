"""Scenes of the benchmarks that are made by program: trees, robots, stacks, piles, rough ground."""

import re
from pathlib import Path

import numpy as np

CONFIGS = Path(__file__).resolve().parent.parent / "configs"


def scene(name: str) -> str | None:
    """MJCF of a scene by name: "chain6", "tree200", "robots8", "pile100", "cards", "rough"."""
    for start, make in SIZED.items():
        count = name.removeprefix(start)
        if name != count and count.isdigit():
            return make(int(count))
    return NAMED[name]() if name in NAMED else None


def chain(links: int) -> str:
    """A hanging chain of hinges with motors: deep trees are where fusion goes wrong."""
    body = "".join(
        f'<body pos="{0.2 if i else 0} 0 {0 if i else 2}">'
        f'<joint name="j{i}" axis="0 {i % 2} {1 - i % 2}" damping=".1" range="-2 2"/>'
        '<geom type="capsule" fromto="0 0 0 .2 0 0" size=".03" contype="0" conaffinity="0"/>'
        for i in range(links)
    )
    motors = "".join(f'<motor joint="j{i}"/>' for i in range(links))
    return (
        f"<mujoco><worldbody>{body}{'</body>' * links}</worldbody>"
        f"<actuator>{motors}</actuator></mujoco>"
    )


def tree(links: int) -> str:
    """Hinges that branch: link k hangs on link (k - 1) // 2."""
    children: dict[int, list[int]] = {}
    for k in range(1, links):
        children.setdefault((k - 1) // 2, []).append(k)

    def body(k: int) -> str:
        side = 0.1 * (k % 2) - 0.05
        return (
            f'<body pos="{0.2 if k else 0} {side if k else 0} {0 if k else 2}">'
            f'<joint axis="0 {k % 2} {1 - k % 2}" damping=".1"/>'
            '<geom type="capsule" fromto="0 0 0 .2 0 0" size=".03" contype="0" conaffinity="0"/>'
            + "".join(map(body, children.get(k, [])))
            + "</body>"
        )

    return f"<mujoco><worldbody>{body(0)}</worldbody></mujoco>"


def robots(count: int) -> str:
    """Equal quadrupeds in a row, on one floor."""
    text = re.sub(
        r"<keyframe>.*?</keyframe>", "", (CONFIGS / "quadruped.xml").read_text(), flags=re.S
    )
    copies = f'<replicate count="{count}" offset="1.5 0 0"><body name="trunk"'
    text = text.replace('<body name="trunk"', copies, 1)
    return text.replace("</worldbody>", "</replicate></worldbody>", 1)


def stack(boxes: int) -> str:
    """Boxes on each other, each turned a little against the one below."""
    bodies = "".join(
        f'<body pos="0 0 {0.05 + 0.1 * i}" euler="0 0 {7 * i}"><freejoint/>'
        '<geom type="box" size=".1 .1 .05"/></body>'
        for i in range(boxes)
    )
    return _on_floor(bodies)


def cards() -> str:
    """A card house of two storeys: thin boxes that lean on each other."""
    lean, half, thick = np.radians(15), 0.1, 0.004
    out, high = half * np.sin(lean) + thick * np.cos(lean), half * np.cos(lean)
    rows = []

    def tent(x: float, z: float) -> None:
        rows.extend(
            f'<body pos="{x + side * out} 0 {z + high + thick * np.sin(lean)}" '
            f'euler="0 {-side * np.degrees(lean)} 0"><freejoint/>'
            f'<geom type="box" size="{thick} .07 {half}"/></body>'
            for side in (-1, 1)
        )

    storey = 2 * (high + thick * np.sin(lean))
    apart = 2 * out + 0.05
    tent(-apart / 2, 0)
    tent(apart / 2, 0)
    rows.append(
        f'<body pos="0 0 {storey + thick}"><freejoint/>'
        f'<geom type="box" size="{apart / 2 + 0.04} .07 {thick}"/></body>'
    )
    tent(0, storey + 2 * thick)
    return _on_floor("".join(rows), 'friction="1.2"', 'cone="elliptic" impratio="10"')


def pile(bodies: int, kinds: tuple[str, ...] = ("box", "capsule", "sphere")) -> str:
    """Free bodies of some kinds that fall on a floor, five by five; all can touch all."""
    rng, rows = np.random.default_rng(bodies), []
    for i in range(bodies):
        x, y, z = i % 5 - 2, i // 5 % 5 - 2, i // 25
        place = np.array([x, y, z + 0.5]) * 0.22 + 0.02 * rng.standard_normal(3)
        turn = " ".join(f"{a:.1f}" for a in 30 * rng.standard_normal(3))
        rows.append(
            f'<body pos="{place[0]:.4f} {place[1]:.4f} {place[2]:.4f}" euler="{turn}">'
            f"<freejoint/><geom {SHAPES[kinds[i % len(kinds)]]}/></body>"
        )
    return _on_floor("".join(rows))


def mixed(bodies: int) -> str:
    """A pile of every kind of shape, meshes too."""
    return pile(bodies, tuple(SHAPES))


def rough() -> str:
    """The quadruped on a height field."""
    rng = np.random.default_rng(0)
    n = 40
    waves = rng.standard_normal((n, n)).cumsum(0).cumsum(1)
    height = (waves - waves.min()) / np.ptp(waves)
    data = " ".join(f"{h:.4f}" for h in height.ravel())
    field = f'<asset><hfield name="ground" nrow="{n}" ncol="{n}" size="4 4 .15 .1" '
    field += f'elevation="{data}"/></asset>'
    text = (CONFIGS / "quadruped.xml").read_text()
    flat = 'name="floor" type="plane" size="20 20 0.1"'
    assert flat in text
    low = 0.15 * height[n // 2 - 3 : n // 2 + 3, n // 2 - 3 : n // 2 + 3].max()
    ground = f'name="floor" type="hfield" hfield="ground" pos="0 0 {-low:.4f}"'
    return text.replace(flat, ground).replace("<worldbody>", f"{field}<worldbody>", 1)


def _on_floor(bodies: str, geom: str = "", option: str = "") -> str:
    vertices = " ".join(f"{v:.4f}" for v in _gem().ravel())
    return f"""<mujoco><option timestep="0.004" {option}/>
    <default><geom density="600" {geom}/></default>
    <asset><mesh name="gem" vertex="{vertices}"/></asset>
    <worldbody><geom type="plane" size="5 5 .1"/>{bodies}</worldbody></mujoco>"""


def _gem() -> np.ndarray:
    """Twenty points on an ellipsoid."""
    points = np.random.default_rng(3).standard_normal((20, 3))
    return points / np.linalg.norm(points, axis=1)[:, None] * (0.08, 0.06, 0.07)


SHAPES = {
    "box": 'type="box" size=".07 .06 .05"',
    "capsule": 'type="capsule" size=".04 .07"',
    "sphere": 'type="sphere" size=".07"',
    "cylinder": 'type="cylinder" size=".06 .06"',
    "ellipsoid": 'type="ellipsoid" size=".08 .06 .05"',
    "gem": 'type="mesh" mesh="gem"',
}
SIZED = {
    "chain": chain,
    "tree": tree,
    "robots": robots,
    "stack": stack,
    "pile": pile,
    "mixed": mixed,
}
NAMED = {"cards": cards, "rough": rough}
