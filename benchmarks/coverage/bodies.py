"""Bodies of a random model, with their joints, geoms, sites, cameras and lights."""

import xml.etree.ElementTree as ET

from odd.drawing import Drawing


class Bodies(Drawing):
    """Draws the tree of bodies."""

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
