"""`<custom>` and `<keyframe>`: user data, and states to start from."""

from jaxsim.mjcf.schema.groups import OBJECT_TYPES
from jaxsim.mjcf.schema.rows import ANY_COUNT, integer, keyword, name_attr, real, ref, row, text

CUSTOM = row(
    "custom",
    "*",
    "User data of the model.",
    children=[
        row(
            "numeric",
            "*",
            "Named numbers.",
            name_attr("numeric", required=True),
            integer("size", None, "number of values, padded with zeros; none: the length of data"),
            real("data", None, "?", "the numbers", n=ANY_COUNT),
        ),
        row(
            "text",
            "*",
            "A named text.",
            name_attr("text", required=True),
            text("data", None, "the text, also as CDATA inside the element"),
        ),
        row(
            "tuple",
            "*",
            "A named list of objects.",
            name_attr("tuple", required=True),
            children=[
                row(
                    "element",
                    "*",
                    "An object in the list.",
                    keyword("objtype", OBJECT_TYPES, None, "kind of object", required=True),
                    ref("objname", "@objtype", "the object", required=True),
                    real("prm", 0, "?", "a number that goes with it"),
                )
            ],
        ),
    ],
)

KEY = row(
    "key",
    "*",
    "A state to start from.",
    name_attr("key"),
    real("time", 0, "s", "time"),
    real("qpos", None, "?", "positions; none: those of the file", n=ANY_COUNT),
    real("qvel", None, "?", "velocities; none: zeros", n=ANY_COUNT),
    real("act", None, "?", "activations; none: zeros", n=ANY_COUNT),
    real("mpos", None, "m", "positions of mocap bodies; none: those of the file", n=ANY_COUNT),
    real("mquat", None, "1", "orientations of mocap bodies; none: those of the file", n=ANY_COUNT),
    real("ctrl", None, "?", "controls; none: zeros", n=ANY_COUNT),
    real("plastic", None, "?", "plastic deformation; none: the initial one", n=ANY_COUNT),
)

KEYFRAME = row("keyframe", "*", "States to start from.", children=[KEY])
