"""Read, check and write MJCF text as a typed tree of elements."""

from jaxsim.mjcf.element import Element as Element
from jaxsim.mjcf.read import Source as Source
from jaxsim.mjcf.read import file_contents as file_contents
from jaxsim.mjcf.read import find_model as find_model
from jaxsim.mjcf.read import read_file as read_file
from jaxsim.mjcf.read import read_string as read_string
from jaxsim.mjcf.write import to_xml as to_xml
