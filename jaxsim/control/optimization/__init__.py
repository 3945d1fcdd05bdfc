"""Optimisations as files: a form, what its costs read, a search in batches of turns."""

from jaxsim.control.optimization.read import Optimization as Optimization
from jaxsim.control.optimization.read import read_optimization as read_optimization
from jaxsim.control.optimization.search import Batch as Batch
from jaxsim.control.optimization.search import Found as Found
from jaxsim.control.optimization.search import search as search
