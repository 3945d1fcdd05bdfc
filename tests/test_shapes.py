"""Shapes in the signatures of public functions: every array has one, and results have theirs.

The functions are those of `jaxsim` and its namespaces for the physics whose signature has an array.
They are traced, not compiled: for one world, and under `vmap`, there with several points where an
axis is `*n`.
"""

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator
from functools import cache
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.sparse import BCSR

import jaxsim
from jaxsim import extend, stages, support
from jaxsim.batch.trajectory import TrajectoryWriter
from jaxsim.enums import State
from jaxsim.model.model import Model
from jaxsim.model.record.fields import DTYPES
from jaxsim.model.record.record import Record
from jaxsim.model.shaped import Float, Int, Shape, Shaped

FLEX = """
<flexcomp name="cloth" type="grid" dim="2" count="3 3 1" spacing=".1 .1 .1" pos="0 2 1" mass="1">
  <contact selfcollide="none" contype="0" conaffinity="0"/><edge equality="true"/>
  <pin gridrange="0 0 2 1"/>
</flexcomp>"""
CART = '<body pos="{x} 0 1"><joint/><geom type="box" size=".1 .1 .1"/></body>'
TENDON = '<fixed><joint joint="b" coef="1"/><joint joint="c" coef="{c}"/></fixed>'
# Every size that a signature names is another one.
SCENE = f"""
<mujoco>
  <option cone="elliptic"/>
  <asset><mesh name="corner" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <light pos="0 0 3"/>
    <camera name="eye" pos="0 -3 1"/>
    <body name="puck" pos="0 0 .1"><freejoint/><geom name="puck" size=".1" condim="3"/></body>
    <body name="arm" pos="2 0 1">
      <joint name="a" type="ball"/><geom type="capsule" fromto="0 0 0 .5 0 0" size=".05"/>
      <body name="hand" pos=".5 0 0">
        <joint name="b" axis="0 1 0" limited="true" range="-1 1"/>
        <joint name="c" axis="0 0 1" frictionloss=".1"/>
        <geom type="capsule" fromto="0 0 0 .4 0 0" size=".05"/><site name="tip" pos=".4 0 0"/>
      </body>
    </body>
    {"".join(CART.format(x=-1 - k) for k in range(9))}
    <!-- flex -->
  </worldbody>
  <tendon>{"".join(TENDON.format(c=k) for k in range(9))}</tendon>
  <actuator>
    <motor joint="b" nsample="4" delay=".002"/><intvelocity joint="c" actrange="-1 1"/>
    <orientation joint="a" kp="3" kv=".5" input="quat"/><motor joint="b"/><motor joint="c"/>
  </actuator>
  <sensor><framepos name="where" objtype="site" objname="tip" nsample="7" delay=".002"/></sensor>
  <keyframe><key name="start"/></keyframe>
</mujoco>
"""
# What the functions read; every other result takes time to trace.
KEEP = [support.contact_forces, stages.xfrc_accumulate]
KEEP += ["actuator_moment", "flexedge_J", "sensordata", "ten_J", "cinert", "cdof_dot", "xpos"]
WORLDS = 5
# Names of axes that are no sizes of the Model: those that arguments choose, with the size that they
# have here, and others, whose size follows from a function's arguments or is seen in its result.
CHOSEN = {"n": 34, "k": 43, "batch": 37, "steps": 41, "height": 17, "width": 19}
OTHERS = set("nsample dim ctrlnum size part rows contacts records worlds field bytes".split())
SIZES_OF = {
    "init_ctrl_history": {"nsample": 4, "ctrlnum": 1},
    "init_sensor_history": {"nsample": 7, "dim": 3},
    "read_ctrl": {"ctrlnum": 1},
    "read_sensor": {"dim": 3},
    "sensor_data": {"dim": 3},
}
# Static arguments, by name, or by function and name.
STATIC: dict[str, Any] = {
    "actuator": 0,
    "camera": "eye",
    "ctrl_index.names": [],
    "dstspec": State.QPOS,
    "flex": "cloth",
    "geom_sdf.geom": "puck",
    "height": CHOSEN["height"],
    "multi_ray.geomgroup": None,
    "name": "where",
    "names": ["a", "c"],
    "objtype": "site",
    "rate": 2.0,
    "ray.geomgroup": None,
    "record": ("xpos", "time"),
    "rollout.steps": None,
    "sensor": "where",
    "sensor_index.names": "where",
    "set_inertia.density": None,  # it has a mass
    "spec": State.PHYSICS,
    "srcspec": State.PHYSICS,
    "width": CHOSEN["width"],
}
# Functions that read values, and so run outside of a program.
ON_HOST = {"warning_counts", "load_trajectory"}
Sizes = dict[str, Any]  # an int for an axis "n", a tuple for "*n"


@cache
def scene(function: str = "") -> tuple[Model, jaxsim.Data]:
    """The model and the state for a function, with a flex (slow to trace) if it needs one."""
    if function and "flex" not in function:
        return scene()
    m = jaxsim.load_model(SCENE.replace("<!-- flex -->", FLEX if function else ""), contacts=15)
    return m, jaxsim.make_data(m, keep=KEEP)


def public_functions() -> dict[str, Callable]:
    """All functions of the physics, by name."""
    offered = {
        name: getattr(namespace, name)
        for namespace in (jaxsim, stages, support, extend)
        for name in namespace.__all__
    }
    return {n: f for n, f in offered.items() if callable(f) and not isinstance(f, type)}


def hints(of: Any) -> dict[str, Any]:
    return typing.get_type_hints(of, include_extras=True)


def shape_of(hint: Any) -> Shape | None:
    """The shape that an annotation has, if it has one."""
    found = (x for x in getattr(hint, "__metadata__", ()) if isinstance(x, Shape))
    return next(found, None)


def has_fields(hint: Any) -> bool:
    return dataclasses.is_dataclass(hint) or hasattr(hint, "_fields")


def inner(hint: Any) -> Iterator[Any]:
    """Types of which a type consists: of its arguments, or of the fields of a record."""
    if isinstance(hint, type) and issubclass(hint, Record):
        return
    if typing.get_origin(hint) is not Annotated:
        yield from typing.get_args(hint)
    if has_fields(hint) and hint.__module__.startswith("jaxsim."):
        yield from hints(hint).values()


def shapes(hint: Any) -> Iterator[Shape]:
    """All shapes in a type."""
    own = shape_of(hint)
    if own is not None:
        yield own
    for part in inner(hint):
        yield from shapes(part)


def bare(hint: Any) -> Iterator[Any]:
    """Arrays without a shape in a type; a tuple of unknown types may have some."""
    if shape_of(hint) is None:
        if hint in (jax.Array, np.ndarray, BCSR, tuple, list, dict):
            yield hint
        for part in inner(hint):
            yield from bare(part)


def is_explicit(hint: Any) -> bool:
    """Return True if a type consists of records and of arrays with shapes, and of no others."""
    if shape_of(hint) is not None or hint is type(None):
        return True
    if isinstance(hint, type) and issubclass(hint, Record):
        return True
    parts = list(inner(hint))
    return bool(parts) and all(map(is_explicit, parts))


FUNCTIONS = public_functions()
SHAPED = [name for name, f in FUNCTIONS.items() if any(map(list, map(shapes, hints(f).values())))]


PHYSICS = sorted(name for name, f in FUNCTIONS.items() if hasattr(f, "carries"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_array_in_a_signature_has_a_shape(name):
    parameters = inspect.signature(FUNCTIONS[name]).parameters.keys() - {"callbacks"}
    assert parameters | {"return"} <= hints(FUNCTIONS[name]).keys()
    for part, hint in hints(FUNCTIONS[name]).items():
        assert not list(bare(hint)), f'{name}: {part}: {hint}: write Float[..., "..."]'


def test_every_function_of_the_physics_is_found():
    assert len(PHYSICS) > 60
    for space in (stages, support):
        made = {n for n, f in vars(space).items() if hasattr(f, "carries") and n[0] != "_"}
        assert made <= set(space.__all__)


@pytest.mark.parametrize("name", [*PHYSICS, "geom_distance"])
def test_results_of_the_physics_are_records_or_have_shapes(name):
    function = FUNCTIONS[name]
    result = hints(function).get("return")
    assert is_explicit(result), f"{name} returns {result}"


@pytest.mark.parametrize("scene_of", ["ray", "ray_flex"])
def test_axes_are_sizes_of_the_model_or_free(scene_of):
    sizes = scene(scene_of)[0].structure.sizes
    used = {x for f in FUNCTIONS.values() for h in hints(f).values() for x in axes(h)}
    named = {x.removeprefix("*") for x in used if isinstance(x, str)}
    assert named <= sizes.keys() | CHOSEN.keys() | OTHERS
    assert named >= CHOSEN.keys() | OTHERS, "no function has these any more"
    # All sizes differ, so that none passes for another.
    numbers = [x for x in used if isinstance(x, int)]
    there = [sizes[name] for name in named & sizes.keys()]
    every = [*numbers, *there, number_of_rows(), WORLDS, *CHOSEN.values()]
    assert len(set(every)) == len(every), sorted(every)


def axes(hint: Any) -> list[str | int]:
    return [x for shape in shapes(hint) for x in shape.dims]


def known_sizes(name: str, m: Model, several: bool) -> Sizes:
    """Sizes of the axes of a function, apart from those that only its result has.

    An axis "*n" is none, or one if `several`, or that of an argument with an axis "n".
    """
    of = hints(FUNCTIONS[name])
    given = {str(x) for k, h in of.items() if k != "return" or is_of_batch(h) for x in axes(h)}
    given |= of.keys()  # a size that is an argument itself
    sizes: Sizes = dict(m.structure.sizes)
    for axis, size in CHOSEN.items():
        if axis in given:
            sizes[axis] = size
        if axis in given or f"*{axis}" in given:
            sizes[f"*{axis}"] = (size,) if several or axis in given else ()
    sizes["size"] = jaxsim.state_size(m, STATIC["spec"])
    sizes["part"] = jaxsim.state_size(m, STATIC["dstspec"])
    sizes["rows"] = number_of_rows()
    return {**sizes, **SIZES_OF.get(name, {})}


def is_of_batch(hint: Any) -> bool:
    """Return True if a result has the leading axes of the given worlds."""
    return "*batch" in axes(hint)


@cache
def number_of_rows() -> int:
    """Number of rows of `constraint_rows`."""
    return jax.eval_shape(support.constraint_rows, *scene()).active.shape[0]


def concrete(shape: Shape, sizes: Sizes) -> tuple[int, ...]:
    out: list[int] = []
    for axis in shape.dims:
        size = axis if isinstance(axis, int) else sizes[axis]
        out += size if isinstance(size, tuple) else [size]
    return tuple(out)


def struct(shape: Shape, sizes: Sizes) -> jax.ShapeDtypeStruct:
    kinds = {np.floating: jnp.float64, np.integer: jnp.int32, np.bool_: jnp.bool_}
    return jax.ShapeDtypeStruct(concrete(shape, sizes), kinds[shape.dtype])


def stacked(tree: Any, axes: tuple[int, ...]) -> Any:
    return jax.tree.map(lambda a: jax.ShapeDtypeStruct((*axes, *a.shape), a.dtype), tree)


def arguments(name: str, sizes: Sizes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of a function, made from its annotations: those to trace, and static ones."""
    m, d = scene(name)
    function, traced, static = FUNCTIONS[name], {}, {}
    of = hints(function)
    batch = sizes.get("*batch", ())
    for argument, parameter in inspect.signature(function).parameters.items():
        own = f"{name}.{argument}"
        hint = of.get(argument)
        shape = next(filter(None, map(shape_of, [hint, *typing.get_args(hint)])), None)
        if own in STATIC or (argument in STATIC and shape is None):
            static[argument] = STATIC[own if own in STATIC else argument]
        elif hint is Model:
            traced[argument] = m
        elif hint is jaxsim.Data:
            traced[argument] = stacked(d, batch)
        elif shape is not None:
            traced[argument] = struct(shape, sizes)
        else:
            assert parameter.default is not inspect.Parameter.empty, f"{own}: a value for STATIC"
    return traced, static


def check(name: str, hint: Any, value: Any, sizes: Sizes, lead: tuple[int, ...] = ()) -> None:
    """Compare a result with its annotation; free axes of results take the first size they have."""
    shape = shape_of(hint)
    origin = typing.get_origin(hint)
    if isinstance(value, Record):
        for field, declared in value.fields.items():
            inside = getattr(value, field)
            if declared.nested is not None and inside is not None:
                check(f"{name}.{field}", declared.nested, inside, sizes, lead)
            elif inside is not None and not declared.static:
                expected = (*lead, *sizes.get("*batch", ()), *declared.dims(sizes))
                assert inside.shape == expected, f"{name}.{field}"
                assert np.issubdtype(inside.dtype, DTYPES[declared.dtype]), f"{name}.{field}"
    elif shape is not None:
        bind(shape, value.shape[len(lead) :], sizes)
        assert value.shape == (*lead, *concrete(shape, sizes)), f"{name}: {shape}, {value.shape}"
        assert np.issubdtype(value.dtype, shape.dtype), f"{name}: {shape}, {value.dtype}"
    elif origin in (typing.Union, type(int | str)):
        others = [x for x in typing.get_args(hint) if x is not type(None)]
        if value is not None:
            check(name, others[0], value, sizes, lead)
    elif origin is dict:
        for key, item in value.items():
            fresh = {k: v for k, v in sizes.items() if k != "*field"}
            check(f"{name}[{key!r}]", typing.get_args(hint)[1], item, fresh, lead)
    elif origin is list:
        for k, item in enumerate(value):
            check(f"{name}[{k}]", typing.get_args(hint)[0], item, sizes, lead)
    elif has_fields(hint):
        for field, of in hints(hint).items():
            check(f"{name}.{field}", of, getattr(value, field), sizes, lead)
    elif origin is tuple:
        for k, (of, item) in enumerate(zip(typing.get_args(hint), value, strict=True)):
            check(f"{name}[{k}]", of, item, sizes, lead)
    else:
        assert not hasattr(value, "shape"), f"{name}: an array without a shape"


def bind(shape: Shape, given: tuple[int, ...], sizes: Sizes) -> None:
    """Add the sizes of axes that are not known yet."""
    rest = list(given)
    for k, axis in enumerate(shape.dims):
        if isinstance(axis, str) and axis.startswith("*") and axis not in sizes:
            count = len(rest) - len(shape.dims[k + 1 :])
            sizes[axis], rest = tuple(rest[:count]), rest[count:]
            continue
        size = axis if isinstance(axis, int) else sizes.setdefault(axis, rest[0] if rest else -1)
        rest = rest[len(size) if isinstance(size, tuple) else 1 :]


def result(name: str, several: bool, worlds: int = 0) -> tuple[Any, Sizes]:
    """Shapes of the result of a function, in one world or under `vmap`."""
    m, _ = scene(name)
    sizes = known_sizes(name, m, several)
    traced, static = arguments(name, sizes)
    function = FUNCTIONS[name]

    def call(named):
        return function(**named, **static)

    if not worlds:
        return jax.eval_shape(call, traced), sizes
    # Worlds share the model, unless the function has no other argument.
    shared = {k for k, v in traced.items() if isinstance(v, Model)} if len(traced) > 1 else set()
    many = {k: v if k in shared else stacked(v, (worlds,)) for k, v in traced.items()}
    in_axes = {k: None if k in shared else 0 for k in traced}
    return jax.eval_shape(jax.vmap(call, in_axes=(in_axes,)), many), sizes


def takes_several(name: str) -> bool:
    """Return True if an argument has any number of axes, or the worlds may have leading axes."""
    of = hints(FUNCTIONS[name])
    given = [x for k, h in of.items() if k != "return" or is_of_batch(h) for x in axes(h)]
    return any(str(x).startswith("*") for x in given)


CASES = [
    # of many worlds the function of one is traced, too
    pytest.param(
        *(name, bool(worlds) and takes_several(name), worlds),
        marks=() if worlds else pytest.mark.slow,
    )
    for name in SHAPED
    if name not in ON_HOST
    for worlds in (0, WORLDS)
]


@pytest.mark.parametrize(("name", "several", "worlds"), CASES)
def test_results_have_the_shapes_of_the_signature(name, several, worlds):
    found, sizes = result(name, several, worlds)
    check(name, hints(FUNCTIONS[name])["return"], found, sizes, (worlds,) if worlds else ())


def test_results_on_the_host_have_the_shapes_of_the_signature(tmp_path):
    m, d = scene()
    sizes = dict(m.structure.sizes)
    worlds = jaxsim.replicate(d, 3)
    warned = worlds.replace(warning=worlds.warning.at[1:, 0].set(1))
    counts = jaxsim.warning_counts(warned)
    assert len(counts) == 1
    check("warning_counts", hints(jaxsim.warning_counts)["return"], counts, dict(sizes))
    header = {"model": "scene", "timestep": 0.002, "every": 1, "worlds": 3}
    header |= {name: sizes[name] for name in ("nq", "nv", "nu")}
    with TrajectoryWriter(tmp_path / "motion.jsim", header) as writer:
        writer.append({"qpos": np.zeros((2, 3, m.nq)), "time": np.zeros((2, 3))})
    motion = jaxsim.load_trajectory(tmp_path / "motion.jsim")
    check("load_trajectory", hints(jaxsim.load_trajectory)["return"], motion, dict(sizes))


NV = jax.ShapeDtypeStruct((2,), np.float64)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (Float[jax.Array, "nq"], NV),
        (Float[jax.Array, "nv 1"], NV),
        (Float[jax.Array, ""], NV),
        (Int[jax.Array, "nv"], NV),
        (tuple[Float[jax.Array, "n"], Float[jax.Array, "n n"]], (NV, NV)),
        (Float[jax.Array, "*n 3"], NV),
        (jax.Array, NV),
    ],
    ids=str,
)
def test_a_wrong_annotation_is_found(hint, value):
    sizes: Sizes = {"nq": 3, "nv": 2}
    check("right", Float[jax.Array, "nv"], NV, dict(sizes))
    check("right", Shaped[jax.Array, "*n"], NV, dict(sizes))
    with pytest.raises(AssertionError):
        check("wrong", hint, value, dict(sizes))


def test_an_array_without_a_shape_is_found():
    for hint in (jax.Array, tuple[jax.Array, int], jax.Array | None, tuple, dict[str, np.ndarray]):
        assert list(bare(hint))
        assert not is_explicit(hint)
    assert not is_explicit(Any)
    explicit = tuple[jaxsim.Data, Float[jax.Array, "nv"]]
    assert is_explicit(explicit)
    assert not list(bare(explicit))
