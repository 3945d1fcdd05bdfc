"""Room for contacts and near pairs: from the call, from custom numbers of the file, or chosen."""

import mujoco
import pytest

import jaxsim
from jaxsim.io.bridge import put_model
from jaxsim.physics.collision.candidates.plan import layout

BALLS = "".join(
    f'<body pos="{0.3 * i} 0 0"><freejoint/><geom size=".1" condim="{dim}"/>'
    f'<geom type="ellipsoid" size=".1 .1 .2" pos="0 0 .3" condim="{dim}"/></body>'
    for i, dim in enumerate((1, 3, 3, 3, 1, 3))
)


def text(**numbers: float) -> str:
    custom = "".join(f'<numeric name="{name}" data="{n}"/>' for name, n in numbers.items())
    return f"<mujoco><custom>{custom}</custom><worldbody>{BALLS}</worldbody></mujoco>"


def budgets(m) -> list[int]:
    return [group.budget for group in layout(m).groups]


@pytest.mark.parametrize(
    "load",
    [jaxsim.load_model, lambda xml, **room: put_model(mujoco.MjModel.from_xml_string(xml), **room)],
)
def test_custom_numbers_of_the_file(load):
    """Contacts of each condim, pairs of each two types; what the call says comes first."""
    chosen = load(text())
    asked = load(text(max_contact_points=3, max_geom_pairs=2))
    assert asked.ncontact == 6 < chosen.ncontact
    kinds = [len(group.kinds) for group in layout(asked).groups]
    assert max(kinds) == 2  # a sphere or an ellipsoid, with an ellipsoid
    assert budgets(asked) == [4, 4]
    assert all(b > 4 for b in budgets(chosen))
    called = load(text(max_contact_points=3, max_geom_pairs=2), contacts=5, pairs=1)
    assert called.ncontact == 5
    assert budgets(called) == [1, 1]


@pytest.mark.parametrize("none", [0, -1, "nan"])
def test_numbers_that_ask_for_nothing(none):
    """MJX takes -1 for no bound."""
    chosen, asked = (
        jaxsim.load_model(text(**given)) for given in ({}, {"max_contact_points": none})
    )
    assert asked.ncontact == chosen.ncontact
    assert budgets(asked) == budgets(chosen)
