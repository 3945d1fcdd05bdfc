"""Identifications as files: what is searched, what was measured, how it is fitted."""

from jaxsim.identify.study.form import Study as Study
from jaxsim.identify.study.read import Reading as Reading
from jaxsim.identify.study.read import read_study as read_study
