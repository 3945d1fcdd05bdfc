"""Contacts of spheres and capsules among themselves, and of a sphere with a cylinder or a box.

Nearly all of these are contacts of two spheres: a capsule acts as a sphere on its segment, the side
of a cylinder as a sphere on its axis, and the rim of a cylinder as a point. The functions
correspond to `mjc_SphereSphere`, `mjc_SphereCapsule`, `mjc_CapsuleCapsule`, `mjc_SphereCylinder`
and `mjc_SphereBox` in MuJoCo.
"""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.math import Vec, select_where
from jaxsim.math.guard import safe_divide
from jaxsim.physics.collision.primitive.segment import nearest_on_segment, nearest_on_segments
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms, add_slot_axis, touch_if
from jaxsim.transforms.materialize import materialize_result

_PARALLEL_SIN2 = 1e-8  # capsules within 1e-4 rad (this is the squared sine) touch in two points


def spheres(pos1: Vec, radius1: Array, pos2: Vec, radius2: Array, between: Vec) -> ContactPoints:
    """Return the contact of two spheres; `between` is the normal of concentric ones."""
    gap = pos2 - pos1
    normal = gap.normalize(fallback=between)
    dist = gap.norm() - radius1 - radius2
    return ContactPoints(dist, pos1 + normal.scale(radius1 + 0.5 * dist), normal)


def concentric_normal(a: PlacedGeoms, b: PlacedGeoms) -> Vec:
    """Return the normal of geoms with coinciding centers, orthogonal to both z axes."""
    return a.axis.cross(b.axis).normalize()


def sphere_sphere(a: PlacedGeoms, b: PlacedGeoms) -> ContactPoints:
    """Return one contact on the line of the centers."""
    return add_slot_axis(spheres(a.pos, a.size.x, b.pos, b.size.x, concentric_normal(a, b)))


def sphere_capsule(sphere: PlacedGeoms, capsule: PlacedGeoms) -> ContactPoints:
    """Return one contact, with the sphere about the nearest point of the capsule's segment."""
    along = nearest_on_segment(sphere.pos - capsule.pos, capsule.axis, capsule.size.y)
    center = capsule.pos + capsule.axis.scale(along)
    between = concentric_normal(sphere, capsule)
    return add_slot_axis(spheres(sphere.pos, sphere.size.x, center, capsule.size.x, between))


def capsule_capsule(a: PlacedGeoms, b: PlacedGeoms) -> ContactPoints:
    """Return contacts at the nearest points; for parallel axes, at both ends of the overlap."""
    s, t, exists = materialize_result(_nearest_on_axes, a, b)
    a, b, between = add_slot_axis((a, b, materialize_result(concentric_normal, a, b)))
    pos1, pos2 = a.pos + a.axis.scale(s), b.pos + b.axis.scale(t)
    return touch_if(exists, spheres(pos1, a.size.x, pos2, b.size.x, between))


def _nearest_on_axes(a: PlacedGeoms, b: PlacedGeoms) -> tuple[Array, Array, Array]:
    """Return both contacts' parameters on the axes, `[2, n, *W]`, and whether they exist."""
    offset = b.pos - a.pos
    u, v = a.axis, b.axis
    half1, half2 = a.size.y, b.size.y
    # Nearest points of the two axes.
    across = u.cross(v)
    parallel = across.dot(across) <= _PARALLEL_SIN2
    s, t = nearest_on_segments(offset, u, half1, v, half2)

    # Parallel: the overlap, the ends of the second axis clipped to the first.
    cosine = u.dot(v)
    end = jnp.where(cosine > 0, half2, -half2)
    first, last = offset.dot(u) - end * cosine, offset.dot(u) + end * cosine
    low, high = jnp.clip(first, -half1, half1), jnp.clip(last, -half1, half1)

    def nearest_on_second(s, whole, end):
        """Return the point of the second axis nearest to `s`: its end if `s` is unclipped."""
        return jnp.where(s == whole, end, nearest_on_segment(u.scale(s) - offset, v, half2))

    s = jnp.stack([jnp.where(parallel, low, s), high])
    t = jnp.stack(
        [
            jnp.where(parallel, nearest_on_second(low, first, -end), t),
            nearest_on_second(high, last, end),
        ]
    )
    return s, t, jnp.stack([parallel | True, parallel])


def sphere_cylinder(sphere: PlacedGeoms, cylinder: PlacedGeoms) -> ContactPoints:
    """Return one contact, with the round side, a cap or a rim."""
    radius, half = cylinder.size.x, cylinder.size.y
    axis = cylinder.axis
    # Axial and radial coordinates of the sphere's center.
    offset = sphere.pos - cylinder.pos
    along = offset.dot(axis)
    across = offset - axis.scale(along)
    distance = across.norm()
    up = jnp.where(along > 0, 1.0, -1.0)

    # From inside, the nearest exit is the nearer of cap and side.
    beside, above = jnp.abs(along) < half, distance < radius
    cap = above & (~beside | (half - jnp.abs(along) < radius - distance))
    side = beside & ~cap

    # The side acts as a sphere about a point of the axis, the rim as a point.
    rim = axis.scale(up * half) + across.scale(safe_divide(radius, distance))
    center = cylinder.pos + select_where(side, axis.scale(along), rim)
    between = concentric_normal(sphere, cylinder)
    round_ = spheres(sphere.pos, sphere.size.x, center, jnp.where(side, radius, 0.0), between)

    down = axis.scale(-up)
    dist = jnp.abs(along) - half - sphere.size.x
    flat = ContactPoints(dist, sphere.pos + down.scale(sphere.size.x + 0.5 * dist), down)
    return add_slot_axis(select_where(cap, flat, round_))


def sphere_box(sphere: PlacedGeoms, box: PlacedGeoms) -> ContactPoints:
    """Return one contact with the nearest point of the box, or from inside with a face."""
    center = box.rot.T @ (sphere.pos - box.pos)
    return add_slot_axis(touch_in_world(sphere_at_box(center, sphere.size.x, box.size), box))


def sphere_at_box(center: Vec, radius: Array, size: Vec) -> ContactPoints:
    """Return the contact of a sphere with a box in the frame of the box."""
    # Outside: vector to the nearest point of the box.
    pairs = tuple(zip(center.parts, size.parts, strict=True))
    gap = Vec(*(jnp.clip(c, -s, s) - c for c, s in pairs))
    outer = gap.norm()
    out = outer > 0

    # Inside: depth under the nearest face (the first axis among equal ones) and the inward
    # direction.
    x, y, z = (s - jnp.abs(c) for c, s in pairs)
    by_x = (x <= y) & (x <= z)
    by_y = ~by_x & (y <= z)
    inner = jnp.where(by_x, x, jnp.where(by_y, y, z))
    inwards = center.map(lambda c: jnp.where(c > 0, -1.0, 1.0))
    push = Vec(
        jnp.where(by_x, inwards.x, 0.0),
        jnp.where(by_y, inwards.y, 0.0),
        jnp.where(by_x | by_y, 0.0, inwards.z),
    )

    normal = select_where(out, gap.scale(safe_divide(1.0, outer)), push)
    dist = jnp.where(out, outer, -inner) - radius
    return ContactPoints(dist, center + normal.scale(radius + 0.5 * dist), normal)


def touch_in_world(touch: ContactPoints, frame: PlacedGeoms) -> ContactPoints:
    """Transform a contact from the frame of a geom to the world."""
    return touch._replace(pos=frame.pos + frame.rot @ touch.pos, normal=frame.rot @ touch.normal)
