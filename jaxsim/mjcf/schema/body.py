"""`<worldbody>` and `<body>`: the kinematic tree, with all elements attached to its bodies.

`<frame>` and `<replicate>` may occur wherever a body may, with the children that their parent
allows. The compiler expands them; they are not counted among the elements of the format.
"""

from dataclasses import replace

from jaxsim.mjcf.schema.deformable import FLEXCOMP
from jaxsim.mjcf.schema.groups import (
    CLASS_ATTR,
    DRAWING_ONLY,
    ONE_ORIENTATION,
    ORIENTATION_ATTRS,
    plugin,
    position,
    rgba,
    solimp,
    solref,
    user,
)
from jaxsim.mjcf.schema.rows import (
    Row,
    at_most_one,
    boolean,
    integer,
    keyword,
    keywords,
    name_attr,
    real,
    ref,
    row,
    text,
    tristate,
)

CHILDCLASS = ref("childclass", "default", "default class of all elements inside without one")

INERTIAL = row(
    "inertial",
    "?",
    "Mass and inertia of the body, instead of those inferred from its geoms.",
    real("pos", None, "m", "center of mass", n=3, required=True),
    ORIENTATION_ATTRS[0],
    real("mass", None, "kg", "mass", required=True),
    real("diaginertia", None, "kg m^2", "moments about the axes of the inertial frame", n=3),
    ORIENTATION_ATTRS[1:],
    real("fullinertia", None, "kg m^2", "inertia matrix: xx yy zz xy xz yz", n=6),
    rules=[at_most_one("fullinertia", "quat", "axisangle", "xyaxes", "zaxis", "euler")],
)

JOINT = row(
    "joint",
    "*",
    "A degree of freedom of the body relative to its parent.",
    name_attr("joint"),
    CLASS_ATTR,
    keyword("type", "free ball slide hinge", "hinge", "kind of motion"),
    integer("group", 0, "group, for switching the drawing on and off"),
    position("point that the joint rotates about"),
    real("axis", (0, 0, 1), "1", "axis of a hinge or slide"),
    real("springdamper", (0, 0), "s, 1", "time constant and damping ratio; replaces stiffness"),
    tristate("limited", "auto", "the range is a limit"),
    tristate("actuatorfrclimited", "auto", "the range of actuator forces is a limit"),
    solref("solreflimit", "the limit"),
    solimp("solimplimit", "the limit", "1, 1, Q, 1, 1"),
    solref("solreffriction", "the dry friction"),
    solimp("solimpfriction", "the dry friction", "1, 1, Q, 1, 1"),
    real("stiffness", (0, 0, 0), "F/Q, F/Q^2, F/Q^3", "spring: linear, quadratic, cubic", n=(1, 3)),
    real("range", (0, 0), "Q", "lower and upper limit"),
    real("actuatorfrcrange", (0, 0), "F", "bounds of the sum of actuator forces"),
    boolean("actuatorgravcomp", "false", "count gravity compensation as actuator force"),
    real("margin", 0, "Q", "distance from the limit at which it begins to act"),
    real("ref", 0, "Q", "coordinate in the reference pose of the file"),
    real("springref", 0, "Q", "coordinate at which the spring is at rest"),
    real("springyield", 0, "Q", "deflection at which the spring yields; 0: never"),
    real("armature", 0, "F s^2/Q", "inertia added to the degrees of freedom"),
    real(
        "damping",
        (0, 0, 0),
        "F s/Q, F s^2/Q^2, F s^3/Q^3",
        "damper: linear, quadratic, cubic",
        n=(1, 3),
    ),
    real("frictionloss", 0, "F", "dry friction"),
    user("joint", "nuser_jnt"),
)

FREEJOINT = row(
    "freejoint",
    "*",
    "A free joint without defaults.",
    name_attr("joint"),
    integer("group", 0, "group, for switching the drawing on and off"),
    tristate("align", "auto", "align the body with its inertia; auto: as <compiler alignfree>"),
)

GEOM = row(
    "geom",
    "*",
    "A shape fixed to the body: it collides, is drawn, and gives the body mass.",
    name_attr("geom"),
    CLASS_ATTR,
    keyword(
        "type",
        "plane hfield sphere capsule ellipsoid cylinder box mesh sdf",
        "sphere",
        "kind of shape",
    ),
    integer("contype", 1, "collision mask: kinds that this geom is"),
    integer("conaffinity", 1, "collision mask: kinds that this geom collides with"),
    integer("condim", 3, "dimensions of contact forces: 1, 3, 4 or 6"),
    integer("group", 0, "group, for drawing and for <compiler inertiagrouprange>"),
    integer("priority", 0, "the geom of higher priority sets the parameters of a contact"),
    real("size", (0, 0, 0), "m", "sizes, depending on the type", n=(1, 3)),
    ref("material", "material", "material of the surface"),
    real("friction", (1, 0.005, 0.0001), "1, m, m", "sliding, torsional, rolling", n=(1, 3)),
    real("mass", None, "kg", "mass; replaces density"),
    real("density", 1000, "?", "mass per volume, or per area of a shell"),
    boolean("shellinertia", "false", "spread the mass over the surface"),
    real("solmix", 1, "1", "weight of this geom when contact parameters are averaged"),
    solref(of="contacts"),
    solimp(of="contacts"),
    real("margin", 0, "m", "distance at which contacts begin to act"),
    real("gap", 0, "m", "further distance at which contacts are detected but inactive"),
    real(
        "surfacevel",
        (0,) * 6,
        "m/s, m/s, m/s, rad/s, rad/s, rad/s",
        "velocity of the surface: linear, angular",
        n=(1, 6),
    ),
    real("adhesion", 0, "kg m/s^2", "largest adhesive force of a contact"),
    real("fromto", None, "m", "two end points; replaces pose and length", n=6),
    position("center of the shape"),
    ORIENTATION_ATTRS,
    ref("hfield", "hfield", "height field that is the shape"),
    ref("mesh", "mesh", "mesh that is the shape, or that a primitive is fitted to"),
    real("fitscale", 1, "1", "factor on the sizes of a fitted primitive"),
    rgba(),
    boolean("castshadow", "true", "throw shadows", no_effect=DRAWING_ONLY),
    keyword("fluidshape", "none ellipsoid", "none", "model of the forces of the medium"),
    real(
        "fluidcoef",
        (0.5, 0.25, 1.5, 1.0, 1.0),
        "1",
        "blunt drag, slender drag, angular drag, Kutta lift, Magnus lift",
        n=(1, 5),
    ),
    user("geom", "nuser_geom"),
    children=[plugin("Plugin that is the signed distance field of the geom.")],
    rules=[ONE_ORIENTATION],
)

ATTACH = row(
    "attach",
    "*",
    "Puts a part of another model here.",
    ref("model", "model", "model that the part is taken from; none: this one"),
    ref("body", "body", "body that is attached; none: the whole world of the model"),
    ref("frame", "frame", "frame that is attached"),
    text("prefix", None, "put before the names of all that is attached", required=True),
    rules=[at_most_one("body", "frame")],
)

SITE = row(
    "site",
    "*",
    "A frame on the body, for sensors, tendons and constraints.",
    name_attr("site"),
    CLASS_ATTR,
    keyword(
        "type",
        "sphere capsule ellipsoid cylinder box mesh plane hfield sdf",
        "sphere",
        "kind of shape; the last three are known to the format but refused for sites",
    ),
    integer("group", 0, "group, for switching the drawing on and off"),
    position("center of the site"),
    ORIENTATION_ATTRS,
    ref("material", "material", "material of the surface"),
    ref("mesh", "mesh", "mesh that is the shape"),
    real("size", (0.005, 0.005, 0.005), "m", "sizes, depending on the type", n=(1, 3)),
    real("fromto", None, "m", "two end points; replaces pose and length", n=6),
    rgba(),
    user("site", "nuser_site"),
    rules=[ONE_ORIENTATION],
)

_TRACKING = "fixed track trackcom targetbody targetbodycom"

CAMERA = row(
    "camera",
    "*",
    "A camera; it looks along -Z, with X to the right.",
    name_attr("camera"),
    CLASS_ATTR,
    keyword("projection", "perspective orthographic", "perspective", "kind of projection"),
    real("fovy", 45, "?", "vertical field of view in degrees, or extent in meters"),
    real("ipd", 0.068, "m", "distance between the eyes"),
    integer("resolution", (1, 1), "width and height of the image in pixels"),
    keywords(
        "output", "rgb depth distance normal segmentation", "rgb", "its images", ordered=False
    ),
    position("position of the camera"),
    ORIENTATION_ATTRS,
    keyword("mode", _TRACKING, "fixed", "how the camera moves with bodies"),
    ref("target", "body", "body that the camera looks at"),
    real("focal", (0, 0), "m", "focal lengths"),
    real("focalpixel", (0, 0), "1", "focal lengths in pixels"),
    real("principal", (0, 0), "m", "offset of the principal point"),
    real("principalpixel", (0, 0), "1", "offset of the principal point in pixels"),
    real("sensorsize", (0, 0), "m", "size of the sensor; replaces fovy"),
    user("camera", "nuser_cam"),
    rules=[ONE_ORIENTATION, at_most_one("fovy", "sensorsize")],
)

LIGHT = row(
    "light",
    "*",
    "A light; it shines along `dir`.",
    name_attr("light"),
    CLASS_ATTR,
    boolean("directional", "false", "old spelling of type='directional'"),
    keyword("type", "spot directional point image", "spot", "kind of light"),
    boolean("castshadow", "true", "throw shadows"),
    boolean("active", "true", "switched on"),
    position("position of the light"),
    real("dir", (0, 0, -1), "1", "direction of the light"),
    real("bulbradius", 0.02, "m", "radius of the bulb, for soft shadows"),
    real("intensity", 0.0, "?", "intensity, for physically based drawing"),
    real("range", 10.0, "m", "reach of the light"),
    real("attenuation", (1, 0, 0), "1, /m, /m^2", "constant, linear and quadratic decay"),
    real("cutoff", 45, "deg", "half-angle of a spot's cone"),
    real("softness", 0.2, "1", "share of the cone over which a spot fades"),
    real("exponent", 10, "1", "sharpness of a spot"),
    real("ambient", (0, 0, 0), "1", "ambient color"),
    real("diffuse", (0.7, 0.7, 0.7), "1", "diffuse color"),
    real("specular", (0.3, 0.3, 0.3), "1", "specular color"),
    keyword("mode", _TRACKING, "fixed", "how the light moves with bodies"),
    ref("target", "body", "body that the light points at"),
    ref("texture", "texture", "texture of an image light"),
    rules=[at_most_one("directional", "type")],
)

BODY = row(
    "body",
    "R",
    "A rigid body; its joints let it move relative to the body that encloses it.",
    name_attr("body"),
    CHILDCLASS,
    position("origin of the body"),
    ORIENTATION_ATTRS,
    boolean("mocap", "false", "pose is set from outside; a child of the world without joints"),
    real("gravcomp", 0, "1", "share of gravity that is compensated"),
    keyword("sleep", "auto never allowed init", "auto", "whether the tree may fall asleep"),
    keyword("simple", "false auto", "auto", "treat the body as simple where it qualifies"),
    keyword("fuse", "false auto", "auto", "let the body be merged by <compiler fusestatic>"),
    user("body", "nuser_body"),
    children=[
        INERTIAL,
        JOINT,
        FREEJOINT,
        GEOM,
        ATTACH,
        SITE,
        CAMERA,
        LIGHT,
        plugin("Plugin that acts on the body."),
        FLEXCOMP,
    ],
    rules=[ONE_ORIENTATION],
)

_OF_BODIES = tuple(BODY.attrs[name] for name in "mocap gravcomp sleep simple fuse user".split())


def _without_effect(reason: str, *attrs):
    return [replace(attr, no_effect=reason) for attr in attrs]


# Below, meta: expanded by the compiler, not counted as an element; loose: unknown attributes are no
# errors; instead: the element is rejected with this message (schema/rows.py).
def _wrappers() -> list[Row]:
    """Return new rows of `<frame>` and `<replicate>`, still empty.

    MuJoCo does not check their attributes, and existing models have attributes of older versions.
    """
    frame = row(
        "frame",
        "*",
        "A pose that is applied to all elements inside.",
        name_attr("frame"),
        CHILDCLASS,
        position("origin of the frame"),
        ORIENTATION_ATTRS,
        real("scale", 1, "1", "factor on all lengths inside, or one for each axis", n=(1, 3)),
        keyword("scaling", "similar geometry", "similar", "whether forces are scaled too"),
        real("massscale", 0, "1", "factor on all masses inside; 0: as volumes scale"),
        _without_effect("a frame is not a body; MuJoCo ignores it too", *_OF_BODIES),
        rules=[ONE_ORIENTATION],
        meta=True,
        loose=True,
    )
    replicate = row(
        "replicate",
        "*",
        "Repeats its contents, each copy with a further offset and rotation.",
        integer("count", None, "number of copies", required=True),
        text("sep", "", "separator between a name and the number of the copy"),
        real("offset", (0, 0, 0), "m", "step from one copy to the next"),
        real("euler", (0, 0, 0), "angle", "rotation from one copy to the next"),
        CHILDCLASS,
        _without_effect(
            "copies are placed by offset and euler; MuJoCo ignores it too",
            text("name", None, "a name"),
            position("a position"),
            *ORIENTATION_ATTRS[:-1],
            *_OF_BODIES,
        ),
        meta=True,
        loose=True,
    )
    return [frame, replicate]


COMPOSITE = row(
    "composite",
    "*",
    "Removed in MuJoCo 4.0.",
    meta=True,
    instead="was removed in MuJoCo 4.0; write a <flexcomp>, for a cable one of dim='1'",
)

WORLDBODY = row("worldbody", "*", "The body that does not move, and all others inside it.")


def _body_contents(holder: Row, contents: list[Row], without: str = "") -> None:
    holder.children.update({r.tag: r for r in contents if r.tag not in without.split()})


def _nest() -> None:
    """Add bodies to bodies, and to frames and replicates the children that their body may have.

    The world has no joints and no inertia, nor have its frames. Joints cannot be replicated.
    """
    inside = list(BODY.children.values())
    fixed = [child for child in inside if child.tag not in ("inertial", "joint", "freejoint")]
    for holder, contents in ((BODY, inside), (WORLDBODY, fixed)):
        frame, replicate = _wrappers()
        contents = [*contents, BODY, frame, replicate, COMPOSITE]
        _body_contents(holder, contents)
        _body_contents(frame, contents)
        _body_contents(replicate, contents, without="joint freejoint")


_nest()
