"""`<flexcomp>` and `<deformable>`: soft bodies and skins."""

from jaxsim.mjcf.schema.asset import SKIN
from jaxsim.mjcf.schema.groups import (
    ONE_ORIENTATION,
    ORIENTATION_ATTRS,
    plugin,
    position,
    rgba,
    solimp,
    solref,
)
from jaxsim.mjcf.schema.rows import (
    ANY_COUNT,
    boolean,
    file,
    integer,
    keyword,
    name_attr,
    real,
    ref,
    refs,
    row,
)

_DOFS = "full radial trilinear quadratic 2d"

_FLEX_CONTACT = row(
    "contact",
    "?",
    "How the flex collides.",
    integer("contype", 1, "collision mask: kinds that this flex is"),
    integer("conaffinity", 1, "collision mask: kinds that this flex collides with"),
    integer("condim", 3, "dimensions of contact forces: 1, 3, 4 or 6"),
    integer("priority", 0, "the object of higher priority sets the parameters of a contact"),
    real("friction", (1, 0.005, 0.0001), "1, m, m", "sliding, torsional, rolling", n=(1, 3)),
    real("solmix", 1, "1", "weight of this flex when contact parameters are averaged"),
    solref(of="contacts"),
    solimp(of="contacts"),
    real("margin", 0, "m", "distance at which contacts begin to act"),
    real("gap", 0, "m", "further distance at which contacts are detected but inactive"),
    keyword("selfcollide", "none narrow bvh sap auto", "auto", "collision of the flex with itself"),
    integer("activelayers", 1, "outer layers of a solid flex that collide"),
    boolean("passive", "false", "contacts as passive forces instead of constraints"),
)

_FLEX_EDGE = row(
    "edge",
    "?",
    "Springs along the edges of the flex.",
    real("stiffness", 0, "kg/s^2", "stiffness of the edges"),
    real("damping", 0, "kg/s", "damping of the edges"),
)

FLEXCOMP_EDGE = row(
    "edge",
    "?",
    "Springs or constraints along the edges of the flex.",
    keyword("equality", "false true strain", "false", "hold the lengths by constraints"),
    solref(of="the edges"),
    solimp(of="the edges"),
    _FLEX_EDGE.attrs.values(),
)

_FLEX_ELASTICITY = row(
    "elasticity",
    "?",
    "The material of the flex.",
    real("young", 0, "kg/m s^2", "Young's modulus"),
    real("poisson", 0, "1", "Poisson's ratio"),
    real("shear", 0, "kg/m s^2", "shear modulus of a rod; 0: from the two above"),
    real("damping", 0, "s", "damping proportional to stiffness"),
    real("thickness", -1, "m", "thickness of a shell"),
    real("yield", (0, 0), "1", "strains at which stretching and bending yield", n=(1, 2)),
    keyword("elastic2d", "none bend stretch both", "none", "how a shell resists"),
    keyword("section", "circle box", "circle", "cross-section of a rod"),
    real("sectionsize", (0, 0), "m", "half-sizes of a box section"),
)

PIN = row(
    "pin",
    "*",
    "Points of the flex that do not move relative to the body.",
    integer("id", None, "the points", n=ANY_COUNT),
    integer("range", None, "ranges of points, first and last of each", n=ANY_COUNT),
    integer("grid", None, "the points, by their grid coordinates", n=ANY_COUNT),
    integer(
        "gridrange", None, "blocks of the grid, first and last coordinates of each", n=ANY_COUNT
    ),
)

FLEX = row(
    "flex",
    "*",
    "A soft body, given by its points and elements.",
    name_attr("flex"),
    integer("group", 0, "group, for switching the drawing on and off"),
    integer("dim", 2, "1: rod, 2: shell, 3: solid"),
    real("radius", 0.005, "m", "radius of the elements"),
    refs("material", "material", "material of the surface, or one for each element"),
    rgba(),
    boolean("flatskin", "false", "draw without smoothing"),
    refs("body", "body", "body of each point, or one for all", required=True),
    real("vertex", None, "m", "positions of the points in their bodies", n=ANY_COUNT),
    integer("element", None, "points of the elements, dim + 1 each", n=ANY_COUNT, required=True),
    real("texcoord", None, "1", "texture coordinates", n=ANY_COUNT),
    integer("elemtexcoord", None, "texture coordinates of the elements' corners", n=ANY_COUNT),
    refs("node", "body", "bodies of the nodes of an interpolated flex"),
    real("nodecoord", None, "m", "positions of the nodes", n=ANY_COUNT),
    integer("cellcount", None, "cells of the interpolation along each axis", n=3),
    keyword("dof", _DOFS, None, "how the points follow the nodes"),
    children=[_FLEX_CONTACT, _FLEX_EDGE, _FLEX_ELASTICITY],
)

FLEXCOMP = row(
    "flexcomp",
    "*",
    "Makes a soft body: a flex with its bodies, joints and constraints.",
    name_attr("flex", required=True),
    keyword(
        "type",
        "grid box cylinder ellipsoid square disc circle mesh gmsh direct",
        "grid",
        "where the points and elements come from",
    ),
    integer("group", 0, "group, for switching the drawing on and off"),
    integer("dim", 2, "1: rod, 2: shell, 3: solid"),
    keyword("dof", _DOFS, "full", "degrees of freedom of the points"),
    integer("count", (10, 10, 10), "points along each axis of a grid"),
    integer("cellcount", (1, 1, 1), "cells of the interpolation along each axis"),
    real("spacing", (0.02, 0.02, 0.02), "m", "distance of the points of a grid"),
    real("radius", 0.005, "m", "radius of the elements"),
    boolean("rigid", "false", "all points in one rigid body"),
    real("mass", 1, "kg", "mass of the whole"),
    real("inertiabox", 0.005, "m", "size of the box whose inertia each point has"),
    real("scale", (1, 1, 1), "m", "factors along the axes"),
    file("file", "file of the points and elements"),
    ref("mesh", "mesh", "mesh of the points and elements"),
    real("point", None, "1", "positions of the points", n=ANY_COUNT),
    integer("element", None, "points of the elements, dim + 1 each", n=ANY_COUNT),
    real("texcoord", None, "1", "texture coordinates of the points", n=ANY_COUNT),
    refs("material", "material", "material of the surface, or one for each element"),
    rgba(),
    boolean("flatskin", "false", "draw without smoothing"),
    position("position of the whole"),
    ORIENTATION_ATTRS,
    real("origin", (0, 0, 0), "1", "point that the triangles of a surface are joined to"),
    children=[
        FLEXCOMP_EDGE,
        _FLEX_ELASTICITY,
        _FLEX_CONTACT,
        PIN,
        plugin("Plugin that acts on the soft body."),
    ],
    rules=[ONE_ORIENTATION],
)

DEFORMABLE = row("deformable", "*", "Soft bodies and skins.", children=[FLEX, SKIN])
