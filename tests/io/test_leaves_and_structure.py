"""No table of the structure is a silent copy of numbers that are leaves.

A model of MuJoCo with one field changed is put into the engine: tables that then differ follow from
that field, and would be stale after any change of the leaf. Each such table is known here, with
what guards it.
"""

import warnings

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from test_model_leaves import MODELS

import jaxsim
from jaxsim.model.model import Model

FIELDS = [n for n, f in Model.fields.items() if not f.static and f.nested is None]
GUARDED = {
    # which statistics were given is not in a compiled model: it follows from their numbers
    "stat_given": "is a rule of put_model alone",
    # capacities: what exceeds them is counted in d.warning
    **dict.fromkeys(("kind_near", "nstart", "ncontact", "geom_prismnum"), "overflow is counted"),
    # support maps: where vertices differ from hull_vert the answer is found by a walk
    **dict.fromkeys(("nhullvert", "nhullmost", "nhullpart", "nhullfan", "nhullpoint"), "hull_vert"),
    **dict.fromkeys(("hull_cell", "hull_part", "hull_pole", "hull_slice"), "hull_vert"),
    **dict.fromkeys(("hull_vertid", "hull_vert"), "hull_vert"),
    # how many numbers of flex_stiffness are modes stands among these
    "eq_modenum": "is a count in packed storage",
}
WRAPPED = """<mujoco><worldbody>
  <site name="side" pos="0 0 .5"/><site name="p" pos="0 1 1"/><site name="q" pos="0 0 2"/>
  <geom name="cyl" type="cylinder" size=".1 .3" pos="0 0 .8"/>
  <body pos="0 0 .3"><freejoint/><geom type="mesh" mesh="a"/><site name="r"/></body></worldbody>
  <asset><mesh name="a" builtin="sphere" params="1" scale=".1 .1 .1"/></asset>
<tendon><spatial><site site="p"/><geom geom="cyl" sidesite="side"/><site site="r"/></spatial>
</tendon></mujoco>"""
TEXTS = {"wrapped": WRAPPED, **MODELS}


def same(a, b) -> bool:
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b


def refused(m: Model, field: str, leaf) -> bool:
    try:
        m.replace(**{field: leaf})
    except ValueError as error:
        return str(error).startswith(field)
    return False


@pytest.mark.short("sums-wrapped")
@pytest.mark.parametrize(
    "name", ["wrapped", *(pytest.param(n, marks=pytest.mark.slow) for n in MODELS)]
)
@pytest.mark.parametrize("change", ["factors", "sums"])
def test_tables_that_follow_from_leaves_are_guarded(name, change):
    m = jaxsim.put_model(mujoco.MjModel.from_xml_string(TEXTS[name]))
    rng = np.random.default_rng(0)
    for field in FIELDS:
        mj = mujoco.MjModel.from_xml_string(TEXTS[name])
        values = getattr(mj, field, None)
        if values is None or not values.size or (field, change) == ("eq_data", "sums"):
            continue
        values[...] = (
            values * np.exp(0.3 * rng.standard_normal(values.shape))
            if change == "factors"
            else values + 1
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what cannot be simulated any more
            put = jaxsim.put_model(mj).structure
        stale = {t for t in m.structure if not same(getattr(put, t), getattr(m.structure, t))}
        if stale <= GUARDED.keys():
            continue
        leaf = jnp.asarray(np.reshape(values, np.shape(getattr(m, field))), m.qpos0.dtype)
        assert refused(m, field, leaf), f"{field} was taken, though {stale} follow from it"


def test_a_side_site_is_no_number_that_may_change():
    m = jaxsim.load_model(WRAPPED)
    m.replace(wrap_prm=m.wrap_prm[None])
    with pytest.raises(ValueError, match=r"wrap_prm: item 1 is the side site"):
        m.replace(wrap_prm=m.wrap_prm.at[1].set(2.0))
