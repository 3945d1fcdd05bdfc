"""The URDF format: its elements and attributes, declared with the functions of the MJCF schema.

Source: the XML specification of ROS (wiki.ros.org/urdf/XML), as far as MuJoCo reads it. `no_effect`
gives the reason why an attribute is not used; `IGNORED_ELEMENTS` does so for elements. URDF files
are shared by many tools that add parts of their own, so parts in neither table are skipped with a
log message, unless they look like misspellings.
"""

from dataclasses import replace

from jaxsim.mjcf.schema import ROOT
from jaxsim.mjcf.schema.rows import Row, file, keyword, name_attr, real, ref, row, text

JOINT_TYPES = "revolute continuous prismatic fixed floating planar spherical"

_VELOCITY = "a bound of the controller, which MuJoCo does not have"
_SOFT = "a safety limit of the controller, which MuJoCo does not read"
_TEXTURE = "a texture, which MuJoCo does not read; it takes the color of a URDF material"

_ORIGIN = row(
    "origin",
    "?",
    "Pose relative to the frame of the element around it.",
    real("xyz", (0, 0, 0), "m", "position"),
    real("rpy", (0, 0, 0), "rad", "roll, pitch, yaw: rotations about the fixed axes x, y and z"),
)

_COLOR = row("color", "?", "A color.", real("rgba", None, "1", "color", n=4, required=True))

_URDF_MATERIAL = row(
    "material",
    "?",
    "A color with a name, by which it can be used again.",
    text("name", None, "name of the material"),
    children=[
        _COLOR,
        row("texture", "*", "A picture.", file("filename", "picture", no_effect=_TEXTURE)),
    ],
)

_GEOMETRY = row(
    "geometry",
    "?",
    "A shape; of several the first of box, cylinder, sphere, capsule, mesh counts.",
    children=[
        row("box", "*", "A box.", real("size", None, "m", "its sides", n=3, required=True)),
        row(
            "cylinder",
            "*",
            "A cylinder along z.",
            real("radius", None, "m", "radius", required=True),
            real("length", None, "m", "height", required=True),
        ),
        row("sphere", "*", "A ball.", real("radius", None, "m", "radius", required=True)),
        row(
            "capsule",
            "*",
            "A cylinder along z with a hemisphere on both ends.",
            real("radius", None, "m", "radius", required=True),
            real("length", None, "m", "height of the cylinder", required=True),
        ),
        row(
            "mesh",
            "*",
            "A shape from a file.",
            text("filename", None, "file of the mesh", required=True),
            real("scale", (1, 1, 1), "1", "factors on its coordinates"),
        ),
    ],
)

_NAME = (text("name", None, "name of the geom"),)

_URDF_VISUAL = row(
    "visual", "*", "What is drawn.", *_NAME, children=[_ORIGIN, _GEOMETRY, _URDF_MATERIAL]
)
_URDF_COLLISION = row(
    "collision", "*", "What collides.", *_NAME, children=[_ORIGIN, _GEOMETRY, _URDF_MATERIAL]
)

_INERTIAL = row(
    "inertial",
    "?",
    "Mass and inertia of the link.",
    children=[
        _ORIGIN,
        row("mass", "?", "Mass.", real("value", None, "kg", "mass", required=True)),
        row(
            "inertia",
            "?",
            "Inertia about the center of mass, in the frame of the origin.",
            *(
                real(name, None, "kg m^2", "entry of the inertia matrix", required=True)
                for name in "ixx iyy izz ixy ixz iyz".split()
            ),
        ),
    ],
)

_URDF_LINK = row(
    "link",
    "*",
    "A rigid body.",
    name_attr("body"),
    text("type", None, "kind of link", no_effect="obsolete; all links are alike"),
    text("concave", None, "for some tools", no_effect="MuJoCo takes the convex hull in any case"),
    children=[_INERTIAL, _URDF_VISUAL, _URDF_COLLISION],
)

_URDF_JOINT = row(
    "joint",
    "*",
    "The motion of one link relative to another.",
    name_attr("joint"),
    keyword("type", JOINT_TYPES, None, "kind of motion", required=True),
    children=[
        _ORIGIN,
        row("parent", "?", "The link nearer to the root.", ref("link", "body", "", required=True)),
        row("child", "?", "The link that moves.", ref("link", "body", "", required=True)),
        row("axis", "?", "Axis.", real("xyz", (1, 0, 0), "1", "direction", required=True)),
        row(
            "limit",
            "?",
            "Limits of motion and force.",
            real("lower", 0, "Q", "least coordinate"),
            real("upper", 0, "Q", "largest coordinate"),
            real("effort", 0, "F", "largest actuator force"),
            real("velocity", None, "Q/s", "largest velocity", no_effect=_VELOCITY),
            real("acceleration", None, "Q/s^2", "largest acceleration", no_effect=_VELOCITY),
            real("jerk", None, "Q/s^3", "largest jerk", no_effect=_VELOCITY),
        ),
        row(
            "dynamics",
            "?",
            "Passive forces.",
            real("damping", 0, "F s/Q", "viscous damping"),
            real("friction", 0, "F", "dry friction"),
        ),
        row(
            "mimic",
            "?",
            "Lets the joint follow another.",
            ref("joint", "joint", "joint that is followed", required=True),
            real("multiplier", 1, "?", "factor on its coordinate"),
            real("offset", 0, "Q", "added to the product"),
        ),
    ],
)

# Sections of MuJoCo's settings that are allowed in the extension element, each once.
SETTINGS_SECTIONS = ("compiler", "option", "size")


def _extension() -> Row:
    extension = row("mujoco", "?", "Settings of MuJoCo, as in MJCF.")
    extension.children.update({tag: ROOT.children[tag] for tag in SETTINGS_SECTIONS})
    return extension


ROBOT = row(
    "robot",
    "!",
    "A model.",
    text("name", None, "name of the model"),
    text("version", None, "version of the format", no_effect="there is one version"),
    children=[_extension(), _URDF_LINK, _URDF_JOINT, replace(_URDF_MATERIAL, occurs="*")],
)

_GAZEBO = (
    "gazebo gravity self_collide selfCollide turnGravityOff mu1 mu2 kp kd fdir1 maxVel minDepth"
    " maxContacts laserRetro static plugin sensor implicitSpringDamper provideFeedback"
)
_OTHERS = (
    "contact contact_coefficients collision_checking self_collision_checking verbose loop_joint"
    " drake isaac lula compliant_contact lateral_friction rolling_friction spinning_friction"
    " stiffness restitution inertia_scaling"
)
_DRIVERS = (
    "transmission ros2_control hardware hardwareInterface actuator motor calibration"
    " controller joint_properties"
)
_PLANNERS = "group group_state end_effector virtual_joint passive_joint disable_collisions"

# Elements that are skipped wherever they occur, and why.
IGNORED_ELEMENTS: dict[str, str] = (
    dict.fromkeys(_GAZEBO.split(), "settings of Gazebo, which MuJoCo does not read")
    | dict.fromkeys(_OTHERS.split(), "settings of another simulator, which MuJoCo does not read")
    | dict.fromkeys(_DRIVERS.split(), "hardware and control, which MuJoCo does not read")
    | dict.fromkeys(_PLANNERS.split(), "settings of motion planners, which MuJoCo does not read")
    | {
        "safety_controller": _SOFT,
        "model_state": "a state, which MuJoCo does not read",
        "frame": "a named frame, which MuJoCo does not read",
        "include": "an include, which URDF does not have and MuJoCo does not read",
    }
)

# Attributes of <compiler> in models written for older versions of MuJoCo.
REMOVED_COMPILER_ATTRIBUTES = {
    "convexhull": "hulls are always computed; the attribute was removed",
    "exactmeshinertia": "the attribute was removed; use <mesh inertia='exact'/>",
    "inertiafrommesh": "the attribute was removed",
}
