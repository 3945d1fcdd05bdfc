"""The number of prisms of a height field under a geom, and the capacity for their contacts."""

import numpy as np

import jaxsim

# cells of .2 x .1
MODEL = """<mujoco>
  <asset><hfield name="field" nrow="11" ncol="11" size="1 .5 .2 .1"/></asset>
  <worldbody>
    <geom type="hfield" hfield="field" margin=".01"/>
    <body pos="0 0 1"><freejoint/><geom size=".04"/></body>
    <body pos="1 0 1"><freejoint/><geom size=".1" margin=".02"/></body>
    <body pos="0 1 1"><freejoint/><geom type="box" size=".3 .3 .1"/></body>
    <body pos="1 1 1"><freejoint/><geom size=".3" contype="0" conaffinity="0"/></body>
  </worldbody>
</mujoco>"""


def test_prisms_under_geoms():
    """Two of each cell that an interval as wide as the bounding sphere may meet, along x and y."""
    m = jaxsim.load_model(MODEL)
    number = np.asarray(m.structure.geom_prismnum)
    # widths .1 and .26; .89 is that of the box; what nothing touches has none
    assert number.tolist() == [0, 2 * 2 * 2, 2 * 3 * 4, 2 * 6 * 10, 0]
    # for each sphere eight, for the box fifty; twice, as the bodies are free
    room = 2 * (8 + 8 + 50)
    assert room <= m.structure.ncontact < room + 8
