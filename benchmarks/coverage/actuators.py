"""Actuators of a random model."""

import xml.etree.ElementTree as ET

from odd.drawing import Drawing

ACTUATORS = {
    "motor": {},
    "general": {},
    "position": {"kp": "1:20", "kv": "0:2", "timeconst": "0:0.1"},
    "velocity": {"kv": "0:3"},
    "intvelocity": {"kp": "1:9", "kv": "0:1", "actrange": "-1 1"},
    "damper": {"kv": "0:2", "ctrlrange": "0 1"},
    "cylinder": {"timeconst": "0.1:1", "area": "0.5:2", "bias": "-1:0*3"},
    "muscle": {
        "timeconst": "0.02 0.05", "tausmooth": "0:0.5", "lengthrange": ".1 1", "force": "1:30"
    },
    "pid": {"kp": "1:9", "ki": "0:2", "kv": "0:1", "slewmax": "0:3", "imax": "0:2"},
    "dcmotor": {
        "motorconst": "0.2:1", "resistance": "1:3", "inductance": "0|0.01", "cogging": ".1 6 .2",
        "lugre": "20 .3 .2 .4 .1",
    },
    "orientation": {"kp": "1:5", "kv": "0:1", "input": "expmap|quat"},
    "adhesion": {"gain": "0.5:5", "ctrlrange": "0 1"},
}  # fmt: skip


class Drives(Drawing):
    """Random actuators and their transmissions."""

    def actuators(self) -> None:
        real = self.real
        part = ET.SubElement(self.root, "actuator")
        for _ in range(self.draw.choice((0, 1, 2, 3, 4))):
            tag = self.draw.choice(list(ACTUATORS))
            given = {name: self.drawn(value) for name, value in ACTUATORS[tag].items()}
            actuator = ET.Element(tag, given | (self.general() if tag == "general" else {}))
            if tag == "adhesion":
                actuator.set("body", self.any("body"))
            elif tag == "orientation":
                balls = [j for j, kind in self.jointtype.items() if kind == "ball"]
                if not balls:
                    continue
                actuator.set("joint", self.draw.choice(balls))
            elif not self.transmission(actuator):
                continue
            actuator.set("name", self.name("actuator"))
            part.append(actuator)
            self.set(actuator, 0.2, ctrlrange="-.5 .8", group="0|1|2|3")
            if tag in ("dcmotor", "muscle", "adhesion", "orientation") and tag != "adhesion":
                actuator.attrib.pop("ctrlrange", None)
            if tag != "dcmotor":
                self.set(actuator, 0.2, forcerange="-2 3")
            if self.maybe(0.15):
                actuator.attrib.update(nsample=self.draw.choice("234"), delay=real(0.001, 0.006))
                self.set(actuator, 0.6, interp="zoh|linear|cubic")

    def general(self) -> dict[str, str]:
        draw, real = self.draw, self.real
        dyn = draw.choice(("none", "none", "integrator", "filter", "filterexact", "muscle"))
        out = {
            "dyntype": dyn,
            "gaintype": draw.choice(("fixed", "affine", "muscle")),
            "biastype": draw.choice(("none", "affine", "muscle")),
        }
        out["dynprm"] = ".02 .05 .1" if dyn == "muscle" else real(0.02, 0.2)
        curve = ".75 1.05 20 200 .5 1.6 1.5 1.3 1.2"
        out["gainprm"] = curve if out["gaintype"] == "muscle" else real(-3, 3, 3)
        out["biasprm"] = curve if out["biastype"] == "muscle" else real(-3, 3, 3)
        if "muscle" in (out["gaintype"], out["biastype"], dyn):
            out["lengthrange"] = "-.2 1"
        if dyn != "none":
            if self.maybe(0.5):
                out["actrange"] = "-.3 .4"
            if self.maybe(0.4):
                out["actearly"] = "true"
            if self.maybe(0.2):
                out["actdim"] = "1"
        return out

    def transmission(
        self, actuator: ET.Element, kinds: str = "joint parent tendon site crank"
    ) -> bool:
        """Set the transmission of an actuator; return False if the model has no object for it."""
        real = self.real
        kind = self.draw.choice(kinds.split())
        scalar = actuator.tag in ("muscle", "dcmotor", "pid", "cylinder")
        joints = self.scalar() if scalar else list(self.jointtype)
        if kind in ("joint", "parent") and joints:
            actuator.set("joint" if kind == "joint" else "jointinparent", self.draw.choice(joints))
        elif kind == "tendon" and self.has("tendon"):
            actuator.set("tendon", self.any("tendon"))
        elif kind == "site" and self.has("site", 2) and actuator.tag != "muscle":
            one, two = self.draw.sample(self.names["site"], 2)
            actuator.set("site", one)
            if self.maybe(0.6):
                actuator.set("refsite", two)
        elif kind == "crank" and self.has("site", 2):
            one, two = self.draw.sample(self.names["site"], 2)
            actuator.attrib.update(cranksite=one, slidersite=two, cranklength=real(0.3, 1))
        else:
            return False
        if self.maybe(0.6):
            n = 1 if "tendon" in actuator.attrib or "cranksite" in actuator.attrib else 6
            actuator.set("gear", real(-2, 2, n))
        if kind in ("joint", "tendon"):
            self.set(actuator, 0.15, damping="0:1", armature="0:0.2")
        return True
