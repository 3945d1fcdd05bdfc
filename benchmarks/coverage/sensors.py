"""Sensors and keyframes of a random model."""

import xml.etree.ElementTree as ET

from odd.drawing import Drawing

FRAMES = ("pos", "quat", "xaxis", "yaxis", "zaxis", "linvel", "angvel", "linacc", "angacc")


class Sensors(Drawing):
    """Draws sensors of every kind that the model has an object for."""

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
