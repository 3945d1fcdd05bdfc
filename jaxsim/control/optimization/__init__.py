"""Optimizations as files: the form, quantities read by costs, and a search in batches of
iterations."""

from jaxsim.control.optimization.batched_search import Batch as Batch
from jaxsim.control.optimization.batched_search import Found as Found
from jaxsim.control.optimization.batched_search import search as search
from jaxsim.control.optimization.read import Optimization as Optimization
from jaxsim.control.optimization.read import read_optimization as read_optimization
