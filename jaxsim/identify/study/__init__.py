"""Identification files: parameters, recordings, and settings of the fit."""

from jaxsim.identify.study.form import Study as Study
from jaxsim.identify.study.read import Reading as Reading
from jaxsim.identify.study.read import read_study as read_study
