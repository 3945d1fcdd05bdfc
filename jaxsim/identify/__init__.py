"""System identification: parameters of a model from measured motion (docs/identify.md)."""

from jaxsim.identify.fit import Fit as Fit
from jaxsim.identify.fit import fit as fit
from jaxsim.identify.forms import Form as Form
from jaxsim.identify.forms import linear as linear
from jaxsim.identify.forms import log as log
from jaxsim.identify.forms import pseudo_inertia as pseudo_inertia
from jaxsim.identify.forms import scale as scale
from jaxsim.identify.parameter import Parameter as Parameter
from jaxsim.identify.parameter import Parameters as Parameters
from jaxsim.identify.parameter import parameters as parameters
from jaxsim.identify.report import report as report
from jaxsim.identify.residual import Problem as Problem
from jaxsim.identify.residual import build_residual_fn as build_residual_fn
from jaxsim.identify.search.least_squares import Solution as Solution
from jaxsim.identify.search.least_squares import levenberg_marquardt as levenberg_marquardt
from jaxsim.identify.search.statistics import Uncertainty as Uncertainty
from jaxsim.identify.search.statistics import calculate_intervals as calculate_intervals
from jaxsim.identify.search.statistics import uncertainty as uncertainty
from jaxsim.identify.sequences import Sequence as Sequence
from jaxsim.identify.timeseries import TimeSeries as TimeSeries
from jaxsim.identify.timeseries import read_series as read_series
from jaxsim.identify.validate import CrossValidation as CrossValidation
from jaxsim.identify.validate import Validation as Validation
from jaxsim.identify.validate import cross_validate as cross_validate
from jaxsim.identify.validate import validate as validate
