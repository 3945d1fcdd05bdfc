"""Random models that combine features as nobody would, one for each seed.

    python benchmarks/odd_models.py 17              # prints model 17
    python benchmarks/odd_models.py 0 40 --check    # models 0 to 39, each here and in MuJoCo

With --check it prints who refuses the model, or what differs after a step from a random state.
"""

import argparse
import random
import xml.etree.ElementTree as ET
from collections.abc import Callable

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

import jaxsim
from jaxsim.errors import ModelError

TETRAHEDRON = "0 0 0  .2 0 0  0 .2 0  0 0 .2"
WEDGE = "-.1 -.1 -.05  .12 -.1 -.05  -.1 .1 -.05  .1 .1 -.05  -.1 -.08 .1  .1 -.1 .06"
FLAGS = (
    "constraint equality frictionloss limit contact spring damper gravity clampctrl warmstart "
    "filterparent actuation refsafe sensor midphase eulerdamp autoreset nativeccd island multiccd"
).split()
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
COMPARED = (
    "qpos qvel act xpos xquat subtree_com actuator_length ten_length cvel qfrc_bias qfrc_passive "
    "qfrc_actuator qfrc_constraint qacc sensordata"
).split()
RTOL = 1e-4  # what the solvers leave of the solution, seen through stiff constraints
FRAMES = ("pos", "quat", "xaxis", "yaxis", "zaxis", "linvel", "angvel", "linacc", "angacc")


class OddModel:
    """Draws a model; `text` is its MJCF. What is referred to is listed by kind in `names`."""

    def __init__(self, seed: int):
        self.draw = random.Random(seed)
        self.root = ET.Element("mujoco", model=f"odd{seed}")
        self.names: dict[str, list[str]] = {}
        self.jointtype: dict[str, str] = {}
        self.moving: list[str] = []  # bodies that are not fixed to the world
        self.feature = {
            name: self.draw.random() < 0.4
            for name in "meshes fluid mocap flex replicate attach sleep user".split()
        }
        for part in (self.options, self.assets, self.bodies, self.flexes, self.contacts):
            part()
        for part in (self.tendons, self.equalities, self.actuators, self.sensors, self.keys):
            part()

    @property
    def text(self) -> str:
        ET.indent(self.root)
        return ET.tostring(self.root, encoding="unicode")

    # ---- drawing

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
        """Sets each attribute with a chance.

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

    def options(self) -> None:
        draw, real = self.draw, self.real
        compiler = ET.SubElement(self.root, "compiler")
        self.set(
            compiler,
            0.15,
            angle="radian",
            autolimits="true",
            boundmass="0:1",
            balanceinertia="true",
            inertiafromgeom="true",
            settotalmass="7",
            fusestatic="true",
            eulerseq="XYZ|zyx|zxz",
            alignfree="true",
            discardvisual="true",
            boundinertia="0:0.01",
        )
        self.radian = compiler.get("angle") == "radian"
        option = ET.SubElement(self.root, "option", timestep=real(0.001, 0.004))
        kinds = ("Euler", "RK4", "implicit", "implicitfast", "discrete")
        option.set("integrator", draw.choice(kinds))
        option.set("cone", draw.choice(("pyramidal", "elliptic")))
        option.set("solver", draw.choice(("Newton", "Newton", "CG", "PGS")))
        option.set("iterations", "1000")
        option.set("tolerance", "1e-13")
        option.set("ls_iterations", "100")
        option.set("ls_tolerance", "1e-6")
        option.set("ccd_tolerance", "1e-12")
        option.set("ccd_iterations", "200")
        self.set(option, 0.3, impratio="0.5:5", magnetic="-1:1*3", gravity="-10:2*3")
        self.set(
            option,
            0.1,
            noslip_iterations="5",
            o_margin="0.02",
            o_solref="0.03 0.9",
            o_friction="0.7 0.6 0.01 0.002 0.003",
            actuatorgroupdisable="1 3",
            jacobian="sparse",
        )
        if self.feature["fluid"]:
            self.set(option, 0.7, wind="-3:3*3", density="0:500", viscosity="0:1")
        flag = ET.SubElement(option, "flag")
        for name in draw.sample(FLAGS, draw.choice((0, 0, 1, 2))):
            flag.set(name, "disable")
        self.set(
            flag, 0.2, energy="enable", override="enable", fwdinv="enable", invdiscrete="enable"
        )
        if self.feature["sleep"] and self.maybe():
            flag.set("sleep", "enable")
        if self.feature["user"]:
            ET.SubElement(self.root, "size", nuserdata="3", nuser_body="2", nuser_geom="1")
        default = ET.SubElement(self.root, "default")
        geom = ET.SubElement(default, "geom")
        self.set(geom, 0.2, **self.surface())
        for name in ("soft", "hard"):
            inner = ET.SubElement(default, "default", {"class": name})
            self.set(ET.SubElement(inner, "geom"), 0.3, **self.surface())
            self.set(ET.SubElement(inner, "joint"), 0.3, **self.resistance())
            self.set(ET.SubElement(inner, "site"), 0.5, size="0.03", group="3")

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

    def assets(self) -> None:
        asset = ET.SubElement(self.root, "asset")
        real = self.real
        if self.feature["meshes"]:
            for shape in (TETRAHEDRON, WEDGE):
                mesh = ET.SubElement(asset, "mesh", name=self.name("mesh"), vertex=shape)
                self.set(
                    mesh,
                    0.4,
                    scale="0.5:1.5*3",
                    refpos="-0.1:0.1*3",
                    refquat="-1:1*4",
                    inertia="convex|legacy|shell|exact",
                )
            kind = self.draw.choice(("sphere", "hemisphere", "cone", "supersphere", "wedge"))
            params = {
                "sphere": "1",
                "hemisphere": "2",
                "cone": "5 0.3",
                "supersphere": "5 0.7 0.8",
                "wedge": "3 3 60 40 0.5",
            }[kind]
            ET.SubElement(
                asset,
                "mesh",
                name=self.name("mesh"),
                builtin=kind,
                params=params,
                scale=real(0.1, 0.2, 3),
            )
        if self.maybe(0.3):
            heights = " ".join(real(0, 1, 4) for _ in range(3))
            ET.SubElement(
                asset,
                "hfield",
                name=self.name("hfield"),
                nrow="3",
                ncol="4",
                size="2 2 0.4 0.1",
                elevation=heights,
            )

    def turn(self, element: ET.Element) -> None:
        """Some orientation, in one of the ways to write it."""
        half = 3 if self.radian else 170
        ways = {
            "quat": "-1:1*4",
            "euler": f"-{half}:{half}*3",
            "axisangle": f"-1:1*3 -{half}:{half}",
            "xyaxes": "-1:1*6",
            "zaxis": "-1:1*3",
        }
        kind = self.draw.choice(("", "", *ways))
        if kind:
            element.set(kind, self.drawn(ways[kind]))

    def bodies(self) -> None:
        world = ET.SubElement(self.root, "worldbody")
        floor = ET.SubElement(world, "geom", name=self.name("geom"))
        if self.has("hfield"):
            floor.attrib.update(type="hfield", hfield="hfield_a")
        else:
            floor.attrib.update(type="plane", size="3 3 .1")
        self.set(floor, 0.2, **self.surface(), surfacevel="-0.5:0.5*6")
        for n in range(self.draw.choice((0, 1, 2))):
            self.site(world, f"{n} 0 1")
        places = [world]
        for _ in range(self.draw.randint(2, 6)):
            parent = self.draw.choice([world, places[-1], self.draw.choice(places)])
            places.append(self.body(parent, parent is world, len(places)))
        if self.feature["mocap"]:
            hand = ET.SubElement(
                world, "body", name=self.name("body"), mocap="true", pos="0.3 0 0.6"
            )
            self.turn(hand)
            ET.SubElement(hand, "geom", name=self.name("geom"), size="0.05")
            self.site(hand)
        if self.feature["replicate"]:
            many = ET.SubElement(
                world, "replicate", count="2", offset="0.2 0.3 0.1", euler="0 0 20"
            )
            body = ET.SubElement(many, "body", pos="-1 -.5 .2")
            ET.SubElement(body, "joint", type=self.draw.choice(("free", "ball", "slide")))
            self.geom(body, named=False)

    def body(self, parent: ET.Element, top: bool, n: int) -> ET.Element:
        draw, real = self.draw, self.real
        if self.maybe(0.15):
            parent = ET.SubElement(parent, "frame", pos=real(-0.1, 0.1, 3))
            self.turn(parent)
            self.set(parent, 0.3, childclass="soft")
        low = (0.1, 0.7) if top else (-0.3, 0.1)
        pos = f"{real(-0.5, 0.5, 2)} {real(*low)}" if top else f"{real(-0.2, 0.2, 2)} {real(*low)}"
        body = ET.SubElement(parent, "body", name=self.name("body"), pos=pos)
        self.turn(body)
        self.set(body, 0.15, gravcomp="-0.5:1.5", childclass="hard")
        if self.feature["user"]:
            self.set(body, 0.5, user="1 2")
        kinds = draw.choice(
            (
                ("free",),
                ("ball",),
                ("hinge",),
                ("slide",),
                ("hinge", "hinge"),
                ("slide", "hinge"),
                ("slide", "ball"),
                ("ball", "slide"),
                ("slide", "slide", "hinge"),
                ("slide", "slide", "ball"),
                (),
            )
        )
        if "free" in kinds and not top:
            kinds = ("ball",)
        for kind in kinds:
            self.joint(body, kind)
        if kinds or not top:
            self.moving.append(body.get("name"))
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            self.geom(body)
        if self.maybe(0.15):
            inertial = ET.SubElement(body, "inertial", pos=real(-0.05, 0.05, 3), mass=real(0.3, 2))
            if self.maybe(0.5):
                inertial.set("diaginertia", real(0.02, 0.03, 3))
                self.turn(inertial)
            else:
                inertial.set("fullinertia", f"{real(0.02, 0.03, 3)} {real(-0.005, 0.005, 3)}")
        for _ in range(draw.choice((0, 1, 1, 2))):
            self.site(body)
        if self.maybe(0.2):
            camera = ET.SubElement(body, "camera", name=self.name("camera"), pos=real(-0.1, 0.1, 3))
            modes = ["fixed", "track", "trackcom", "targetbody", "targetbodycom"]
            camera.set("mode", draw.choice(modes))
            self.set(camera, 0.3, fovy="30:90", resolution="40 30")
            if camera.get("mode").startswith("target"):
                camera.set("target", "body_a" if body.get("name") != "body_a" else "world")
            if camera.get("mode") == "fixed":
                self.turn(camera)
        if self.maybe(0.1):
            light = ET.SubElement(body, "light", name=self.name("light"), pos=real(-0.1, 0.1, 3))
            self.set(light, 0.5, dir="-1:1*3", mode="trackcom")
        return body

    def joint(self, body: ET.Element, kind: str) -> None:
        real = self.real
        name = self.name("joint")
        self.jointtype[name] = kind
        if kind == "free" and self.maybe(0.5):
            ET.SubElement(body, "freejoint", name=name)
            return
        joint = ET.SubElement(body, "joint", name=name, type=kind)
        self.set(joint, 0.2, **self.resistance())
        if kind != "free":
            joint.set("pos", real(-0.1, 0.1, 3)) if self.maybe(0.5) else None
        if kind in ("hinge", "slide"):
            joint.set("axis", real(-1, 1, 3))
            self.set(
                joint,
                0.2,
                ref="-0.3:0.3",
                springref="-0.3:0.3",
                actuatorfrcrange="-1:-0.1 0.1:1",
                actuatorgravcomp="true",
                springdamper="0.05:0.5 0.1:1",
                springyield="0.01:0.2",
            )
        turn = 1 if self.radian else 50
        if kind == "ball" and self.maybe(0.4):
            joint.set("range", f"0 {real(0.1 * turn, turn)}")
        elif kind in ("hinge", "slide") and self.maybe(0.5):
            size = turn if kind == "hinge" else 0.3
            joint.set("range", f"-{real(0, size)} {real(0, size)}")

    def geom(self, body: ET.Element, named: bool = True) -> None:
        draw, real = self.draw, self.real
        geom = ET.SubElement(body, "geom")
        if named:
            geom.set("name", self.name("geom"))
        kinds = ["sphere", "capsule", "ellipsoid", "cylinder", "box"] + ["mesh"] * self.has("mesh")
        kind = draw.choice(kinds)
        geom.set("type", kind)
        if kind == "mesh":
            geom.set("mesh", self.any("mesh"))
        elif kind in ("capsule", "cylinder") and self.maybe(0.3):
            geom.attrib.update(size=real(0.03, 0.1), fromto=f"{real(-0.2, 0, 3)} {real(0, 0.2, 3)}")
        else:
            geom.set(
                "size", real(0.04, 0.15, {"sphere": 1, "capsule": 2, "cylinder": 2}.get(kind, 3))
            )
        if "fromto" not in geom.attrib:
            geom.set("pos", real(-0.1, 0.1, 3))
            self.turn(geom)
        self.set(
            geom,
            0.15,
            **self.surface(),
            contype="0|1|2|3",
            conaffinity="0|1|2|3",
            group="0|1|2|3|4|5",
            mass="0.1:2",
            surfacevel="-0.3:0.3*6",
            adhesion="0:3",
            shellinertia="true",
        )
        geom.attrib.pop("shellinertia", None) if kind == "mesh" or "mass" in geom.attrib else None
        if self.feature["fluid"] and kind != "mesh":
            self.set(geom, 0.5, fluidshape="ellipsoid")
            if "fluidshape" in geom.attrib:
                self.set(geom, 0.5, fluidcoef="0:1.5*5")
        self.set(geom, 0.1, **{"class": "soft|hard"})

    def site(self, body: ET.Element, pos: str | None = None) -> None:
        kind = self.draw.choice(("sphere", "box", "capsule", "ellipsoid", "cylinder"))
        site = ET.SubElement(body, "site", name=self.name("site"), type=kind, size=".2 .1 .15")
        site.set("pos", pos or self.real(-0.2, 0.2, 3))
        self.turn(site)

    def flexes(self) -> None:
        if not self.feature["flex"]:
            return
        draw, real = self.draw, self.real
        dim = draw.choice((1, 2, 3))
        parent = self.root.find("worldbody")
        if self.maybe(0.3):
            parent = draw.choice(list(parent.iter("body")))
        flex = ET.SubElement(parent, "flexcomp", name=self.name("flex"), type="grid", dim=str(dim))
        flex.attrib.update(
            count={1: "4 1 1", 2: "3 3 1", 3: "2 3 2"}[dim],
            spacing=".1 .12 .1",
            pos="0 .3 .3",
            radius=".02",
            mass=real(0.1, 1),
        )
        self.turn(flex)
        if self.maybe(0.2) and dim > 1:
            flex.set("dof", draw.choice(("trilinear", "quadratic", "2d", "radial")))
        if self.maybe(0.5):
            edge = ET.SubElement(flex, "edge")
            self.set(
                edge,
                0.5,
                equality="strain" if flex.get("dof") else "true",
                stiffness="1:50" if dim == 1 else "0",
                damping="0:1",
                solref=self.solref,
            )
        if self.maybe(0.5):
            elastic = ET.SubElement(flex, "elasticity", young=real(100, 5000), poisson=real(0, 0.4))
            elastic.set("thickness", ".02") if dim == 2 else None
            self.set(elastic, 0.5, damping="0:0.1")
            self.set(elastic, 0.7 * (dim == 2), elastic2d="bend|stretch|both")
        if self.maybe(0.5):
            ET.SubElement(flex, "pin", id="0")
        contact = ET.SubElement(flex, "contact")
        self.set(
            contact,
            0.4,
            selfcollide="none|auto|narrow",
            condim="1|3|4|6",
            margin="0:0.03",
            solmix="0:2",
        )

    def contacts(self) -> None:
        contact = ET.SubElement(self.root, "contact")
        for _ in range(self.draw.choice((0, 0, 1, 2))):
            one, two = self.draw.sample(self.names["geom"], 2)
            pair = ET.SubElement(contact, "pair", geom1=one, geom2=two)
            self.set(
                pair,
                0.3,
                condim="1|3|4|6",
                margin="0:0.2",
                gap="0:0.02",
                friction="0:1*5",
                solref=self.solref,
                solimp=self.impedance,
                solreffriction=self.solref,
            )
        if self.has("body", 2) and self.maybe():
            one, two = self.draw.sample(self.names["body"], 2)
            ET.SubElement(contact, "exclude", body1=one, body2=two)

    def scalar(self) -> list[str]:
        return [j for j, kind in self.jointtype.items() if kind in ("hinge", "slide")]

    def other_site(self, string: ET.Element, last: str) -> str:
        """Leads a tendon through a site, not the one it comes from."""
        site = self.draw.choice([s for s in self.names["site"] if s != last])
        ET.SubElement(string, "site", site=site)
        return site

    def tendons(self) -> None:
        draw, real = self.draw, self.real
        tendon = ET.SubElement(self.root, "tendon")
        made = []
        round_geoms = [
            g.get("name")
            for g in self.root.iter("geom")
            if g.get("type") in ("sphere", "cylinder") and g.get("name")
        ]
        for _ in range(draw.choice((0, 1, 2))):
            if self.has("site", 3) and self.maybe(0.7):
                string = ET.SubElement(tendon, "spatial", name=self.name("tendon"))
                last = self.other_site(string, "")
                for _ in range(draw.choice((1, 2, 3))):
                    if round_geoms and self.maybe(0.6):
                        wrap = ET.SubElement(string, "geom", geom=draw.choice(round_geoms))
                        self.set(wrap, 0.4, sidesite=lambda: self.any("site"))
                    elif self.maybe(0.3):
                        self.other_site(string, last)
                        ET.SubElement(string, "pulley", divisor=real(1, 3))
                        last = self.other_site(string, "")
                    last = self.other_site(string, last)
                self.set(string, 0.3, springlength="0:0.2 0.3:0.5")
            elif self.scalar():
                string = ET.SubElement(tendon, "fixed", name=self.name("tendon"))
                joints = self.scalar()
                for joint in draw.sample(joints, min(len(joints), draw.choice((1, 2, 3)))):
                    ET.SubElement(string, "joint", joint=joint, coef=real(-2, 2))
            else:
                continue
            made.append(string)
            self.set(
                string,
                0.3,
                **self.resistance(),
                springyield="0.01:0.2",
                range="-0.2:0 0.1:0.5",
                actuatorfrcrange="-1:0 0:1",
            )

    def equalities(self) -> None:
        draw, real = self.draw, self.real
        equality = ET.SubElement(self.root, "equality")
        for _ in range(draw.choice((0, 0, 1, 2, 3))):
            kind = draw.choice(("connect", "weld", "connect", "weld", "joint", "tendon"))
            if kind in ("connect", "weld"):
                if self.has("site", 2) and self.maybe(0.3):
                    one, two = draw.sample(self.names["site"], 2)
                    tie = ET.SubElement(equality, kind, site1=one, site2=two)
                else:
                    one, two = draw.sample([*self.names["body"], "world"], 2)
                    tie = ET.SubElement(equality, kind, body1=one, body2=two)
                    if kind == "connect" or self.maybe():
                        tie.set("anchor", real(-0.1, 0.1, 3))
                    if kind == "weld":
                        self.set(tie, 0.3, relpose="-0.5:0.5*7")
                if kind == "weld":
                    self.set(tie, 0.3, torquescale="0.1:3")
            elif kind == "joint" and self.scalar():
                tie = ET.SubElement(equality, kind, joint1=draw.choice(self.scalar()))
                self.set(tie, 0.5, polycoef="-0.5:0.5*5")
                others = [j for j in self.scalar() if j != tie.get("joint1")]
                if others and self.maybe(0.6):
                    tie.set("joint2", draw.choice(others))
            elif kind == "tendon" and self.has("tendon"):
                tie = ET.SubElement(equality, kind, tendon1="tendon_a")
                self.set(tie, 0.5, polycoef="-0.5:0.5*5")
                if self.has("tendon", 2):
                    self.set(tie, 0.6, tendon2="tendon_b")
            else:
                continue
            self.set(tie, 0.25, solref=self.solref, solimp=self.impedance, active="false")

    def transmission(
        self, actuator: ET.Element, kinds: str = "joint parent tendon site crank"
    ) -> bool:
        """Where an actuator acts; False if the model has no such place."""
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

    def sensors(self) -> None:
        draw, real = self.draw, self.real
        part = ET.SubElement(self.root, "sensor")
        objects = {
            "body": "body",
            "xbody": "body",
            "geom": "geom",
            "site": "site",
            "camera": "camera",
        }
        of = {
            "joint": "jointpos jointvel jointlimitpos jointlimitvel jointlimitfrc jointactuatorfrc",
            "tendon": "tendonpos tendonvel tendonlimitpos tendonlimitvel tendonlimitfrc "
            "tendonactuatorfrc",
            "actuator": "actuatorpos actuatorvel actuatorfrc",
            "site": "touch accelerometer velocimeter gyro force torque magnetometer rangefinder",
            "body": "subtreecom subtreelinvel subtreeangmom",
            "": "clock e_potential e_kinetic",
        }
        for _ in range(draw.randint(2, 14)):
            group = draw.choice(
                (*of, "frame", "frame", "contact", "contact", "distance", "inside", "ball")
            )
            if group == "" and self.feature["replicate"]:
                continue  # MuJoCo doubles what refers to nothing
            if group in of:
                tag = draw.choice(of[group].split())
                names = self.scalar() if group == "joint" else self.names.get(group, [])
                if group and not names:
                    continue
                sensor = ET.SubElement(part, tag, {group: draw.choice(names)} if group else {})
            elif group == "frame":
                kinds = [k for k, name in objects.items() if self.has(name)]
                kind = draw.choice(kinds)
                tag = draw.choice(FRAMES)
                sensor = ET.SubElement(
                    part, f"frame{tag}", objtype=kind, objname=self.any(objects[kind])
                )
                if tag not in ("linacc", "angacc") and self.maybe(0.4):
                    kind = draw.choice(kinds)
                    sensor.attrib.update(reftype=kind, refname=self.any(objects[kind]))
            elif group == "contact":
                data = [
                    w
                    for w in "found force torque dist pos normal tangent".split()
                    if self.maybe(0.5)
                ]
                sensor = ET.SubElement(part, "contact", data=" ".join(data) or "found")
                sensor.set("reduce", draw.choice(("none", "mindist", "maxforce", "netforce")))
                sensor.set("num", draw.choice("123"))
                for end in draw.choice(("1", "12", "2", "1" if self.feature["replicate"] else "")):
                    kind = draw.choice(("geom", "body", "subtree"))
                    sensor.set(kind + end, self.any("geom" if kind == "geom" else "body"))
            elif group == "distance":
                tag = draw.choice(("distance", "normal", "fromto"))
                one, two = draw.sample(self.names["body"], 2)
                sensor = ET.SubElement(part, tag, body1=one, body2=two, cutoff=real(0.2, 2))
            elif group == "inside" and self.has("site"):
                sensor = ET.SubElement(part, "insidesite", site=self.any("site"), objtype="body")
                sensor.set("objname", self.any("body"))
            elif group == "ball" and "ball" in self.jointtype.values():
                balls = [j for j, kind in self.jointtype.items() if kind == "ball"]
                tag = draw.choice(("ballquat", "ballangvel"))
                sensor = ET.SubElement(part, tag, joint=draw.choice(balls))
            else:
                continue
            sensor.set("name", self.name("sensor"))
            if sensor.tag not in ("distance", "normal", "fromto", "contact"):
                self.set(sensor, 0.15, cutoff="0.1:2")
            if self.maybe(0.15):
                sensor.set("nsample", draw.choice("23"))
                self.set(
                    sensor, 0.6, delay="0:0.006", interval="0.001:0.01", interp="zoh|linear|cubic"
                )

    def keys(self) -> None:
        if self.maybe(0.3):
            keyframe = ET.SubElement(self.root, "keyframe")
            ET.SubElement(keyframe, "key", name="first", time="0.5")


def differences(text: str, seed: int) -> list[str] | None:
    """The fields that differ after a step from a random state; None if MuJoCo refuses the model."""
    try:
        mj = mujoco.MjModel.from_xml_string(text)
    except ValueError as refusal:
        try:
            m = jaxsim.load_model(text)
        except ModelError:
            return None
        return None if m.unsupported else [f"refused by MuJoCo only: {refusal}"]
    try:
        m = jaxsim.load_model(text)
    except ModelError as refusal:
        return [f"refused here only: {refusal}"]
    if m.unsupported:
        return [f"not simulated: {m.unsupported[0]}"]
    rng, state = np.random.default_rng(seed), mujoco.MjData(mj)
    mujoco.mj_integratePos(mj, state.qpos, 0.05 * rng.normal(size=mj.nv), 1.0)
    state.qvel[:], state.ctrl[:] = rng.normal(size=mj.nv), rng.normal(size=mj.nu)
    state.act[:] = 0.3 * rng.uniform(size=mj.na)
    given = {name: jnp.asarray(getattr(state, name)) for name in ("qpos", "qvel", "ctrl", "act")}
    d = jax.jit(jaxsim.step)(m, jaxsim.make_data(m, keep=COMPARED).replace(**given))
    mujoco.mj_step(mj, state)
    return [name for name in COMPARED if not _close(getattr(d, name), getattr(state, name))]


def _close(ours: jax.Array, theirs: np.ndarray) -> bool:
    """Equal row by row: a small number beside large ones counts as much as they do."""
    size = np.abs(theirs).reshape(len(theirs), -1).max(axis=1, initial=0)
    rows = np.abs(np.asarray(ours) - theirs).reshape(len(theirs), -1).max(axis=1, initial=0)
    return bool(np.all(rows <= RTOL * size + RTOL * 1e-3 * (1 + size.max(initial=0))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("first", type=int, help="seed of the first model")
    parser.add_argument("last", type=int, nargs="?", help="seed after the last; default: first + 1")
    parser.add_argument("--check", action="store_true", help="compare with MuJoCo, do not print")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    for seed in range(args.first, args.last or args.first + 1):
        text = OddModel(seed).text
        if not args.check:
            print(text)
        elif (found := differences(text, seed)) is not None:
            print(f"{seed}: {', '.join(found) or 'equal'}", flush=True)


if __name__ == "__main__":
    main()
