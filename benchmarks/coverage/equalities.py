"""Objects of a random model that couple bodies: flexes, contact pairs, tendons, equalities."""

import xml.etree.ElementTree as ET

from odd.drawing import Drawing


class Ties(Drawing):
    """Random elements that refer to existing bodies, joints, geoms and sites."""

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

    def other_site(self, string: ET.Element, last: str) -> str:
        """Add a site to a tendon that differs from the previous one."""
        site = self.draw.choice([s for s in self.names["site"] if s != last])
        ET.SubElement(string, "site", site=site)
        return site
