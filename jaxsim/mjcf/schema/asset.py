"""`<asset>`: meshes, height fields, textures, materials, skins and models for use by elements."""

from dataclasses import replace

from jaxsim.mjcf.schema.groups import CLASS_ATTR, config, plugin, rgba
from jaxsim.mjcf.schema.rows import (
    ANY_COUNT,
    at_most_one,
    boolean,
    file,
    integer,
    keyword,
    name_attr,
    real,
    ref,
    row,
    text,
    tristate,
)

_CONTENT_TYPE = text("content_type", None, "format of the file, if the extension does not give it")

MESH = row(
    "mesh",
    "*",
    "A triangle mesh, from a file, from lists of vertices, or made by the compiler.",
    name_attr("mesh"),
    CLASS_ATTR,
    _CONTENT_TYPE,
    file("file", "STL, OBJ or MSH file"),
    real("vertex", None, "1", "positions of the vertices, three numbers each", n=ANY_COUNT),
    real("normal", None, "1", "normals of the vertices, three numbers each", n=ANY_COUNT),
    real("texcoord", None, "1", "texture coordinates, two numbers each", n=ANY_COUNT),
    integer(
        "face", None, "vertices of the triangles, three each; none: the convex hull", n=ANY_COUNT
    ),
    real("refpos", (0, 0, 0), "1", "origin that the vertices are moved to"),
    real("refquat", (1, 0, 0, 0), "1", "orientation that the vertices are rotated to"),
    real("scale", (1, 1, 1), "m", "factors along the axes; negative ones mirror"),
    boolean("smoothnormal", "false", "average the normals over faces even at sharp edges"),
    integer("maxhullvert", -1, "most vertices of the convex hull; -1: no bound"),
    keyword("inertia", "convex legacy exact shell", "legacy", "how the mass is distributed"),
    keyword(
        "builtin",
        "none sphere hemisphere cone supertorus supersphere wedge plate"
        " grid box cylinder ellipsoid square disc",
        "none",
        "shape that the compiler makes",
    ),
    real("params", None, "?", "parameters of the built-in shape", n=ANY_COUNT),
    ref("material", "material", "material of geoms that use the mesh and have none"),
    children=[
        plugin("Plugin whose signed distance is the mesh, instead of vertices or a built-in shape.")
    ],
    rules=[at_most_one("builtin", "file"), at_most_one("builtin", "vertex")],
)

HFIELD = row(
    "hfield",
    "*",
    "A height field: terrain over a regular grid.",
    name_attr("hfield"),
    _CONTENT_TYPE,
    file("file", "PNG image, or MuJoCo's binary format"),
    integer("nrow", 0, "rows of the grid, where there is no file"),
    integer("ncol", 0, "columns of the grid, where there is no file"),
    real(
        "size", None, "m", "half-sizes in X and Y, top, and depth of the base", n=4, required=True
    ),
    real("elevation", None, "1", "heights row by row, scaled to between 0 and 1", n=ANY_COUNT),
)

BONE = row(
    "bone",
    "*",
    "A bone of a skin: a body and the vertices it moves.",
    ref("body", "body", "body that moves the vertices", required=True),
    real("bindpos", None, "m", "position of the body when the skin was bound", n=3, required=True),
    real("bindquat", None, "1", "orientation of it then", n=4, required=True),
    integer("vertid", None, "vertices that the bone moves", n=ANY_COUNT, required=True),
    real("vertweight", None, "1", "weight of the bone in each of them", n=ANY_COUNT, required=True),
)

SKIN = row(
    "skin",
    "*",
    "A surface that bends with the bodies; for drawing.",
    name_attr("skin"),
    file("file", "SKN file"),
    ref("material", "material", "material of the skin"),
    rgba(),
    real("inflate", 0, "m", "offset of the vertices along their normals"),
    real("vertex", None, "m", "positions of the vertices", n=ANY_COUNT),
    real("texcoord", None, "1", "texture coordinates of the vertices", n=ANY_COUNT),
    integer("face", None, "vertices of the triangles", n=ANY_COUNT),
    integer("group", 0, "group, for switching the drawing on and off"),
    children=[BONE],
)

TEXTURE = row(
    "texture",
    "*",
    "An image, from files or made by the compiler.",
    name_attr("texture"),
    CLASS_ATTR,
    keyword("type", "2d cube skybox", "cube", "how the image is laid on a surface"),
    keyword("colorspace", "auto linear sRGB", "auto", "color space of the image"),
    _CONTENT_TYPE,
    file("file", "image, or all sides of a cube in one grid"),
    integer("gridsize", (1, 1), "rows and columns of the grid in the file"),
    text(
        "gridlayout",
        "............",
        "sides of the cube in the cells of the grid",
        pattern=r"[.RLUDFB]*",
        form="letters of 'RLUDFB', or '.' for an unused cell",
    ),
    *(file(f"file{side}", f"image of the {side} side") for side in ("right", "left", "up")),
    *(file(f"file{side}", f"image of the {side} side") for side in ("down", "front", "back")),
    keyword("builtin", "none gradient checker flat", "none", "pattern that the compiler makes"),
    real("rgb1", (0.8, 0.8, 0.8), "1", "first color of the pattern"),
    real("rgb2", (0.5, 0.5, 0.5), "1", "second color of the pattern"),
    keyword("mark", "none edge cross random", "none", "marks on the pattern"),
    real("markrgb", (0, 0, 0), "1", "color of the marks"),
    real("random", 0.01, "1", "probability of a random mark at a pixel"),
    integer("width", 0, "width of the pattern in pixels"),
    integer("height", 0, "height of the pattern in pixels"),
    boolean("hflip", "false", "flip the image left to right"),
    boolean("vflip", "false", "flip the image top to bottom"),
    integer("nchannel", 3, "channels of the image"),
    tristate("embed", "auto", "keep the pixels in the model; auto: as <compiler passthrough>"),
)

LAYER = row(
    "layer",
    "*",
    "A texture of a material, with its role.",
    ref("texture", "texture", "the texture", required=True),
    keyword(
        "role",
        "rgb occlusion roughness metallic normal opacity emissive rgba orm",
        None,
        "role of the texture",
        required=True,
    ),
)

MATERIAL = row(
    "material",
    "*",
    "Color and texture of a surface.",
    name_attr("material", required=True),
    CLASS_ATTR,
    ref("texture", "texture", "texture of the surface"),
    real("texrepeat", (1, 1), "?", "repetitions of the texture along its two axes"),
    boolean("texuniform", "false", "repeat by the meter, not by the object"),
    real("emission", 0, "1", "light that the surface gives off"),
    real("specular", 0.5, "1", "strength of highlights"),
    real("shininess", 0.5, "1", "sharpness of highlights"),
    real("reflectance", 0, "1", "strength of mirror images"),
    real("metallic", -1, "1", "metalness, for physically based drawing; negative: not given"),
    real("roughness", -1, "1", "roughness, for physically based drawing; negative: not given"),
    rgba((1, 1, 1, 1)),
    children=[LAYER],
)

MODEL = row(
    "model",
    "*",
    "Another model, whose parts can be attached.",
    name_attr("model"),
    file("file", "MJCF or URDF file of the model", required=True),
    replace(_CONTENT_TYPE, no_effect="the file itself is recognized as MJCF or URDF"),
)

ASSET = row(
    "asset",
    "*",
    "Assets that elements refer to by name.",
    children=[MESH, HFIELD, SKIN, TEXTURE, MATERIAL, MODEL],
)

INSTANCE = row(
    "instance",
    "*",
    "An instance of a plugin, which several elements may share.",
    name_attr("plugin", required=True),
    children=[config()],
)

EXTENSION = row(
    "extension",
    "*",
    "Engine plugins that the model needs.",
    children=[
        row(
            "plugin",
            "*",
            "Declares a plugin.",
            text("plugin", None, "identifier of the plugin", required=True),
            children=[INSTANCE],
        )
    ],
)
