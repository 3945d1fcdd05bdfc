"""Global settings: `<option>`, `<compiler>`, `<size>`, `<statistic>`."""

from jaxsim.mjcf.schema.rows import (
    at_most_one,
    boolean,
    integer,
    keyword,
    real,
    row,
    text,
    tristate,
)

_TOLERANCE = "improvement at which the solver stops, relative to the model's mean inertia and size"


def _flag(name: str, default: str, doc: str):
    return keyword(name, "disable enable", default, doc)


FLAG = row(
    "flag",
    "?",
    "Parts of the computation that can be switched off or on.",
    _flag("constraint", "enable", "everything the constraint solver does"),
    _flag("equality", "enable", "equality constraints"),
    _flag("frictionloss", "enable", "dry friction of joints and tendons"),
    _flag("limit", "enable", "limits of joints and tendons"),
    _flag("contact", "enable", "collisions and the contact constraints they make"),
    _flag("spring", "enable", "springs of joints and tendons"),
    _flag("damper", "enable", "dampers of joints and tendons"),
    _flag("gravity", "enable", "gravity"),
    _flag("clampctrl", "enable", "clamping of controls to their range"),
    _flag("warmstart", "enable", "start of the solver at the last step's solution"),
    _flag("filterparent", "enable", "no contacts between a body and its parent"),
    _flag("actuation", "enable", "actuator forces"),
    _flag("refsafe", "enable", "raising of too small constraint time constants"),
    _flag("sensor", "enable", "sensors"),
    _flag("midphase", "enable", "collision filtering by bounding volumes"),
    _flag("eulerdamp", "enable", "implicit treatment of joint damping by the Euler integrator"),
    _flag("autoreset", "enable", "reset of the state when it goes bad"),
    _flag("nativeccd", "enable", "MuJoCo's own convex collision method"),
    _flag("island", "enable", "splitting of the constraints into independent islands"),
    _flag("multiccd", "enable", "several contacts between two convex geoms"),
    _flag("override", "disable", "replacement of all contact parameters by the option's o_ ones"),
    _flag("energy", "disable", "computation of potential and kinetic energy"),
    _flag("fwdinv", "disable", "comparison of forward and inverse dynamics"),
    _flag("invdiscrete", "disable", "inverse dynamics of the discrete integrator's acceleration"),
    _flag("sleep", "disable", "sleeping of trees that do not move"),
    _flag("diagexact", "disable", "exact diagonal of the constraint-space inertia"),
    _flag("ipc", "disable", "experimental contact mode of the discrete integrator"),
    _flag("speculative", "disable", "contacts made before fast geoms touch"),
)

OPTION = row(
    "option",
    "*",
    "Options of the simulation.",
    real("timestep", 0.002, "s", "length of one step"),
    real("impratio", 1, "1", "ratio of frictional to normal impedance of elliptic contacts"),
    real("tolerance", 1e-8, "1", _TOLERANCE),
    real("ls_tolerance", 0.01, "1", "relative gradient at which the line search stops"),
    real("noslip_tolerance", 1e-6, "1", "improvement at which the noslip solver stops"),
    real("ccd_tolerance", 1e-6, "m", "precision of convex collision"),
    real("sleep_tolerance", 1e-3, "m/s", "speed below which a tree may fall asleep"),
    real("gravity", (0, 0, -9.81), "m/s^2", "acceleration of gravity"),
    real("wind", (0, 0, 0), "m/s", "velocity of the medium"),
    real("magnetic", (0, -0.5, 0), "?", "magnetic flux of the world, for magnetometers"),
    real("density", 0, "kg/m^3", "density of the medium; 0: no lift and drag"),
    real("viscosity", 0, "kg/m s", "viscosity of the medium; 0: no viscous forces"),
    real("o_margin", 0, "m", "margin of all contacts under the override flag"),
    real("o_solref", (0.02, 1), "s, 1", "solref of all contacts under the override flag", n=(1, 2)),
    real(
        "o_solimp",
        (0.9, 0.95, 0.001, 0.5, 2),
        "1, 1, m, 1, 1",
        "solimp of all contacts under the override flag",
        n=(1, 5),
    ),
    real(
        "o_friction",
        (1, 1, 0.005, 0.0001, 0.0001),
        "1, 1, m, m, m",
        "friction of all contacts under the override flag",
        n=(1, 5),
    ),
    keyword("integrator", "Euler RK4 implicit implicitfast discrete", "Euler", "integrator"),
    keyword("cone", "pyramidal elliptic", "pyramidal", "shape of the friction cone"),
    keyword("jacobian", "dense sparse auto", "auto", "layout of the constraint Jacobian"),
    keyword("solver", "PGS CG Newton", "Newton", "constraint solver"),
    integer("iterations", 100, "most iterations of the constraint solver"),
    integer("ls_iterations", 50, "most iterations of a line search"),
    integer("noslip_iterations", 0, "iterations of the noslip solver; 0: none"),
    integer("ccd_iterations", 35, "most iterations of convex collision"),
    integer("sdf_iterations", 10, "iterations of collision with signed distance fields"),
    integer("sdf_initpoints", 40, "starting points of collision with signed distance fields"),
    integer("actuatorgroupdisable", None, "actuator groups that are switched off", n=(0, 31)),
    children=[FLAG],
)

LENGTHRANGE = row(
    "lengthrange",
    "?",
    "How the range of lengths of actuators is found.",
    keyword("mode", "none muscle muscleuser all", "muscle", "actuators whose range is found"),
    boolean("useexisting", "true", "keep a range that the model gives"),
    boolean("uselimit", "false", "take the range from the limits of the joint or tendon"),
    real("accel", 20, "?", "acceleration that the pulling force aims at"),
    real("maxforce", 0, "?", "largest pulling force; 0: no bound"),
    real("timeconst", 1, "s", "time constant of the damping of velocities"),
    real("timestep", 0.01, "s", "step of the internal simulation; 0: the model's own"),
    real("inttotal", 10, "s", "length of the internal simulation"),
    real("interval", 2, "s", "end of it over which the length is measured"),
    real("tolrange", 0.05, "1", "largest relative spread of a length that has converged"),
)

_SAVING = "the call says it: Spec.to_xml writes as it is written, jaxsim.flatten as compiled"

COMPILER = row(
    "compiler",
    "*",
    "How the model is compiled.",
    boolean("autolimits", "true", "a range that is written makes a limited='auto' true"),
    real("boundmass", 0, "kg", "least mass of a body"),
    real("boundinertia", 0, "kg m^2", "least principal moment of inertia of a body"),
    real("settotalmass", -1, "kg", "total mass that all masses are scaled to; not positive: none"),
    boolean("balanceinertia", "false", "repair moments of inertia that break A + B >= C"),
    boolean("strippath", "false", "drop the folders from the names of asset files"),
    keyword("coordinate", "local global", "local", "frames of poses; 'global' is gone"),
    keyword("angle", "radian degree", "degree", "unit of angles in the file"),
    boolean("fitaabb", "false", "fit geoms to the bounding box of a mesh, not to its inertia box"),
    text(
        "eulerseq",
        "xyz",
        "axes of the turns of euler; lower case turns with the frame, upper case does not",
        pattern=r"[xyzXYZ]{3}",
        form="three letters of 'xyzXYZ', such as 'xyz'",
    ),
    text("meshdir", None, "folder of mesh and height field files"),
    text("texturedir", None, "folder of texture files"),
    boolean("discardvisual", "false", "drop geoms that cannot touch, and assets nobody uses"),
    boolean("usethread", "true", "compile with threads", no_effect="does not change the result"),
    boolean("fusestatic", "false", "merge bodies without joints into their parents"),
    tristate("inertiafromgeom", "auto", "infer inertias from geoms; auto: where none is written"),
    integer("inertiagrouprange", (0, 5), "first and last geom group that inertias come from"),
    boolean("saveinertial", "false", "write an <inertial> for every body when saving"),
    boolean("savecompiled", "true", "write compiled values when saving", no_effect=_SAVING),
    boolean("savecanonical", "true", "write the canonical spelling", no_effect=_SAVING),
    text("assetdir", None, "folder of all asset files: meshdir and texturedir in one"),
    boolean("alignfree", "false", "align free bodies without children with their inertia"),
    keyword("conflict", "warning merge error", "warning", "clash of settings of attached models"),
    keyword("passthrough", "none textures", "none", "assets that are left as files"),
    children=[LENGTHRANGE],
)

_STATIC = "arrays have static sizes here; there is no arena to size"

SIZE = row(
    "size",
    "*",
    "Sizes that cannot be inferred from the rest of the model.",
    text(
        "memory",
        "-1",
        "bytes of the arena, with an optional suffix K, M, G, T, P or E",
        pattern=r"\s*(-1|\d+[KMGTPEkmgtpe]?)\s*",
        form="-1, or digits and an optional letter of KMGTPE",
        no_effect=_STATIC,
    ),
    integer("njmax", -1, "legacy bound on constraint rows", no_effect=_STATIC),
    integer("nconmax", -1, "legacy bound on contacts", no_effect=_STATIC),
    integer("nstack", -1, "legacy size of the stack", no_effect=_STATIC),
    integer("nuserdata", 0, "length of the state's free numbers"),
    integer("nkey", 0, "least number of keyframes"),
    *(
        integer(f"nuser_{kind}", -1, f"free numbers of each {kind}; -1: as many as are used")
        for kind in ("body", "jnt", "geom", "site", "cam", "tendon", "actuator", "sensor")
    ),
    rules=[at_most_one("memory", "njmax"), at_most_one("memory", "nstack")],
)

STATISTIC = row(
    "statistic",
    "*",
    "Values that replace the model's own statistics.",
    real("meaninertia", None, "kg m^2", "mean diagonal of the mass matrix"),
    real("meanmass", None, "kg", "mean mass of a body"),
    real("meansize", None, "m", "mean size of a body"),
    real("extent", None, "m", "half the extent of the model"),
    real("center", None, "m", "center of the model", n=3),
)
