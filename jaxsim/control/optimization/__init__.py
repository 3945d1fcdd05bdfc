"""Optimizations as files: the form, quantities read by costs, and a search in batches of
iterations."""

from jaxsim.control.optimization.read import Optimization as Optimization
from jaxsim.control.optimization.read import read_optimization as read_optimization
from jaxsim.control.optimization.search import Batch as Batch
from jaxsim.control.optimization.search import Found as Found
from jaxsim.control.optimization.search import search as search
