"""A physics engine for articulated bodies with contacts, in pure JAX; it reads MuJoCo models."""

from jaxsim.data import Contact as Contact
from jaxsim.data import Data as Data
from jaxsim.errors import ModelError as ModelError
from jaxsim.model import Model as Model
from jaxsim.model import Option as Option
from jaxsim.names import id2name as id2name
from jaxsim.names import name2id as name2id
