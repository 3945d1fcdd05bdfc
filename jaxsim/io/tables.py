"""Lengths of the tables of a structure, and the objects that their entries refer to.

Facts of mjModel, one per row, used to check models that this package has not compiled itself. A
named count is the integer of that name in the structure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from jaxsim.assets.mesh.directions import CUBE_FACES, FAN_SLICES
from jaxsim.assets.mesh.support_map import CELLS_PER_EDGE
from jaxsim.enums import (
    BiasType,
    CamLight,
    ConeType,
    DataType,
    DynType,
    EqType,
    GainType,
    GeomType,
    IntegratorType,
    JacobianType,
    JointType,
    LightType,
    ObjType,
    SameFrame,
    SensorType,
    SleepPolicy,
    SolverType,
    Stage,
    TendonType,
    TrnType,
    WrapType,
)
from jaxsim.model.motor import ActState

COUNT_NAMES = """
nuserdata nplugin npluginattr npluginstate npluginparam nmat ntex nmesh nhfield nskin nbody nmocap
ngravcomp nuser_body ntexdata nhfielddata nmeshvert nmeshnormal nmeshtexcoord nmeshface nmeshgraph
nmeshpoly nmeshpolyvert nmeshpolymap npolygonmax nmeshdegmax noct nskinvert nskintexvert nskinface
nskinbone nskinbonevert njnt nq nv nplastic nuser_jnt ngeom nuser_geom nsite nuser_site ncam
nuser_cam nlight ntree ntendon nwrap nuser_tendon nJten nactuator nu nout na nhistory
nuser_actuator nM nC nD nB npair nexclude nflex nflexnode nflexvert nflexedge nflexelem
nflexelemdata nflexelemedge nflexshelldata nflextexcoord nflexstiffness nflexbending neq nemax
nsensor nsensordata nuser_sensor nnumeric nnumericdata ntext ntextdata ntuple ntupledata nJfe nkey
ncontact nrod nhull nhullpart nhullfan nhullvert nhullpoint nhullmost nnear nstart
""".split()

# Axis sizes, and the tables that have them.
_LENGTHS: dict[tuple[str | int, ...], str] = {
    ("nplugin",): """plugin plugin_stateadr plugin_statenum plugin_attradr plugin_paramadr
        plugin_paramnum""",
    ("npluginattr",): "plugin_attr",
    ("nbody",): """body_parentid body_mocapid body_plugin body_jntnum body_jntadr body_dofnum
        body_dofadr body_geomnum body_geomadr body_contype body_conaffinity body_rootid body_weldid
        body_treeid body_sameframe body_simple body_rest""",
    ("ntex",): """tex_type tex_colorspace tex_height tex_width tex_nchannel tex_adr
        tex_contenttypeadr""",
    ("ntexdata",): "tex_data",
    ("nmat", 10): "mat_texid",
    ("nmat",): "mat_texuniform",
    ("nhfield",): "hfield_nrow hfield_ncol hfield_adr",
    ("nmesh",): """mesh_vertadr mesh_vertnum mesh_normaladr mesh_normalnum mesh_texcoordadr
        mesh_texcoordnum mesh_faceadr mesh_facenum mesh_graphadr mesh_polynum mesh_polyadr
        mesh_octadr mesh_octnum""",
    ("nmeshface",): "mesh_faceorder",
    ("nmeshface", 3): "mesh_face mesh_facenormal mesh_facetexcoord",
    ("nmeshgraph",): "mesh_graph",
    ("nmesh", 27): "mesh_extrema",
    ("nmeshpoly",): "mesh_polyvertadr mesh_polyvertnum",
    ("nmeshpolyvert",): "mesh_polyvert",
    ("nmeshvert",): "mesh_polymapadr mesh_polymapnum",
    ("nmeshpolymap",): "mesh_polymap mesh_polyplace",
    ("nmeshpolyvert", 3): "mesh_polyquad",
    ("nhull", CUBE_FACES * CELLS_PER_EDGE * CELLS_PER_EDGE): "hull_cell",
    ("nhullpart",): "hull_part",
    ("nhullfan", 2): "hull_pole",
    ("nhullfan", FAN_SLICES): "hull_slice",
    ("nhullvert",): "hull_vertid",
    ("nhullpoint", 3): "hull_vert",
    ("noct",): "oct_depth",
    ("noct", 8): "oct_child",
    ("nskin",): """skin_matid skin_group skin_vertadr skin_vertnum skin_texcoordadr skin_faceadr
        skin_facenum skin_boneadr skin_bonenum""",
    ("nskinface", 3): "skin_face",
    ("nskinbone",): "skin_bonevertadr skin_bonevertnum skin_bonebodyid",
    ("nskinbonevert",): "skin_bonevertid",
    ("njnt",): """jnt_type jnt_bodyid jnt_qposadr jnt_dofadr jnt_actuatorid jnt_group
        jnt_actgravcomp jnt_limited jnt_actfrclimited jnt_plasticadr""",
    ("nv",): """dof_bodyid dof_jntid dof_parentid dof_treeid dof_Madr dof_simplenum M_rownnz
        M_rowadr""",
    ("ngeom",): """geom_bodyid geom_type geom_dataid geom_matid geom_plugin geom_contype
        geom_conaffinity geom_condim geom_group geom_priority geom_castshadow geom_sameframe
        geom_hullid geom_prismnum""",
    ("nsite",): "site_bodyid site_type site_dataid site_matid site_group site_sameframe",
    ("ncam",): "cam_mode cam_projection cam_bodyid cam_targetbodyid cam_output",
    ("ncam", 2): "cam_resolution",
    ("nlight",): """light_mode light_castshadow light_active light_bodyid light_targetbodyid
        light_type light_texid""",
    ("ntree",): "tree_bodyadr tree_bodynum tree_dofadr tree_dofnum tree_sleep_policy",
    ("ntendon",): """tendon_type tendon_num tendon_adr tendon_matid tendon_actuatorid tendon_limited
        tendon_actfrclimited tendon_group tendon_plasticadr tendon_treenum ten_J_rownnz
        ten_J_rowadr""",
    ("nwrap",): "wrap_type wrap_objid wrap_sideid",
    ("nJten",): "ten_J_colind",
    ("ntendon", 2): "tendon_treeid",
    ("nactuator",): """actuator_trntype actuator_ctrladr actuator_ctrlnum actuator_ctrlspec
        actuator_outadr actuator_outnum actuator_actadr actuator_actnum actuator_plugin
        actuator_group actuator_dyntype actuator_gaintype actuator_biastype actuator_actearly
        actuator_forcelimited actuator_actlimited actuator_historyadr""",
    ("nactuator", len(ActState)): "actuator_states",
    ("nactuator", 2): "actuator_trnid actuator_history",
    ("nu",): "actuator_ctrllimited",
    ("nC",): "M_colind",
    ("npair",): "pair_geom1 pair_geom2 pair_signature pair_dim",
    ("nexclude",): "exclude_signature",
    ("nflex",): """flex_dim flex_group flex_flatskin flex_contype flex_conaffinity flex_condim
        flex_priority flex_selfcollide flex_activelayers flex_passive flex_interp flex_rigid
        flex_centered flex_nodenum flex_nodeadr flex_vertnum flex_vertadr flex_edgenum flex_edgeadr
        flex_elemnum flex_elemadr flex_elemdataadr flex_elemedgeadr flex_shellnum flex_shelldataadr
        flex_texcoordadr flex_stiffnessadr flex_bendingadr flex_plasticmode flex_plasticadr
        flex_edgeequality flex_touches flex_boxed flex_prismnum""",
    ("nflex", 3): "flex_cellnum",
    ("nflexelem",): "flex_matid flex_elemlayer flex_elemorder",
    ("nflexvert",): "flex_vertbodyid flex_vertcell",
    ("nflexnode",): "flex_nodebodyid",
    ("nflexelemdata",): "flex_elem flex_elemtexcoord",
    ("nflexelemedge",): "flex_elemedge",
    ("nflexshelldata",): "flex_shell",
    ("nflexedge", 2): "flex_edge flex_edgeflap",
    ("nflexedge",): "flexedge_rigid flexedge_J_rownnz flexedge_J_rowadr",
    ("nJfe",): "flexedge_J_colind",
    ("neq",): "eq_type eq_objtype eq_obj1id eq_obj2id eq_active0 eq_elemid eq_modenum",
    ("nrod",): "rod_flexid rod_dof rod_adr",
    ("nrod", 4): "rod_vert",
    ("nsensor",): """sensor_type sensor_datatype sensor_needstage sensor_objtype sensor_objid
        sensor_reftype sensor_refid sensor_dim sensor_adr sensor_plugin sensor_historyadr""",
    ("nsensor", 3): "sensor_intprm",
    ("nsensor", 2): "sensor_history",
    ("nnumeric",): "numeric_size numeric_adr",
    ("ntext",): "text_size text_adr",
    ("ntextdata",): "text_data",
    ("ntuple",): "tuple_size tuple_adr",
    ("ntupledata",): "tuple_objtype tuple_objid",
    (len(GeomType), len(GeomType)): "kind_near",
}
TABLE_AXES = {name: axes for axes, names in _LENGTHS.items() for name in names.split()}

# Flags of objects, such as `jnt_hasmargin`, derived from numbers; the prefix gives their length.
FLAG_PATTERN = r"(body|jnt|dof|geom|site|tendon|actuator|sensor|pair|flex|eq)_(has|is|reflects)\w*"
COUNT_OF_PREFIX = {"dof": "nv"}  # all others are n + prefix


class Ids(NamedTuple):
    """Ids of objects: at least `least`, which is -1 where the reference is optional."""

    names: str
    total: str
    least: int


IDS = (
    Ids("body_parentid body_rootid body_weldid jnt_bodyid dof_bodyid geom_bodyid", "nbody", 0),
    Ids("site_bodyid cam_bodyid light_bodyid skin_bonebodyid", "nbody", 0),
    Ids("cam_targetbodyid light_targetbodyid flex_vertbodyid flex_nodebodyid", "nbody", -1),
    Ids("body_mocapid", "nmocap", -1),
    Ids("body_treeid dof_treeid tendon_treeid", "ntree", -1),
    Ids("dof_jntid", "njnt", 0),
    Ids("dof_parentid", "nv", -1),
    Ids("M_colind ten_J_colind flexedge_J_colind", "nv", 0),
    Ids("dof_Madr", "nM", 0),
    Ids("geom_matid site_matid tendon_matid skin_matid flex_matid", "nmat", -1),
    Ids("mat_texid light_texid", "ntex", -1),
    Ids("body_plugin geom_plugin actuator_plugin sensor_plugin", "nplugin", -1),
    Ids("jnt_actuatorid tendon_actuatorid", "nactuator", -1),
    Ids("pair_geom1 pair_geom2", "ngeom", 0),
    Ids("wrap_sideid", "nsite", -1),
    Ids("site_dataid", "nmesh", -1),
    Ids("oct_child", "noct", -1),
    Ids("jnt_plasticadr tendon_plasticadr flex_plasticadr", "nplastic", -1),
    Ids("actuator_historyadr sensor_historyadr", "nhistory", -1),
    Ids("mesh_graphadr", "nmeshgraph", -1),
    Ids("mesh_polyplace mesh_polyquad", "nmeshpolyvert", 0),
    Ids("geom_hullid", "nhull", -1),
    Ids("hull_slice", "nhullvert", 0),
    Ids("hull_vertid", "nmeshvert", 0),
    Ids("flex_elem flex_shell", "nflexvert", -1),
    Ids("flex_elemedge", "nflexedge", -1),
    Ids("rod_flexid", "nflex", 0),
    Ids("rod_vert", "nflexvert", -1),
    Ids("rod_dof", "nv", -1),
    Ids("rod_adr", "nflexbending", 0),
)


class Span(NamedTuple):
    """Spans of a list: address and length of each part, and the length of the list.

    With `marked`, empty parts, and only these, have the address -1.
    """

    adr: str
    num: str
    total: str
    marked: bool = False


SPANS = (
    Span("body_jntadr", "body_jntnum", "njnt", marked=True),
    Span("body_dofadr", "body_dofnum", "nv", marked=True),
    Span("body_geomadr", "body_geomnum", "ngeom", marked=True),
    Span("tree_bodyadr", "tree_bodynum", "nbody"),
    Span("tree_dofadr", "tree_dofnum", "nv"),
    Span("tendon_adr", "tendon_num", "nwrap"),
    Span("actuator_ctrladr", "actuator_ctrlnum", "nu"),
    Span("actuator_outadr", "actuator_outnum", "nout"),
    Span("actuator_actadr", "actuator_actnum", "na", marked=True),
    Span("sensor_adr", "sensor_dim", "nsensordata"),
    Span("numeric_adr", "numeric_size", "nnumericdata"),
    Span("text_adr", "text_size", "ntextdata"),
    Span("tuple_adr", "tuple_size", "ntupledata"),
    Span("plugin_stateadr", "plugin_statenum", "npluginstate"),
    Span("plugin_paramadr", "plugin_paramnum", "npluginparam"),
    Span("mesh_vertadr", "mesh_vertnum", "nmeshvert"),
    Span("mesh_normaladr", "mesh_normalnum", "nmeshnormal"),
    Span("mesh_texcoordadr", "mesh_texcoordnum", "nmeshtexcoord"),
    Span("mesh_faceadr", "mesh_facenum", "nmeshface"),
    Span("mesh_polyadr", "mesh_polynum", "nmeshpoly"),
    Span("mesh_octadr", "mesh_octnum", "noct"),
    Span("mesh_polyvertadr", "mesh_polyvertnum", "nmeshpolyvert"),
    Span("mesh_polymapadr", "mesh_polymapnum", "nmeshpolymap"),
    Span("skin_vertadr", "skin_vertnum", "nskinvert"),
    Span("skin_faceadr", "skin_facenum", "nskinface"),
    Span("skin_boneadr", "skin_bonenum", "nskinbone"),
    Span("skin_bonevertadr", "skin_bonevertnum", "nskinbonevert"),
    Span("flex_nodeadr", "flex_nodenum", "nflexnode"),
    Span("flex_vertadr", "flex_vertnum", "nflexvert"),
    Span("flex_edgeadr", "flex_edgenum", "nflexedge"),
    Span("flex_elemadr", "flex_elemnum", "nflexelem"),
    Span("M_rowadr", "M_rownnz", "nC"),
    Span("ten_J_rowadr", "ten_J_rownnz", "nJten"),
    Span("flexedge_J_rowadr", "flexedge_J_rownnz", "nJfe"),
)

# Addresses of parts whose length follows from other tables.
SPAN_STARTS = {
    "flex_elemdataadr": "nflexelemdata",
    "flex_elemedgeadr": "nflexelemedge",
    "flex_shelldataadr": "nflexshelldata",
    "flex_texcoordadr": "nflextexcoord",
    "flex_stiffnessadr": "nflexstiffness",
    "flex_bendingadr": "nflexbending",
    "plugin_attradr": "npluginattr",
    "skin_texcoordadr": "nskintexvert",
    "tex_adr": "ntexdata",
}


class Local(NamedTuple):
    """Indices within the span of an owner, less than its `num`."""

    name: str
    span: tuple[str, str]
    num: str


LOCAL_NUMBERS = (
    Local("mesh_face", ("mesh_faceadr", "mesh_facenum"), "mesh_vertnum"),
    Local("mesh_faceorder", ("mesh_faceadr", "mesh_facenum"), "mesh_facenum"),
    Local("flex_elemorder", ("flex_elemadr", "flex_elemnum"), "flex_elemnum"),
    Local("mesh_facenormal", ("mesh_faceadr", "mesh_facenum"), "mesh_normalnum"),
    Local("skin_face", ("skin_faceadr", "skin_facenum"), "skin_vertnum"),
    Local("flex_edge", ("flex_edgeadr", "flex_edgenum"), "flex_vertnum"),
    Local("flex_edgeflap", ("flex_edgeadr", "flex_edgenum"), "flex_vertnum"),
)

_CONDIM = (1, 3, 4, 6)
ENUM_VALUES: dict[str, Iterable[int]] = {
    "jnt_type": JointType,
    "geom_type": GeomType,
    "site_type": GeomType,
    "eq_type": EqType,
    "eq_objtype": ObjType,
    "tendon_type": TendonType,
    "wrap_type": WrapType,
    "actuator_trntype": TrnType,
    "actuator_dyntype": DynType,
    "actuator_gaintype": GainType,
    "actuator_biastype": BiasType,
    "sensor_type": SensorType,
    "sensor_datatype": DataType,
    "sensor_needstage": Stage,
    "sensor_objtype": ObjType,
    "sensor_reftype": ObjType,
    "tuple_objtype": ObjType,
    "cam_mode": CamLight,
    "light_mode": CamLight,
    "light_type": LightType,
    "body_sameframe": SameFrame,
    "geom_sameframe": SameFrame,
    "site_sameframe": SameFrame,
    "tree_sleep_policy": SleepPolicy,
    "geom_condim": _CONDIM,
    "pair_dim": _CONDIM,
    "flex_condim": _CONDIM,
    "flex_dim": (1, 2, 3),
}
OPTION_ENUM_VALUES: dict[str, Iterable[int]] = {
    "integrator": IntegratorType,
    "cone": ConeType,
    "jacobian": JacobianType,
    "solver": SolverType,
}

# Number of objects of each kind; kinds that are left out are not checked.
_OBJECTS = {
    ObjType.BODY: "nbody",
    ObjType.XBODY: "nbody",
    ObjType.JOINT: "njnt",
    ObjType.DOF: "nv",
    ObjType.GEOM: "ngeom",
    ObjType.SITE: "nsite",
    ObjType.CAMERA: "ncam",
    ObjType.LIGHT: "nlight",
    ObjType.FLEX: "nflex",
    ObjType.MESH: "nmesh",
    ObjType.SKIN: "nskin",
    ObjType.HFIELD: "nhfield",
    ObjType.TEXTURE: "ntex",
    ObjType.MATERIAL: "nmat",
    ObjType.PAIR: "npair",
    ObjType.EXCLUDE: "nexclude",
    ObjType.EQUALITY: "neq",
    ObjType.TENDON: "ntendon",
    ObjType.ACTUATOR: "nactuator",
    ObjType.SENSOR: "nsensor",
    ObjType.NUMERIC: "nnumeric",
    ObjType.TEXT: "ntext",
    ObjType.TUPLE: "ntuple",
    ObjType.KEY: "nkey",
    ObjType.PLUGIN: "nplugin",
}
NAMED = {
    kind.name.lower(): count
    for kind, count in _OBJECTS.items()
    if kind not in (ObjType.XBODY, ObjType.DOF)
}


class Objects(NamedTuple):
    """Ids of objects whose kind is given by another table; for a row, by one of its columns."""

    name: str
    kind: str
    counts: Mapping[Any, str]
    least: int
    column: int = 0


_CONSTRAINED = {
    EqType.JOINT: "njnt",
    EqType.TENDON: "ntendon",
    EqType.FLEX: "nflex",
    EqType.FLEXVERT: "nflex",
    EqType.FLEXSTRAIN: "nflex",
}


OBJECT_REFERENCES = (
    Objects("eq_obj1id", "eq_objtype", _OBJECTS, 0),
    Objects("eq_obj2id", "eq_objtype", _OBJECTS, -1),
    Objects("eq_obj1id", "eq_type", _CONSTRAINED, 0),
    Objects("eq_obj2id", "eq_type", _CONSTRAINED, -1),
    Objects("sensor_objid", "sensor_objtype", _OBJECTS, 0),
    Objects("sensor_refid", "sensor_reftype", _OBJECTS, 0),
    Objects("tuple_objid", "tuple_objtype", _OBJECTS, -1),
    Objects(
        "wrap_objid",
        "wrap_type",
        {
            WrapType.JOINT: "njnt",
            WrapType.SITE: "nsite",
            WrapType.SPHERE: "ngeom",
            WrapType.CYLINDER: "ngeom",
        },
        0,
    ),
    Objects(
        "actuator_trnid",
        "actuator_trntype",
        {
            TrnType.JOINT: "njnt",
            TrnType.JOINTINPARENT: "njnt",
            TrnType.SLIDERCRANK: "nsite",
            TrnType.TENDON: "ntendon",
            TrnType.SITE: "nsite",
            TrnType.BODY: "nbody",
        },
        0,
    ),
    Objects(
        "actuator_trnid",
        "actuator_trntype",
        {TrnType.SLIDERCRANK: "nsite", TrnType.SITE: "nsite"},
        -1,
        column=1,
    ),
    Objects(
        "geom_dataid",
        "geom_type",
        {GeomType.HFIELD: "nhfield", GeomType.MESH: "nmesh", GeomType.SDF: "nmesh"},
        0,
    ),
)

# A parent precedes its children: tree traversals rely on it.
PARENT_TABLES = ("body_parentid", "dof_parentid")
