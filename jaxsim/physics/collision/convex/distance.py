"""The distance of a plane and a convex shape: that of its lowest point."""

from jaxsim.physics.collision.convex.convex import solid_of
from jaxsim.physics.collision.convex.solid import Assets, radius, support
from jaxsim.physics.collision.shape import Placed, Touch


def over_plane(table: Assets, plane: Placed, shape: Placed) -> Touch:
    """The lowest point of a shape over a plane."""
    normal, solid = plane.axis, solid_of(table, shape)
    _, point = support(table, solid, shape.rot.T @ -normal)
    low = shape.pos + shape.rot @ point - normal.scale(radius(solid))
    dist = normal.dot(low - plane.pos)
    return Touch(dist, low - normal.scale(0.5 * dist), normal)
