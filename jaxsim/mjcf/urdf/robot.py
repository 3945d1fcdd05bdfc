"""Convert a URDF file to the element tree of an MJCF model: links become nested bodies.

`<robot>` -> prune -> check against the table -> `<mujoco>`. Conventions are MuJoCo's: a link named
`world` is the world, links without a parent become children of the world without a joint, and the
children of a link are in the order of the joints. Angles are in radians, static bodies are fused
and visual geoms are discarded unless the `<mujoco>` section of the file specifies otherwise.
"""

from __future__ import annotations

from jaxsim.errors import Problems
from jaxsim.mjcf.element import AttrValue, Element
from jaxsim.mjcf.parse import Node
from jaxsim.mjcf.schema import ROOT
from jaxsim.mjcf.urdf.joint import SINGLE_AXIS_TYPES, mimic, read_joints
from jaxsim.mjcf.urdf.link import (
    BODY_ROW,
    LinkContext,
    collect_colors,
    contents,
    pose,
    required_child,
)
from jaxsim.mjcf.urdf.prune import prune
from jaxsim.mjcf.urdf.table import ROBOT, SETTINGS_SECTIONS
from jaxsim.mjcf.validate import check_element

_WORLD = "world"
_NAMED_TAGS = ("link", "joint", "material")

# Compiler settings of URDF: defaults that the file may change, and fixed settings.
_DEFAULTS: dict[str, AttrValue] = {"fusestatic": "true", "discardvisual": "true"}
_FIXED_SETTINGS: dict[str, AttrValue] = {"angle": "radian", "eulerseq": "XYZ"}


def read_robot(root: Node, problems: Problems) -> Element:
    """Read a URDF document.

    Args:
      root: its outermost element, `<robot>`.
      problems: collects the errors.

    Returns:
      A `<mujoco>` element; without the parts that are wrong.
    """
    prune(root)
    _check_names(root, problems)
    _drop_visuals(root)
    robot = check_element(root, ROBOT, problems)
    attrs: dict[str, AttrValue] = {"model": robot.attrs["name"]} if "name" in robot.attrs else {}
    model = Element("mujoco", attrs, _settings(robot, problems), robot.place, ROOT)
    discard = model.children[0].attrs["discardvisual"] == "true"
    shared = LinkContext(problems, collect_colors(robot), discard)
    world = _worldbody(robot, shared)
    assets, equalities = (
        [Element(tag, {}, elements, robot.place, ROOT.children[tag])] if elements else []
        for tag, elements in (("asset", shared.meshes), ("equality", _equalities(robot)))
    )
    model.children += [*assets, world, *equalities]
    return model


def _check_names(root: Node, problems: Problems) -> None:
    """Check that links, joints, and materials without a color have a name, which may be empty."""
    stack = [root]
    while stack:
        node = stack.pop()
        stack.extend(node.children)
        colored = any(child.tag == "color" for child in node.children)
        if node.tag in _NAMED_TAGS and "name" not in node.attrs and not colored:
            problems.add(node.place, f"{node.label} needs the attribute 'name'")


def _drop_visuals(root: Node) -> None:
    """Reduce discarded visuals to their colors, which the collisions then use."""
    compiler = [e for m in root.children if m.tag == "mujoco" for e in m.children]
    given = [e.attrs.get("discardvisual") for e in compiler if e.tag == "compiler"]
    if "false" in given:
        return
    for visual in [e for link in root.children for e in link.children if e.tag == "visual"]:
        visual.attrs.clear()
        visual.children = [child for child in visual.children if child.tag == "material"]


def _settings(robot: Element, problems: Problems) -> list[Element]:
    """Return the sections of the extension element, with the defaults of URDF."""
    extension = robot.find("mujoco")
    given = [] if extension is None else extension.children
    compiler = Element("compiler", {}, [], robot.place, ROOT.children["compiler"])
    for section in given:
        if section.tag == "compiler":
            compiler = section
    for tag in SETTINGS_SECTIONS:
        for repeated in [section for section in given if section.tag == tag][1:]:
            message = f"<mujoco> has more than one <{tag}>; merge them"
            problems.add(repeated.place, message)
    compiler.attrs = {**_DEFAULTS, **compiler.attrs, **_FIXED_SETTINGS}
    return [compiler, *(section for section in given if section.tag != "compiler")]


def _worldbody(robot: Element, shared: LinkContext) -> Element:
    """Return the world: the geoms of link `world` and the trees of bodies.

    A joint whose child is the world only gives it a pose, which MJCF cannot express and which has
    no effect.
    """
    links: dict[str, Element] = {}
    for link in robot.find_all("link"):
        name = str(link.attrs.get("name", ""))
        if name in links:
            message = f"a link of this name exists already (first at {links[name].place})"
            shared.problems.add(link.place, f"{link.label}: {message}; rename one of them")
        links.setdefault(name, link)
    parents = _parents(robot, links, shared.problems)
    _refuse_loops(links, parents, shared.problems)

    bodies = {name: _body(name, link, shared) for name, link in links.items()}
    taken: set[str] = set()
    for child, (parent, joint) in parents.items():
        moving = read_joints(joint, taken)
        if child == _WORLD and moving:
            message = "the world cannot move; make the joint fixed, or rename the link 'world'"
            shared.problems.add(joint.place, f"{joint.label}: {message}")
        bodies[child].attrs |= pose(joint)
        bodies[child].children[:0] = moving
        if child != _WORLD:
            bodies[parent].children.append(bodies[child])

    # Roots become children of the world; a link named `world` is the world wherever it occurs.
    world = Element("worldbody", {}, [], robot.place, ROOT.children["worldbody"])
    for name, body in bodies.items():
        if name == _WORLD:
            world.attrs = {key: value for key, value in body.attrs.items() if key != "name"}
            world.children += body.children
        elif name not in parents:
            world.children.append(body)
    return world


def _body(name: str, link: Element, shared: LinkContext) -> Element:
    attrs: dict[str, AttrValue] = {"name": name} if name else {}
    return Element("body", attrs, contents(link, shared), link.place, BODY_ROW)


def _parents(
    robot: Element, links: dict[str, Element], problems: Problems
) -> dict[str, tuple[str, Element]]:
    """Return the parent and the joint of each moving link, in order of the joints."""
    parents: dict[str, tuple[str, Element]] = {}
    for joint in robot.find_all("joint"):
        ends = {}
        for end in ("parent", "child"):
            element = required_child(joint, end, problems)
            if element is None or "link" not in element.attrs:
                continue
            name = ends[end] = str(element.attrs["link"])
            if name not in links:
                message = f"<{end} link='{name}'> of {joint.label} names no link of this robot"
                problems.add(element.place, message)
        if len(ends) < 2 or not set(ends.values()) <= links.keys():
            continue
        child = ends["child"]
        if child in parents:
            first = parents[child][1]
            message = f"link '{child}' is the child of {first.label} already; it can have one"
            problems.add(joint.place, f"{joint.label}: {message} parent")
            continue
        parents[child] = ends["parent"], joint
    return parents


def _refuse_loops(
    links: dict[str, Element], parents: dict[str, tuple[str, Element]], problems: Problems
) -> None:
    """Report links that no path of joints connects with a root."""
    rooted = {name for name in links if name not in parents}
    for name in list(links):
        path = []
        while name not in rooted and name not in path:
            path.append(name)
            name = parents[name][0]
        if name in rooted:
            rooted.update(path)
            continue
        rooted.update(path)  # reported once
        message = "its joints form a loop; a robot is a tree, close loops with an equality in MJCF"
        problems.add(links[name].place, f"{links[name].label}: {message}")


def _equalities(robot: Element) -> list[Element]:
    all_joints = robot.find_all("joint")
    scalar = {
        str(e.attrs.get("name", "")) for e in all_joints if e.attrs.get("type") in SINGLE_AXIS_TYPES
    }
    found = [mimic(joint, scalar) for joint in all_joints]
    return [equality for equality in found if equality is not None]
