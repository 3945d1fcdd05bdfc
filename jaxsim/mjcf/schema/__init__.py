"""The schema of MJCF: one table of all elements and attributes, with all their properties.

Reading, checking, defaults, writing and the reference page derive from this table alone.

    ROOT.child("worldbody").child("body").child("geom").attribute("size").default
"""

from jaxsim.mjcf.schema.root import INCLUDE as INCLUDE
from jaxsim.mjcf.schema.root import ROOT as ROOT
from jaxsim.mjcf.schema.root import walk as walk
from jaxsim.mjcf.schema.rows import Attr as Attr
from jaxsim.mjcf.schema.rows import Row as Row
from jaxsim.mjcf.schema.rows import Rule as Rule
