"""Generate the reference page of MuJoCo's functions: the name of each here, or its replacement.

The tables name every function of MuJoCo 4.0's header that starts with mj_, mju_, mjd_, mjc_ or
mjv_; a test compares them with the header. Summaries are the first paragraphs of the docstrings.
"""

import importlib
import inspect
import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

HEAD = """# MuJoCo's functions

Generated from the table in `docs/tools/functions.py` and the docstrings by
`python docs/tools/reference.py functions`; do not edit.

Names are MuJoCo's without the prefix, in snake case, with `2` spelled `to`: `mj_jacSubtreeCom` is
`jaxsim.support.jac_subtree_com`, `mju_quat2Mat` is `jaxsim.functions.quat_to_mat`. `mj_` functions
are in `jaxsim`, `jaxsim.stages` and `jaxsim.support`, `mju_` in `jaxsim.functions`, `mjd_` in
`jaxsim.derivative`, `mjv_` in `jaxsim.view`.
Functions return what MuJoCo writes into its arguments. Functions of a model and a state, and
functions of arrays, work under `jit`, `vmap` and `grad`.
"""

NAMESPACES = {
    "mj": ("jaxsim", "jaxsim.stages", "jaxsim.support"),
    "mju": ("jaxsim.functions",),
    "mjd": ("jaxsim.derivative",),
    "mjv": ("jaxsim.view",),
}

# by title: functions whose name follows from MuJoCo's
SAME = {
    "Simulation": """
        mj_step mj_step1 mj_step2 mj_forward mj_forwardSkip mj_inverse mj_inverseSkip
        mj_compareFwdInv mj_makeData mj_resetData mj_resetDataKeyframe mj_setKeyframe mj_resetCtrl
        mj_checkPos mj_checkVel mj_checkAcc""",
    "The state as a vector": """
        mj_stateSize mj_getState mj_setState mj_extractState mj_copyState""",
    "Models": "mj_saveModel mj_loadModel mj_setConst",
    "Stages of a step": """
        mj_fwdPosition mj_fwdKinematics mj_kinematics mj_comPos mj_camlight mj_flex mj_tendon mj_crb
        mj_collision mj_makeConstraint mj_transmission mj_sensorPos mj_energyPos mj_fwdVelocity
        mj_comVel mj_passive mj_rne mj_subtreeVel mj_sensorVel mj_energyVel mj_fwdActuation
        mj_fwdAcceleration mj_fwdConstraint mj_sensorAcc mj_invPosition mj_invVelocity
        mj_invConstraint mj_makeM""",
    "Mass matrix": "mj_fullM mj_addM mj_mulM mj_mulM2 mj_factorM mj_solveM mj_solveM2",
    "Jacobians": """
        mj_jac mj_jacBody mj_jacBodyCom mj_jacSubtreeCom mj_jacGeom mj_jacSite mj_jacPointAxis
        mj_jacDot mj_angmomMat mj_mulJacVec mj_mulJacTVec mj_projectConstraint
        mj_constraintUpdate mj_island""",
    "Queries of a state": """
        mj_objectVelocity mj_objectAcceleration mj_local2Global mj_applyFT mj_contactForce
        mj_geomDistance mj_insideSite mj_integratePos mj_differentiatePos mj_normalizeQuat
        mj_name2id mj_id2name mj_actuatorInputName""",
    "History": "mj_readCtrl mj_readSensor mj_initCtrlHistory mj_initSensorHistory",
    "Derivatives": "mjd_transitionFD mjd_inverseFD mjd_subQuat mjd_quatIntegrate",
    "Quaternions": """
        mju_rotVecQuat mju_negQuat mju_mulQuat mju_mulQuatAxis mju_axisAngle2Quat mju_quat2Vel
        mju_subQuat mju_quat2Mat mju_mat2Quat mju_derivQuat mju_quatIntegrate mju_quatZ2Vec
        mju_mat2Rot mju_euler2Quat""",
    "Poses": "mju_mulPose mju_negPose mju_trnVecPose mju_transformSpatial",
    "Decompositions": """
        mju_cholFactor mju_cholSolve mju_cholUpdate mju_cholFactorBand mju_cholSolveBand
        mju_band2Dense mju_dense2Band mju_bandMulMatVec mju_bandDiag mju_eig3 mju_boxQP""",
    "Rays": "mj_ray mj_multiRay mj_rayMesh mj_rayHfield mj_rayFlex mju_rayGeom mju_raySkin",
    "Curves and numbers": """
        mju_muscleGain mju_muscleBias mju_muscleDynamics mju_encodePyramid mju_decodePyramid
        mju_springDamper mju_sigmoid mju_Halton""",
    "Cameras and the mouse": """
        mjv_defaultFreeCamera mjv_moveCamera mjv_cameraFrame mjv_cameraFrustum mjv_alignToCamera
        mjv_select mjv_initPerturb mjv_movePerturb mjv_applyPerturbPose mjv_applyPerturbForce""",
}

# functions with another name here
RENAMED = {
    "mj_loadXML": "jaxsim.load_model",
    "mj_loadModelBuffer": "jaxsim.load_model",
    "mj_recompile": "jaxsim.recompile",
    "mj_compile": "jaxsim.load_model",
    "mj_copyBack": "jaxsim.write_back",
    "mj_makeSpec": "jaxsim.Spec",
    "mj_parse": "jaxsim.Spec.from_file",
    "mj_parseXML": "jaxsim.Spec.from_file",
    "mj_parseXMLString": "jaxsim.Spec.from_string",
    "mj_saveXML": "jaxsim.Spec.to_xml",
    "mj_saveXMLString": "jaxsim.Spec.to_xml",
    "mj_defaultVFS": "jaxsim.Vfs",
    "mj_mountVFS": "jaxsim.Vfs.mount",
    "mj_unmountVFS": "jaxsim.Vfs.unmount",
    "mj_addFileVFS": "jaxsim.Vfs.add_file",
    "mj_addBufferVFS": "jaxsim.Vfs.add_buffer",
    "mj_deleteFileVFS": "jaxsim.Vfs.delete_file",
    "mj_containsBufferVFS": "jaxsim.Vfs.contains",
    "mj_containsFileVFS": "jaxsim.Vfs.contains",
    "mj_deleteVFS": "jaxsim.Vfs.close",
    "mj_printModel": "jaxsim.describe",
    "mj_printFormattedModel": "jaxsim.describe",
    "mjc_distance": "jaxsim.support.geom_sdf",
    "mjc_gradient": "jaxsim.support.geom_sdf",
    "mj_rnePostConstraint": "jaxsim.stages.rne_postconstraint",
    "mj_Euler": "jaxsim.stages.euler",
    "mj_implicit": "jaxsim.stages.implicit",
    "mj_RungeKutta": "jaxsim.stages.rungekutta4",
    "mj_printData": "jaxsim.describe",
    "mj_printFormattedData": "jaxsim.describe",
    "mjv_cameraInModel": "jaxsim.view.camera_frame",
    "mjv_frustumHeight": "jaxsim.view.Frustum.height",
    "mjv_defaultCamera": "jaxsim.view.Camera",
    "mjv_defaultPerturb": "jaxsim.view.Perturb",
    "mj_getTotalmass": "jaxsim.support.get_total_mass",
    "mj_setTotalmass": "jaxsim.support.set_total_mass",
    "mju_warningText": "jaxsim.warning_texts",
}

# replacements in a program that uses JAX
INSTEAD = {
    "mj_loadAllPluginLibraries": "`jaxsim.extend.load_plugins(folder)`, of Python files",
    "mj_copyModel": "an immutable Model needs no copy; `m.replace(...)`",
    "mj_copyData": "an immutable Data needs no copy; `d.replace(...)`",
    "mjv_copyData": "an immutable Data needs no copy; `d.replace(...)`",
    "mjv_copyModel": "an immutable Model needs no copy; `m.replace(...)`",
    "mjv_updateCamera": "`jaxsim.view.camera_frame`, `jaxsim.view.camera_frustum`",
    "mjv_camera2GLCamera": "`jaxsim.view.camera_frame`; rays of pixels: `jaxsim.view.pixel_ray`",
    "mj_resetCallbacks": "`m.replace(callbacks=None)`; those of a model are its own",
    "mj_copySpec": "`copy.deepcopy(spec)`",
    "mj_isDual": "`m.opt.solver == SolverType.PGS or m.opt.noslip_iterations > 0`",
    "mj_isPyramidal": "`m.opt.cone == ConeType.PYRAMIDAL`",
    "mj_maxContact": "`m.ncontact`; `jaxsim.suggest_capacities` measures what is needed",
    "mj_referenceConstraint": "`jaxsim.support.constraint_rows`, then `rows.efc_aref`",
    "mj_setLengthRange": "done when the model is loaded",
    "mj_warning": "`d.warning`, `jaxsim.warning_counts(d)`; `jaxsim.log_warnings` as it happens",
    "mj_version": "`jaxsim.__version__`",
    "mj_versionString": "`jaxsim.__version__`",
    "mj_getPluginConfig": "the attributes that a plugin's functions are given (`docs/extend.md`)",
    "mjc_getSDF": "`jaxsim.support.geom_sdf` knows the function of a geom",
    "mj_encode": "one for each format: `jaxsim.save_model`, `jaxsim.Spec.to_xml`, `Spec.to_zip`",
    "mj_embedAssets": "`<texture embed='true'>`, or no `<compiler passthrough>`, and load again",
    "mj_printSchema": "`docs/reference/mjcf.md`, made from the schema table",
    "mju_getXMLDependencies": "`jaxsim.Spec.from_file`, then the files that its elements name",
    "mju_zero": "`jnp.zeros(n)`",
    "mju_zero3": "`jnp.zeros(3)`",
    "mju_zero4": "`jnp.zeros(4)`",
    "mju_unit4": "`jnp.array([1.0, 0, 0, 0])`",
    "mju_fill": "`jnp.full(n, value)`",
    "mju_copy": "arrays are immutable",
    "mju_copy3": "arrays are immutable",
    "mju_copy4": "arrays are immutable",
    "mju_scl": "`a * s`",
    "mju_scl3": "`a * s`",
    "mju_add": "`a + b`",
    "mju_add3": "`a + b`",
    "mju_sub": "`a - b`",
    "mju_sub3": "`a - b`",
    "mju_addTo": "`a + b`",
    "mju_addTo3": "`a + b`",
    "mju_subFrom": "`a - b`",
    "mju_subFrom3": "`a - b`",
    "mju_addToScl": "`a + s * b`",
    "mju_addToScl3": "`a + s * b`",
    "mju_addScl": "`a + s * b`",
    "mju_addScl3": "`a + s * b`",
    "mju_sum": "`jnp.sum(a)`",
    "mju_L1": "`jnp.sum(jnp.abs(a))`",
    "mju_norm": "`jnp.linalg.norm(a)`",
    "mju_norm3": "`jnp.linalg.norm(a)`",
    "mju_normalize": "`a / jnp.linalg.norm(a)`",
    "mju_normalize3": "`a / jnp.linalg.norm(a)`",
    "mju_normalize4": "`q / jnp.linalg.norm(q)`",
    "mju_dot": "`a @ b`",
    "mju_dot3": "`a @ b`",
    "mju_dist3": "`jnp.linalg.norm(a - b)`",
    "mju_cross": "`jnp.cross(a, b)`",
    "mju_mulMatVec": "`A @ x`",
    "mju_mulMatVec3": "`A @ x`",
    "mju_mulMatTVec": "`A.T @ x`",
    "mju_mulMatTVec3": "`A.T @ x`",
    "mju_mulVecMatVec": "`x @ A @ y`",
    "mju_transpose": "`A.T`",
    "mju_symmetrize": "`(A + A.T) / 2`",
    "mju_eye": "`jnp.eye(n)`",
    "mju_mulMatMat": "`A @ B`",
    "mju_mulMatMatT": "`A @ B.T`",
    "mju_mulMatTMat": "`A.T @ B`",
    "mju_sqrMatTD": "`A.T @ (d[:, None] * A)`",
    "mju_dense2sparse": "`jax.experimental.sparse.BCSR.fromdense(A)`; `jaxsim.support.sparse_m`",
    "mju_sparse2dense": "`A.todense()`",
    "mju_sym2dense": "`A + jnp.tril(A, -1).T`",
    "mju_min": "`jnp.minimum(a, b)`",
    "mju_max": "`jnp.maximum(a, b)`",
    "mju_clip": "`jnp.clip(x, low, high)`",
    "mju_sign": "`jnp.sign(x)`",
    "mju_round": "`jnp.floor(x + 0.5)`",
    "mju_type2Str": "`ObjType(k).name.lower()`",
    "mju_str2Type": "`ObjType[name.upper()]`",
    "mju_writeNumBytes": "an f-string",
    "mju_isBad": "`~(jnp.abs(x) <= MAXVAL)`",
    "mju_isZero": "`~jnp.any(a)`",
    "mju_standardNormal": "`jax.random.normal(key)`",
    "mju_f2n": "`a.astype(dtype)`",
    "mju_n2f": "`a.astype(dtype)`",
    "mju_d2n": "`a.astype(dtype)`",
    "mju_n2d": "`a.astype(dtype)`",
    "mju_insertionSort": "`jnp.sort(a)`",
    "mju_insertionSortInt": "`jnp.sort(a)`",
    "mju_strncpy": "Python's strings",
    "mju_printMat": "`print(A)`",
    "mju_printMatSparse": "`print(A.todense())`",
    "mju_error": "an exception",
    "mju_warning": "`warnings.warn`",
    "mju_info": "`logging`",
    "mju_message": "`logging`",
    "mju_threadpool": "XLA has its own threads",
    "mju_openResource": "`jaxsim.extend.register_provider`, `jaxsim.Vfs`",
    "mju_closeResource": "`jaxsim.extend.register_provider`, `jaxsim.Vfs`",
    "mju_readResource": "`jaxsim.extend.register_provider`, `jaxsim.Vfs`",
    "mju_writeResource": "`jaxsim.extend.register_provider`, `jaxsim.Vfs`",
    "mju_getResourceDir": "`jaxsim.extend.register_provider`, `jaxsim.Vfs`",
    "mju_isModifiedResource": "`jaxsim.extend.register_provider`, `jaxsim.Vfs`",
    "mju_decodeResource": "`jaxsim.extend.register_provider`, `jaxsim.Vfs`",
}

# by reason: functions without a counterpart
ABSENT = {
    "memory of C: arrays are JAX's, and freed when nothing refers to them": """
        mj_deleteModel mj_sizeModel mj_deleteData mj_deleteSpec mj_markStack mj_freeStack
        mj_stackAllocByte mj_stackAllocNum mj_stackAllocInt mj_resetDataDebug mju_boxQPmalloc
        mju_malloc mju_free""",
    "a structure of C that is filled with defaults: here fields have them": """
        mj_defaultLROpt mj_defaultSolRefImp mj_defaultOption mj_defaultVisual""",
    "handlers and logs of C": """
        mju_clearHandlers mju_setLogHandler mju_getLogConfig mju_setLogConfig
        mju_writeLog""",
    "libraries of C: plugins are Python (`docs/extend.md`)": """
        mj_loadPluginLibrary""",
    "rows are dense here": """
        mj_isSparse""",
    "contact slots are fixed when the model is compiled; `register_collider` adds kinds": """
        mj_addContact""",
    "the cache of assets is of one load": """
        mj_getCacheSize mj_getCacheCapacity mj_setCacheCapacity mj_getCache mj_clearCache""",
    "an XML that was last compiled is not kept: `Spec.to_xml` of the Spec": """
        mj_saveLastXML mj_freeLastXML""",
    "for a renderer": """
        mj_loadTexture mj_printScene mj_printFormattedScene mjv_defaultOption
        mjv_defaultFigure mjv_initGeom mjv_connector mjv_defaultScene mjv_makeScene mjv_freeScene
        mjv_updateScene mjv_addGeoms mjv_makeLights mjv_updateSkin""",
    "there is no room frame, and no stereo camera": """
        mjv_room2model mjv_model2room mjv_cameraInRoom mjv_moveModel mjv_averageCamera""",
}

# modules of MuJoCo's Python package, and its functions that are not in the header
PACKAGE = {
    "batch": "`jax.vmap` of any function; `jaxsim.BatchProgram`, `jaxsim.replicate`",
    "rollout": "`jaxsim.rollout`, under `jax.vmap`; `jaxsim.BatchProgram`",
    "minimize": "`jaxsim.identify.levenberg_marquardt`",
    "sysid": "`jaxsim.identify` (`docs/identify.md`)",
    "mjx": "`jaxsim.mjx`, whose names are MJX's",
    "renderer": "`jaxsim.view.camera_images` (`docs/render.md`)",
    "viewer": "`jaxsim.view.Viewer`, `jaxsim view` (`docs/view.md`)",
    "msh2obj": "nothing is to be converted: `jaxsim.load_model` reads MSH files",
    "from_zip": "`jaxsim.Spec.from_zip`; `jaxsim.load_model` reads archives too",
    "to_zip": "`jaxsim.Spec.to_zip`",
    "set_mjcb_control": "`jaxsim.Callbacks`, as for all of MuJoCo's `set_mjcb_` functions",
    "set_mju_user_warning": "`jaxsim.check_warnings`, `jaxsim.warning_texts`; memory is JAX's",
    "introspect": "`docs/reference/fields.md`; `jaxsim.Data` and `jaxsim.Model` have `fields`",
    "rendering": "OpenGL and Filament, as `cgl`, `egl`, `glfw`, `osmesa`, `gl_context`, `mjrf`",
    "studio": "an application in C++: not planned",
}

# functions of `mujoco.batch.Batch`; `d` has the worlds as its leading axis
BATCH = {
    "nsim": "`len(d.qpos)`",
    "nthread": "XLA has its own threads; `jaxsim.BatchProgram` takes all devices",
    "nstate": "`jaxsim.state_size(m, spec)`",
    "persistent": "a Data has all that a world has",
    "error": "`jaxsim.warning_counts(d)`, `jaxsim.check_warnings(d)`",
    "bind": "the fields of `d`, with a leading axis",
    **dict.fromkeys(
        ("actuator", "body", "camera", "geom", "joint", "light", "sensor", "site", "tendon"),
        "`jaxsim.Data.bind`, `jaxsim.Model.bind`: `d.bind(m, 'joint:hinge').qpos`",
    ),
    **dict.fromkeys(
        ("equality", "material", "pair"), "`jaxsim.Model.bind`; `jaxsim.name2id` for a field of `d`"
    ),
    "keyframe": "`m.key_qpos[jaxsim.name2id(m, 'key', name)]` and its kin",
    "numeric": "`m.numeric_data`, at `m.numeric_adr` of `jaxsim.name2id`",
    "expand": "`m.replace(body_mass=masses)` with a leading axis, and `jax.vmap` over that field",
    "expanded": "the fields that `in_axes` names",
    "step": "`jax.vmap(jaxsim.step, (None, 0))`, several steps: `jaxsim.rollout`",
    "forward": "`jax.vmap(jaxsim.forward, (None, 0))`",
    "reset": "`jaxsim.reset_data(m, d, where=...)`",
    "get_model": "`jax.tree.map(lambda a: a[i], models)`",
    "set_models": "`jax.vmap` over models of one structure",
    "models": "an argument of the function",
    "get_data": "`d[i]`; `jaxsim.get_data` for MuJoCo's",
    "set_const": "`jax.vmap(jaxsim.set_const)`",
    "rollout": "`jax.vmap` of `jaxsim.rollout`; `jaxsim.BatchProgram`",
    "jac": "`jax.vmap` of `jaxsim.support.jac` and its kin",
    "ray": "`jax.vmap` of `jaxsim.support.ray`, `jaxsim.support.multi_ray`",
}

# the other families of the header
FAMILIES = {
    "mjs_": "editing of models: `jaxsim.Spec`, whose elements have attributes (`docs/spec.md`)",
    "mjp_": "`jaxsim.extend.register_plugin`, `register_provider` and what takes them back",
    "mjr_": "OpenGL: not planned",
    "mjui_": "user interface in OpenGL: not planned",
}


class Row(NamedTuple):
    """A function of MuJoCo: its name there, and its dotted name or replacement here."""

    mujoco: str
    here: str


def pythonic(name: str) -> str:
    """Return the Python name of a function of MuJoCo, without its prefix."""
    bare = name.partition("_")[2]
    bare = re.sub(r"(?<=[A-Za-z])2(?=[A-Z])", "_to_", bare)
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", bare)
    return words.lower().replace("__", "_")


def named() -> dict[str, list[Row]]:
    """Return the functions that exist, by title, with their dotted names."""
    groups = {
        title: [Row(n, public_path(n)) for n in names.split()] for title, names in SAME.items()
    }
    return groups | {"Under another name": [Row(*item) for item in RENAMED.items()]}


def absent() -> list[Row]:
    """Return the functions without a counterpart, with the reason."""
    return [Row(name, reason) for reason, names in ABSENT.items() for name in names.split()]


def value_of(dotted: str) -> Any:
    """Return the object that a dotted name refers to."""
    value = importlib.import_module("jaxsim")
    for part in dotted.split(".")[1:]:
        value = getattr(value, part)
    return value


def public_path(function: str) -> str:
    """Return the dotted name of a function of MuJoCo, in the namespace that has it."""
    name = pythonic(function)
    spaces = NAMESPACES[function.partition("_")[0]]
    return next(f"{s}.{name}" for s in spaces if name in _names(value_of(s)))


def _names(namespace: Any) -> Collection[str]:
    return getattr(namespace, "__all__", vars(namespace))


def reference() -> str:
    """Return the page, in Markdown."""
    lines = [HEAD]
    for title, rows in named().items():
        lines += [f"## {title}\n", "| MuJoCo | here | |", "| --- | --- | --- |"]
        lines += [f"| `{r.mujoco}` | `{r.here}` | {_summary(value_of(r.here))} |" for r in rows]
        lines.append("")
    instead = [Row(*item) for item in INSTEAD.items()]
    lines += _table("Instead", "here", instead)
    lines += _table("Without a counterpart", "why", absent())
    package = [Row(f"mujoco.{name}", words) for name, words in PACKAGE.items()]
    lines += _table("MuJoCo's Python package", "here", package)
    batch = [Row(f"Batch.{name}", words) for name, words in BATCH.items()]
    lines += _table("Many worlds: mujoco.batch", "here", batch)
    families = [Row(name, words) for name, words in FAMILIES.items()]
    lines += _table("Other families", "here", families)
    return "\n".join(lines).rstrip("\n") + "\n"


def _table(title: str, column: str, rows: list[Row]) -> Iterator[str]:
    yield from (f"## {title}\n", f"| MuJoCo | {column} |", "| --- | --- |")
    yield from (f"| `{r.mujoco}` | {r.here} |" for r in rows)
    yield ""


def _summary(value: object) -> str:
    """Return the first paragraph of a docstring, on one line of a table."""
    doc = inspect.getdoc(value) or ""
    return " ".join(doc.partition("\n\n")[0].split()).replace("|", r"\|")
