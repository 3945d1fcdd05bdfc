"""Model: real-valued parameters as arrays, everything else in one static structure.

Every field below can be batched, randomized and differentiated. Counts, types, parents, addresses
and flags decide the shape of the program; they are in `structure` and are read the same way:
`m.nv`, `m.jnt_type`, `m.body_parentid`.
"""

from collections.abc import Mapping
from typing import Any, Self

import jax
import numpy as np

from jaxsim.enums import EnableBit, IntegratorType, SolverType
from jaxsim.model.bind import Bound
from jaxsim.model.callbacks import FILTERED_BIT, Callbacks
from jaxsim.model.flex.kinds import shells
from jaxsim.model.option import NO_CONTACTS, Option, Statistic
from jaxsim.model.record.fields import array, nested, static
from jaxsim.model.record.record import Record
from jaxsim.model.serialization.name_text import ADDRESSES, NameText, name_addresses, name_text
from jaxsim.model.structure import CHANGEABLE, HULLS_MOVED, STRAIGHT_THROUGH, Structure
from jaxsim.model.switch.admissible import (
    check_callbacks,
    check_not_smoothed,
    check_side_sites,
    check_structure,
)
from jaxsim.model.switch.clashes import DECIDING_FIELDS, check_clashes, find_clashes
from jaxsim.model.switch.switches import check_states, check_switches
from jaxsim.spelling import remedy

# attribute of a Model whose values were checked against its structure
_CHECKED_ATTRIBUTE = "_checked"


class Model(Record):
    """A compiled model; a pytree of arrays around one static structure."""

    structure: Structure = static("counts, types, parents, addresses, limits")
    opt: Option = nested(Option, "simulation options")
    stat: Statistic = nested(Statistic, "model statistics")
    callbacks: Callbacks | None = nested(
        Callbacks,
        "functions of the user that a step calls",
        optional=True,
        remedy="jaxsim.Callbacks(control=...) has them",
    )

    qpos0 = array("nq", unit="m or rad", doc="configuration at the reference pose")
    qpos_spring = array("nq", unit="m or rad", doc="configuration at which springs are at rest")
    smooth: Any = array(
        unit="m", doc="smoothing length of contacts; None: contacts are not smoothed"
    )

    body_pos = array("nbody", kind="vec", unit="m", doc="frame position in the parent body")
    body_quat = array("nbody", kind="quat", doc="frame orientation in the parent body")
    body_ipos = array("nbody", kind="vec", unit="m", doc="center of mass in the body frame")
    body_iquat = array("nbody", kind="quat", doc="principal axes of inertia in the body frame")
    body_mass = array("nbody", unit="kg", doc="mass")
    body_subtreemass = array("nbody", unit="kg", doc="mass of the body and its descendants")
    body_inertia = array("nbody", kind="vec", unit="kg m^2", doc="principal moments of inertia")
    body_invweight0 = array(
        "nbody", 2, unit="1/kg, 1/(kg m^2)", doc="mean inverse inertia at qpos0"
    )
    body_gravcomp = array("nbody", doc="part of the weight that is compensated")
    body_margin = array("nbody", unit="m", doc="largest margin plus gap of its geoms")
    body_user = array("nbody", "nuser_body", doc="user data")

    jnt_pos = array("njnt", kind="vec", unit="m", doc="anchor in the body frame")
    jnt_axis = array("njnt", kind="vec", doc="axis in the body frame, unit length")
    jnt_range = array("njnt", 2, unit="m or rad", doc="lower and upper limit")
    jnt_margin = array("njnt", unit="m or rad", doc="distance at which a limit becomes active")
    jnt_solref = array("njnt", 2, doc="reference of the limit constraint")
    jnt_solimp = array("njnt", 5, doc="impedance of the limit constraint")
    jnt_stiffness = array("njnt", unit="N/m or N m/rad", doc="linear spring coefficient")
    jnt_stiffnesspoly = array("njnt", 2, doc="spring coefficients of higher order")
    jnt_springyield = array("njnt", doc="deflection at which the spring yields; 0: never")
    jnt_actfrcrange = array("njnt", 2, unit="N or N m", doc="range of the total actuator force")
    jnt_user = array("njnt", "nuser_jnt", doc="user data")

    dof_solref = array("nv", 2, doc="reference of the friction-loss constraint")
    dof_solimp = array("nv", 5, doc="impedance of the friction-loss constraint")
    dof_frictionloss = array("nv", unit="N or N m", doc="dry friction")
    dof_armature = array("nv", unit="kg or kg m^2", doc="reflected inertia of the drive")
    dof_damping = array("nv", unit="N s/m or N m s/rad", doc="linear damping coefficient")
    dof_dampingpoly = array("nv", 2, doc="damping coefficients of higher order")
    dof_invweight0 = array("nv", unit="1/kg or 1/(kg m^2)", doc="mean inverse inertia at qpos0")
    dof_M0 = array("nv", unit="kg or kg m^2", doc="diagonal of the mass matrix at qpos0")
    dof_length = array("nv", unit="m", doc="length that converts a rotation to a displacement")

    geom_size = array("ngeom", 3, unit="m", doc="size parameters of the shape")
    geom_pos = array("ngeom", kind="vec", unit="m", doc="position in the body frame")
    geom_quat = array("ngeom", kind="quat", doc="orientation in the body frame")
    geom_rbound = array("ngeom", unit="m", doc="radius of the bounding sphere; 0: unbounded")
    geom_aabb = array(
        "ngeom", 6, unit="m", doc="bounding box in the geom frame: center, half sizes"
    )
    geom_friction = array("ngeom", 3, doc="sliding, torsional, rolling friction")
    geom_margin = array("ngeom", unit="m", doc="contacts exert forces when closer than this")
    geom_gap = array("ngeom", unit="m", doc="contacts are detected when closer than margin + gap")
    geom_solmix = array("ngeom", doc="weight of its parameters in a pair")
    geom_solref = array("ngeom", 2, doc="reference of the contact constraint")
    geom_solimp = array("ngeom", 5, doc="impedance of the contact constraint")
    geom_surfacevel = array(
        "ngeom", 6, unit="m/s, rad/s", doc="velocity of the surface, local frame"
    )
    geom_adhesion = array("ngeom", unit="N", doc="adhesive force of its contacts")
    geom_fluid = array("ngeom", 12, doc="fluid interaction of the ellipsoid model")
    geom_rgba = array("ngeom", 4, doc="color and opacity")
    geom_user = array("ngeom", "nuser_geom", doc="user data")

    site_pos = array("nsite", kind="vec", unit="m", doc="position in the body frame")
    site_quat = array("nsite", kind="quat", doc="orientation in the body frame")
    site_size = array("nsite", 3, unit="m", doc="size parameters of the shape")
    site_rgba = array("nsite", 4, doc="color and opacity")
    site_user = array("nsite", "nuser_site", doc="user data")

    cam_pos = array("ncam", kind="vec", unit="m", doc="position in the body frame")
    cam_quat = array("ncam", kind="quat", doc="orientation in the body frame")
    cam_poscom0 = array(
        "ncam", kind="vec", unit="m", doc="position relative to the subtree at qpos0"
    )
    cam_pos0 = array("ncam", kind="vec", unit="m", doc="position relative to the body at qpos0")
    cam_mat0 = array("ncam", kind="rot", doc="orientation at qpos0")
    cam_fovy = array("ncam", unit="deg or m", doc="vertical field of view")
    cam_ipd = array("ncam", unit="m", doc="distance between the eyes of a stereo view")
    cam_sensorsize = array("ncam", 2, unit="m", doc="size of the sensor; 0: none")
    cam_intrinsic = array("ncam", 4, unit="m", doc="focal lengths and principal point")
    cam_user = array("ncam", "nuser_cam", doc="user data")
    light_pos = array("nlight", kind="vec", unit="m", doc="position in the body frame")
    light_dir = array("nlight", kind="vec", doc="direction in the body frame")
    light_poscom0 = array(
        "nlight", kind="vec", unit="m", doc="position relative to the subtree at qpos0"
    )
    light_pos0 = array("nlight", kind="vec", unit="m", doc="position relative to the body at qpos0")
    light_dir0 = array("nlight", kind="vec", doc="direction at qpos0")
    light_bulbradius = array("nlight", unit="m", doc="radius of the source, for soft shadows")
    light_intensity = array("nlight", unit="cd", doc="intensity")
    light_range = array("nlight", unit="m", doc="distance that the light reaches")
    light_attenuation = array("nlight", 3, doc="constant, linear and quadratic attenuation")
    light_cutoff = array("nlight", unit="deg", doc="half angle of a spot's cone")
    light_softness = array("nlight", doc="softness of a spot's edge")
    light_exponent = array("nlight", doc="concentration of a spot")
    light_ambient = array("nlight", 3, doc="ambient color")
    light_diffuse = array("nlight", 3, doc="diffuse color")
    light_specular = array("nlight", 3, doc="specular color")

    mesh_vert = array("nmeshvert", kind="vec", unit="m", doc="vertices in the frame of the mesh")
    mesh_normal = array("nmeshnormal", kind="vec", doc="normals in the frame of the mesh")
    mesh_texcoord = array("nmeshtexcoord", 2, doc="texture coordinates")
    mesh_scale = array("nmesh", kind="vec", doc="factors on the vertices of the file")
    mesh_pos = array("nmesh", kind="vec", unit="m", doc="origin of the mesh's frame in the file")
    mesh_quat = array("nmesh", kind="quat", doc="orientation of the mesh's frame in the file")
    mesh_polynormal = array("nmeshpoly", kind="vec", doc="outward normals of the hull's polygons")
    oct_aabb = array(
        "noct", 6, unit="m", doc="center and half sides of a cell, in the mesh's frame"
    )
    oct_coeff = array("noct", 8, unit="m", doc="signed distance at a cell's corners, x first")
    hfield_size = array("nhfield", 4, unit="m", doc="half sides, height, depth of the base")
    hfield_data = array("nhfielddata", doc="heights row by row, between 0 and 1")

    skin_rgba = array("nskin", 4, doc="color and opacity")
    skin_inflate = array("nskin", unit="m", doc="offset of the vertices along their normals")
    skin_vert = array("nskinvert", kind="vec", unit="m", doc="vertices when the skin was bound")
    skin_texcoord = array("nskintexvert", 2, doc="texture coordinates")
    skin_bonebindpos = array("nskinbone", kind="vec", unit="m", doc="bodies when it was bound")
    skin_bonebindquat = array("nskinbone", kind="quat", doc="their orientation then")
    skin_bonevertweight = array("nskinbonevert", doc="weights of the bones in their vertices")

    mat_texrepeat = array("nmat", 2, doc="repetitions of the texture")
    mat_emission = array("nmat", doc="strength of the light given off")
    mat_specular = array("nmat", doc="strength of highlights")
    mat_shininess = array("nmat", doc="sharpness of highlights")
    mat_reflectance = array("nmat", doc="strength of mirror images")
    mat_metallic = array("nmat", doc="metalness; negative: not given")
    mat_roughness = array("nmat", doc="roughness; negative: not given")
    mat_rgba = array("nmat", 4, doc="color and opacity")

    flex_solmix = array("nflex", doc="weight of its parameters in a pair")
    flex_solref = array("nflex", 2, doc="reference of the contact constraint")
    flex_solimp = array("nflex", 5, doc="impedance of the contact constraint")
    flex_friction = array("nflex", 3, doc="sliding, torsional, rolling friction")
    flex_margin = array("nflex", unit="m", doc="contacts exert forces when closer than this")
    flex_gap = array("nflex", unit="m", doc="contacts are detected below margin + gap")
    flex_radius = array("nflex", unit="m", doc="radius around the elements")
    flex_size = array("nflex", 3, unit="m", doc="half sizes of the box around it at qpos0")
    flex_damping = array("nflex", unit="s", doc="damping in proportion to the stiffness")
    flex_yield = array("nflex", 2, doc="strains at which stretching and bending yield; 0: never")
    flex_edgestiffness = array("nflex", unit="N/m", doc="stiffness of the edges")
    flex_edgedamping = array("nflex", unit="N s/m", doc="damping of the edges")
    flex_rgba = array("nflex", 4, doc="color and opacity")
    flex_vert = array("nflexvert", kind="vec", unit="m", doc="vertices in their bodies")
    flex_vert0 = array("nflexvert", kind="vec", doc="vertices at qpos0, 0 to 1 in their box")
    flex_node = array("nflexnode", kind="vec", unit="m", doc="nodes in their bodies")
    flex_node0 = array("nflexnode", kind="vec", unit="m", doc="nodes at qpos0")
    flexedge_length0 = array("nflexedge", unit="m", doc="lengths of the edges at qpos0")
    flexedge_invweight0 = array("nflexedge", unit="1/kg", doc="inverse inertia of the edges")
    flex_stiffness = array("nflexstiffness", doc="stretching energy of the elements")
    flex_bending = array("nflexbending", doc="bending energy of shells and rods")
    flex_texcoord = array("nflextexcoord", 2, doc="texture coordinates")

    pair_solref = array("npair", 2, doc="reference of the contact, normal direction")
    pair_solreffriction = array("npair", 2, doc="reference of the contact, friction directions")
    pair_solimp = array("npair", 5, doc="impedance of the contact")
    pair_margin = array("npair", unit="m", doc="contacts exert forces when closer than this")
    pair_gap = array("npair", unit="m", doc="contacts are detected when closer than margin + gap")
    pair_adhesion = array("npair", unit="N", doc="adhesive force of the contacts")
    pair_friction = array("npair", 5, doc="friction: tangent 1, 2, spin, roll 1, 2")

    eq_solref = array("neq", 2, doc="reference of the constraint")
    eq_solimp = array("neq", 5, doc="impedance of the constraint")
    eq_data = array("neq", 12, doc="anchor, relative pose or polynomial of the constraint")

    tendon_solref_lim = array("ntendon", 2, doc="reference of the limit constraint")
    tendon_solimp_lim = array("ntendon", 5, doc="impedance of the limit constraint")
    tendon_solref_fri = array("ntendon", 2, doc="reference of the friction-loss constraint")
    tendon_solimp_fri = array("ntendon", 5, doc="impedance of the friction-loss constraint")
    tendon_range = array("ntendon", 2, unit="m", doc="limits of the length")
    tendon_actfrcrange = array("ntendon", 2, unit="N", doc="range of the total actuator force")
    tendon_margin = array("ntendon", unit="m", doc="distance at which a limit becomes active")
    tendon_stiffness = array("ntendon", unit="N/m", doc="linear spring coefficient")
    tendon_stiffnesspoly = array("ntendon", 2, doc="spring coefficients of higher order")
    tendon_damping = array("ntendon", unit="N s/m", doc="linear damping coefficient")
    tendon_dampingpoly = array("ntendon", 2, doc="damping coefficients of higher order")
    tendon_armature = array("ntendon", unit="kg", doc="inertia of motion along the tendon")
    tendon_frictionloss = array("ntendon", unit="N", doc="dry friction")
    tendon_lengthspring = array(
        "ntendon", 2, unit="m", doc="lengths between which the spring rests"
    )
    tendon_springyield = array("ntendon", doc="deflection at which the spring yields; 0: never")
    tendon_length0 = array("ntendon", unit="m", doc="length at qpos0")
    tendon_invweight0 = array("ntendon", unit="1/kg", doc="inverse inertia at qpos0")
    tendon_width = array("ntendon", unit="m", doc="drawn width")
    tendon_rgba = array("ntendon", 4, doc="color and opacity")
    tendon_user = array("ntendon", "nuser_tendon", doc="user data")
    wrap_prm = array("nwrap", doc="joint coefficient, pulley divisor or side site of a path point")

    actuator_cranklength = array("nactuator", unit="m", doc="crank length of a slider-crank")
    actuator_dynprm = array("nactuator", 10, doc="parameters of the activation dynamics")
    actuator_gainprm = array("nactuator", 10, doc="parameters of the gain")
    actuator_biasprm = array("nactuator", 10, doc="parameters of the bias")
    actuator_actrange = array("nactuator", 2, doc="range of the activation")
    actuator_forcerange = array("nactuator", 2, unit="N or N m", doc="range of the force")
    actuator_delay = array("nactuator", unit="s", doc="delay of the control")
    actuator_damping = array("nactuator", doc="damping added to its joint or tendon")
    actuator_dampingpoly = array("nactuator", 2, doc="damping coefficients of higher order")
    actuator_armature = array("nactuator", doc="armature added to its joint or tendon")
    actuator_user = array("nactuator", "nuser_actuator", doc="user data")
    actuator_ctrlrange = array("nu", 2, doc="range of the control")
    actuator_gear = array("nout", 6, doc="scale of length and force")
    actuator_acc0 = array("nout", doc="acceleration from unit force at qpos0")
    actuator_length0 = array("nout", unit="m or rad", doc="length at qpos0")
    actuator_lengthrange = array("nout", 2, unit="m or rad", doc="feasible range of the length")

    sensor_cutoff = array("nsensor", doc="limit of the output; 0: none")
    sensor_noise = array(
        "nsensor", doc="standard deviation of the noise; not applied by the engine"
    )
    sensor_delay = array("nsensor", unit="s", doc="delay of the output")
    sensor_interval = array("nsensor", 2, unit="s", doc="period and phase of the sampling")
    sensor_user = array("nsensor", "nuser_sensor", doc="user data")

    plugin_state0 = array("npluginstate", doc="states of plugins at the start of a world")
    plugin_params = array("npluginparam", doc="parameters of plugins; see `get_plugin_params`")
    numeric_data = array("nnumericdata", doc="custom numbers")
    tuple_objprm = array("ntupledata", doc="parameters of the objects in custom tuples")
    key_time = array("nkey", unit="s", doc="time of the keyframe")
    key_qpos = array("nkey", "nq", unit="m or rad", doc="configuration of the keyframe")
    key_qvel = array("nkey", "nv", unit="m/s or rad/s", doc="velocity of the keyframe")
    key_act = array("nkey", "na", doc="activation of the keyframe")
    key_mpos = array("nkey", "nmocap", 3, unit="m", doc="mocap positions of the keyframe")
    key_mquat = array("nkey", "nmocap", 4, doc="mocap orientations of the keyframe")
    key_plastic = array("nkey", "nplastic", doc="yielded springs of the keyframe")
    key_ctrl = array("nkey", "nu", doc="controls of the keyframe")

    def _check(self, values: Mapping[str, Any]) -> None:
        """Raise ValueError if new values do not fit the declarations or this structure."""
        check_callbacks(values.get("callbacks"))
        if "structure" in values:
            check_structure(values["structure"], needed=self._holds_arrays())
        super()._check(values)
        if self.smooth is None and self.qpos0 is not None:
            check_not_smoothed(values.get("smooth"))
        structure: Structure = values.get("structure", self.structure)
        if structure is None or structure.refusals or structure.contact_refusals:
            return  # such a model can be inspected and changed, but not simulated
        opt = values.get("opt")
        options = {}
        if isinstance(opt, Option):  # a vmap axis may replace the whole record
            options = {f"opt.{n}": getattr(opt, n) for n in opt.fields}
        changed = {n: v for n, v in {**values, **options}.items() if v is not self._now(n)}
        if "structure" not in values and not DECIDING_FIELDS.isdisjoint(changed):
            self._check_clashes(changed)
        check_switches(structure, changed, self.fields)
        check_states(structure, changed)
        check_side_sites(structure, changed.get("wrap_prm"))

    def replace(self, **values: Any) -> Self:
        """Return a copy with other values.

        Clashes that a change resolves are removed from the structure. A replaced `mesh_vert` is
        recorded in it: programs that cannot see whether the vertices moved assume that they did.
        """
        new = super().replace(**values)
        if _CHECKED_ATTRIBUTE in self.__dict__ and "structure" not in values:
            new.__dict__[_CHECKED_ATTRIBUTE] = True
        if "mesh_vert" in values and new.structure is not None:
            new = new._with_tables(**{HULLS_MOVED: True})
        if (
            DECIDING_FIELDS.isdisjoint(values)
            or not isinstance(new.opt, Option)
            or new.structure is None
        ):
            return new
        if not new.structure.clash_places or find_clashes(new):
            return new
        return new._with_tables(clash_places=())

    def replace_unchecked(self, values: Mapping[str, Any], native: bool) -> Self:
        """Return a copy with some fields replaced, in the public or the native form, unchecked."""
        new = super().replace_unchecked(values, native)
        new.__dict__.pop(_CHECKED_ATTRIBUTE, None)
        return new

    def check_values(self, prefix: str = "") -> None:
        """Refuse numbers of fields that were compiled out, which a program would ignore.

        `replace` refuses them where they are given. Pytree operations (`jax.tree.map`, restored
        leaves in an old structure) cannot, for the leaves may be tangents: so functions that take a
        model check it, once for each object. Numbers that are traced are not known.

        Args:
          prefix: of the message, which begins with the name of a field.

        Raises:
          ValueError: names the field, the items and the remedy.
        """
        if _CHECKED_ATTRIBUTE in self.__dict__ or self._native or self.structure is None:
            return
        values = {n: getattr(self, n) for n, f in self.fields.items() if not f.static}
        if isinstance(self.opt, Option):
            values |= {f"opt.{n}": getattr(self.opt, n) for n in self.opt.fields}
        known = {n: v for n, v in values.items() if _is_known(v)}
        try:
            check_switches(self.structure, known, self.fields)
        except ValueError as error:
            raise ValueError(f"{prefix}{error}") from None
        if len(known) == len(values):
            self.__dict__[_CHECKED_ATTRIBUTE] = True

    def _remedy(self, name: str, value: Any) -> str:
        """Return the function that changes a table of the structure, or the nearest name."""
        structure: Structure | None = self.structure
        if structure is None or name not in structure:
            own = [*self.fields, *CHANGEABLE]
            of_option = super()._remedy(name, value)
            return of_option if of_option.startswith(":") else remedy(name, own)
        if name in CHANGEABLE:
            return (
                ": it is a table of the structure, which decides the program; "
                f"jaxsim.replace_structure(m, {name}=...) gives a model with another, whose "
                "functions are compiled again"
            )
        return (
            ": it is a table of the structure, which decides the program; change the Spec, and "
            "load it again"
        )

    def _with_tables(self, **tables: Any) -> Self:
        return self.replace_unchecked({"structure": self.structure.replace(**tables)}, self._native)

    def _check_clashes(self, changed: Mapping[str, Any]) -> None:
        """Raise ValueError if changed fields make options or features clash."""
        decide = {n: changed[n] for n in sorted(DECIDING_FIELDS & changed.keys())}
        if isinstance(decide.get("opt", self.opt), Option):  # a vmap axis may replace the record
            check_clashes(self, self.replace_unchecked(decide, self._native), next(iter(decide)))

    def _now(self, name: str) -> Any:
        """Return the present value of a field, or of an option, "opt.density"."""
        owner, _, option = name.partition(".")
        return getattr(getattr(self, owner), option) if option else self.__dict__.get(name)

    def _sizes(self, values: Mapping[str, Any]) -> Mapping[str, int]:
        structure: Structure = values.get("structure", self.structure)
        return structure.counts

    def __getattr__(self, name: str) -> Any:
        """Return a static table as if it were a field: `m.nv`, `m.jnt_type`."""
        if name.startswith("_") or name == "structure":
            raise AttributeError(name)
        if name in ADDRESSES:
            return name_addresses(self.structure)[name]
        structure = self.structure
        if structure is not None and name not in structure:
            near = remedy(name, [*self.fields, *structure])
            raise AttributeError(f"the model has no field {name!r}{near}")
        return getattr(structure, name)

    def __repr__(self) -> str:
        """Return the sizes and precision; see `describe` for details."""
        return f"Model({self.structure!r}, {getattr(self.qpos0, 'dtype', 'no arrays')})"

    def bind(self, elements: Any) -> Bound[Self]:
        """Return the fields of named objects: `m.bind(spec["body", "arm"]).mass`.

        Args:
          elements: an element of a `Spec` or of a `mujoco.MjSpec`, "kind:name", or a list of them,
            all of one kind.
        """
        return Bound(self.structure, self, elements)

    def with_tables(self, **tables: Any) -> Self:
        """Return the model with more tables in its structure, while it is assembled."""
        return self.replace_unchecked(
            {"structure": self.structure.with_tables(**tables)}, self._native
        )

    @property
    def straight_through(self) -> bool:
        """Return whether contacts are smooth in derivatives alone, and hard in the motion."""
        s = self.structure
        marked = s is not None and STRAIGHT_THROUGH in s and bool(getattr(s, STRAIGHT_THROUGH))
        return marked and self.smooth is not None

    @property
    def lists_contact_forces(self) -> bool:
        """Return whether contacts store their forces, because these do not follow from `qacc`.

        With RK4 `qacc` is a mean over stages; the other cases are those of `lists_row_forces`.
        """
        return self.lists_row_forces or self.opt.integrator == IntegratorType.RK4

    @property
    def lists_row_forces(self) -> bool:
        """Return whether rows store their forces, because these do not follow from poses and `qacc`
        alone.

        No-slip iterations change the forces after `qacc` is computed; those of PGS agree with it
        only at the minimum; under the flag diagexact, and with the discrete integrator, they depend
        on the inertia and other quantities of the state.
        """
        opt = self.opt
        weighed = opt.integrator == IntegratorType.DISCRETE or (
            opt.enableflags & EnableBit.DIAGEXACT
        )
        return self.solves_for_forces or bool(weighed)

    @property
    def solves_for_forces(self) -> bool:
        """Return whether the solver computes row forces in addition to `qacc`: PGS and no-slip
        iterations."""
        return self.opt.noslip_iterations > 0 or self.opt.solver == SolverType.PGS

    @property
    def is_single_precision(self) -> bool:
        """Return whether the precision is below double, so that the clock needs two numbers."""
        return np.dtype(self.qpos0.dtype) != np.float64

    @property
    def times_history_in_single_precision(self) -> bool:
        """Return whether there is a history whose times need two numbers each."""
        return self.is_single_precision and bool(self.nhistory)

    @property
    def resolves_shells(self) -> bool:
        """Return whether steps resolve contacts of shells with the flag ipc (physics/ipc)."""
        ipc = self.opt.enableflags & EnableBit.IPC
        return bool(ipc) and bool(shells(self).any())

    @property
    def pair_flags(self) -> int:
        """Return the flags that decide which geoms may collide: DisableBit, and FILTERED_BIT if
        there is a contactfilter callback."""
        filtered = self.callbacks is not None and self.callbacks.contactfilter is not None
        return int(self.opt.disableflags) | (FILTERED_BIT if filtered else 0)

    @property
    def unsupported(self) -> tuple[tuple[str | None, int | None, str], ...]:
        """Return the file, line and message of everything that prevents simulation with the present
        options."""
        s = self.structure
        places = {message: (file, line) for file, line, message in s.clash_places}
        found = (found.message for found in find_clashes(self))
        clashes = tuple((*places.get(what, (None, None)), what) for what in found)
        touching = () if self.opt.disableflags & NO_CONTACTS else s.contact_refusals
        return clashes + s.refusals + touching

    @property
    def names(self) -> NameText:
        """Return the names of objects, `m.names["body"]`, "" for an unnamed one; also the
        concatenated text of mjModel."""
        return name_text(self.structure)


def _is_known(value: Any) -> bool:
    """Return whether a value is an array of numbers, neither traced nor a shape."""
    return isinstance(value, jax.Array | np.ndarray) and not isinstance(value, jax.core.Tracer)
