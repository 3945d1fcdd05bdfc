"""`<custom>` and `<keyframe>`: user data, and states to start from."""

from jaxsim.mjcf.schema.groups import OBJECT_TYPES
from jaxsim.mjcf.schema.rows import ANY, integer, keyword, name_of, real, ref, row, text

CUSTOM = row(
    "custom",
    "*",
    "User data of the model.",
    children=[
        row(
            "numeric",
            "*",
            "Named numbers.",
            name_of("numeric", required=True),
            integer("size", None, "number of values, padded with zeros; none: the length of data"),
            real("data", None, "?", "the numbers", n=ANY),
        ),
        row(
            "text",
            "*",
            "A named text.",
            name_of("text", required=True),
            text("data", None, "the text, also as CDATA inside the element"),
        ),
        row(
            "tuple",
            "*",
            "A named list of objects.",
            name_of("tuple", required=True),
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
    name_of("key"),
    real("time", 0, "s", "time"),
    real("qpos", None, "?", "positions; none: those of the file", n=ANY),
    real("qvel", None, "?", "velocities; none: zeros", n=ANY),
    real("act", None, "?", "activations; none: zeros", n=ANY),
    real("mpos", None, "m", "positions of mocap bodies; none: those of the file", n=ANY),
    real("mquat", None, "1", "orientations of mocap bodies; none: those of the file", n=ANY),
    real("ctrl", None, "?", "controls; none: zeros", n=ANY),
    real("plastic", None, "?", "plastic deformation; none: the initial one", n=ANY),
)

KEYFRAME = row("keyframe", "*", "States to start from.", children=[KEY])
