"""Options, defaults and assets of a random model."""

import xml.etree.ElementTree as ET

from odd.drawing import Drawing

TETRAHEDRON = "0 0 0  .2 0 0  0 .2 0  0 0 .2"
WEDGE = "-.1 -.1 -.05  .12 -.1 -.05  -.1 .1 -.05  .1 .1 -.05  -.1 -.08 .1  .1 -.1 .06"
FLAGS = (
    "constraint equality frictionloss limit contact spring damper gravity clampctrl warmstart "
    "filterparent actuation refsafe sensor midphase eulerdamp autoreset nativeccd island multiccd"
).split()


class Settings(Drawing):
    """Draws what stands before the bodies."""

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
