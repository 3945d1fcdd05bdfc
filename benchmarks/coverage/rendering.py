"""Base class of random models: probabilities, numbers, names, and common attributes."""

import random
import xml.etree.ElementTree as ET
from collections.abc import Callable


class Drawing:
    """The tree of elements so far; objects that can be referred to are in `names`, by kind."""

    def __init__(self, seed: int):
        self.draw = random.Random(seed)
        self.root = ET.Element("mujoco", model=f"odd{seed}")
        self.names: dict[str, list[str]] = {}
        self.jointtype: dict[str, str] = {}
        self.moving: list[str] = []  # bodies that are not fixed to the world
        self.radian = False
        self.feature = {
            name: self.draw.random() < 0.4
            for name in "meshes fluid mocap flex replicate attach sleep user".split()
        }

    @property
    def text(self) -> str:
        ET.indent(self.root)
        return ET.tostring(self.root, encoding="unicode")

    def maybe(self, chance: float = 0.3) -> bool:
        return self.draw.random() < chance

    def real(self, low: float, high: float, n: int = 1) -> str:
        return " ".join(f"{self.draw.uniform(low, high):.3g}" for _ in range(n))

    def name(self, kind: str) -> str:
        names = self.names.setdefault(kind, [])
        names.append(f"{kind}_{chr(97 + len(names))}")  # a digit could be that of a copy
        return names[-1]

    def any(self, kind: str) -> str:
        return self.draw.choice(self.names[kind])

    def has(self, kind: str, n: int = 1) -> bool:
        return len(self.names.get(kind, ())) >= n

    def set(self, element: ET.Element, chance: float, **values: Callable[[], str] | str) -> None:
        """Set each attribute with a probability.

        A value is a function, or words with one of several "a|b" or n of a range "low:high*n".
        """
        for name, value in values.items():
            if self.maybe(chance):
                element.set(name, value() if callable(value) else self.drawn(value))

    def drawn(self, value: str) -> str:
        return " ".join(self.word(word) for word in value.split())

    def word(self, word: str) -> str:
        low, colon, high = word.partition(":")
        if colon:
            high, _, n = high.partition("*")
            return self.real(float(low), float(high), int(n or 1))
        return self.draw.choice(word.split("|"))

    def impedance(self) -> str:
        low = self.draw.uniform(0.3, 0.9)
        rest = f"{self.real(0.001, 0.1)} {self.real(0.2, 0.8)} {self.real(1, 4)}"
        return f"{low:.3g} {low + 0.08:.3g} {rest}"

    def solref(self) -> str:
        if self.maybe(0.2):
            return f"-{self.real(50, 400)} -{self.real(2, 20)}"
        return f"{self.real(0.01, 0.1)} {self.real(0.5, 1.5)}"

    # ---- parts of the model

    def scalar(self) -> list[str]:
        return [j for j, kind in self.jointtype.items() if kind in ("hinge", "slide")]

    def surface(self) -> dict:
        return {
            "condim": "1|3|4|6",
            "friction": "0.01:1.2*3",
            "margin": "0:0.05",
            "gap": "0:0.05",
            "priority": "0|1|2",
            "solmix": "0:3",
            "solref": self.solref,
            "solimp": self.impedance,
        }

    def resistance(self) -> dict:
        return {
            "damping": "0:2*" + self.drawn("1|2|3"),
            "stiffness": "0:20*" + self.drawn("1|2|3"),
            "armature": "0:0.5",
            "frictionloss": "0:0.5",
            "solreffriction": self.solref,
            "solimpfriction": self.impedance,
            "solreflimit": self.solref,
            "solimplimit": self.impedance,
            "margin": "0:0.1",
        }
