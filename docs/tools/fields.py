"""Generate the reference page of the records: every field, from the field tables."""

from collections.abc import Iterator
from itertools import groupby

from jaxsim.model.contact import Contact
from jaxsim.model.data import ALWAYS_KEPT, IPC_FIELDS, SLEEP_FIELDS, Data, SolverStat
from jaxsim.model.model import Model
from jaxsim.model.option import Option, Statistic
from jaxsim.model.record.fields import FIELD_KINDS, Field
from jaxsim.model.record.record import Record

_HEAD = """# Fields of Model and Data

Generated from the field tables (`model.py`, `data.py` and `contact.py` in `jaxsim/model/`) by
`python docs/tools/reference.py fields`; do not edit.

The names are MuJoCo's. Shapes are those of one world; the counts in them are listed below and are
read as `m.nv`. The last axes of a vector (3), quaternion (4, real part first), rotation matrix
(3, 3), spatial vector (6, rotation first) and inertia (10: xx yy zz xy xz yz of the rotational
inertia, first moment, mass) are part of the shape. A batch of worlds has one more axis in front.
`float` is the precision of the model: float32, or float64 under `jax_enable_x64`. A `static` value
is a Python value that selects the program: changing it triggers recompilation. Angles are in
radians; where a unit depends on the joint or actuator, both are given.
"""

# meaning of the counts in shapes
COUNTS = {
    "nq": "coordinates of the configuration",
    "nv": "degrees of freedom",
    "na": "activations of actuators",
    "nu": "controls",
    "nout": "outputs (forces) of actuators; one each unless an actuator has several",
    "nactuator": "actuators",
    "nbody": "bodies, the world included",
    "ntree": "kinematic trees: bodies that a joint joins to the world, with all that they carry",
    "nmocap": "mocap bodies",
    "njnt": "joints",
    "ngeom": "geoms",
    "nsite": "sites",
    "ncam": "cameras",
    "nlight": "lights",
    "nmesh": "meshes",
    "nmeshvert": "vertices of all meshes",
    "nmeshnormal": "normals of all meshes",
    "nmeshtexcoord": "texture coordinates of all meshes",
    "nmeshpoly": "polygons of the hulls of all meshes",
    "noct": "cells of all octrees",
    "nhfield": "height fields",
    "nhfielddata": "heights of all height fields",
    "nskin": "skins",
    "nskinvert": "vertices of all skins",
    "nskintexvert": "texture coordinates of all skins",
    "nskinbone": "bones of all skins",
    "nskinbonevert": "vertices of all bones",
    "nmat": "materials",
    "nflex": "flexes",
    "nflexvert": "vertices of all flexes",
    "nflexnode": "nodes of all flexes",
    "nflexedge": "edges of all flexes",
    "nflexelem": "elements of all flexes",
    "nJfe": "numbers of the Jacobian of edges that may not be zero",
    "nflexstiffness": "numbers of stretching energy of all flexes",
    "nflexbending": "numbers of bending energy of all flexes",
    "nflextexcoord": "texture coordinates of all flexes",
    "npair": "`<pair>` elements",
    "neq": "equality constraints",
    "ntendon": "tendons",
    "nwrap": "path points of all tendons",
    "nsensor": "sensors",
    "nsensordata": "numbers of all sensors",
    "npluginstate": "numbers in the states of all plugins",
    "npluginparam": "parameters of all plugins",
    "nnumericdata": "numbers of all `<numeric>` elements",
    "ntupledata": "objects in all `<tuple>` elements",
    "nkey": "keyframes",
    "nhistory": "numbers in the histories of all controls and sensors",
    "nhistorytime": "times in the histories: of samples, and a tick for each of them",
    "nplastic": "rest positions of yielding springs, and material frames of twisting rods",
    "nuserdata": "numbers of user data in Data",
    "ncontact": "contact capacity of a world",
    "nrow": "largest number of constraint rows of a state",
    "nuser_body": "user numbers a body",
    "nuser_jnt": "user numbers a joint",
    "nuser_geom": "user numbers a geom",
    "nuser_site": "user numbers a site",
    "nuser_cam": "user numbers a camera",
    "nuser_tendon": "user numbers a tendon",
    "nuser_actuator": "user numbers an actuator",
    "nuser_sensor": "user numbers a sensor",
}

WHOLE = (
    "structure",
    "opt",
    "stat",
    "callbacks",
    "qpos0",
    "qpos",
    "smooth",
)  # of Model, and of no kind of object

_KEPT = """Kept says whether `make_data(m)` allocates the field: `always`, whatever `keep` is;
`default`; or `if asked`, with `make_data(m, keep="all")` or by name, `keep=("qacc", "cinert")`.
A field that is not kept is None and costs nothing: it is not computed unless another result needs
it. `with sleep`: only in a model with the sleep flag; `tree_start` only if some tree begins asleep.
In such a model `xpos`, `xquat`, `act_dot`, `qfrc_smooth` and `qacc_smooth` are always kept.
`with ipc`: only in a model with shells and the ipc flag.
"""
_TABLES = """The integer tables (types, parents, addresses) are in `m.structure` and are read in the
same way, as `m.jnt_type`. They are MuJoCo's and are not listed here.
"""


def reference() -> str:
    """Return the page, in Markdown."""
    parts = [_HEAD, "| count | of |\n|---|---|"]
    parts += [f"| `{name}` | {meaning} |" for name, meaning in COUNTS.items()]
    parts += ["", "## Data\n", f"{_first(Data)}\n", _KEPT, *_table(Data.fields, kept=True)]
    parts += ["## Contact, `d.contact`\n", f"{_doc(Contact)}\n", *_table(Contact.fields)]
    head = "## SolverStat, `d.solver`\n"
    parts += [head, f"{_doc(SolverStat)}\n", *_table(SolverStat.fields)]
    parts += ["## Option, `m.opt`\n", f"{_first(Option)}\n", *_table(Option.fields)]
    parts += ["## Statistic, `m.stat`\n", f"{_first(Statistic)}\n", *_table(Statistic.fields)]
    parts += ["## Model\n", _first(Model), _TABLES]
    for family, names in groupby(Model.fields, key=_family):
        parts += [f"### {family}\n", *_table({name: Model.fields[name] for name in names})]
    return "\n".join(parts).rstrip("\n") + "\n"


def _first(record: type[Record]) -> str:
    return _doc(record).splitlines()[0]


def _doc(record: type[Record]) -> str:
    lines = (record.__doc__ or "").strip().splitlines()
    return "\n".join(line.strip() for line in lines)


def _family(name: str) -> str:
    """Return the owner of a field of Model: a kind of object, or the model as a whole."""
    prefix = name.partition("_")[0]
    return "whole" if prefix in WHOLE else prefix


def _table(fields: dict[str, Field], kept: bool = False) -> Iterator[str]:
    titles = ["field", "shape", "dtype", "unit", *(["kept"] if kept else []), "meaning"]
    yield f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}"
    for name, field in fields.items():
        keep = [_keep(name, field)] if kept else []
        cells = [f"`{name}`", _shape(field), _dtype(field), field.unit, *keep, field.doc]
        yield f"| {' | '.join(cells)} |"
    yield ""


def _shape(field: Field) -> str:
    if field.static or field.nested is not None:
        return ""
    return str((*field.shape, *FIELD_KINDS[field.kind])).replace("'", "")


def _dtype(field: Field) -> str:
    if field.static:
        return "static"
    return field.nested.__name__ if field.nested is not None else field.dtype


def _keep(name: str, field: Field) -> str:
    kept = "always" if name in ALWAYS_KEPT else "default" if field.keep else "if asked"
    flag = "sleep" if name in SLEEP_FIELDS else "ipc" if name in IPC_FIELDS else ""
    return f"{kept}, with {flag}" if flag else kept
