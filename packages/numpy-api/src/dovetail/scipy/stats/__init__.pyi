"""The names of `dovetail.scipy.stats`, for type checkers and at run time."""

from dovetail.scipy.stats import cauchy as cauchy
from dovetail.scipy.stats import expon as expon
from dovetail.scipy.stats import gumbel_l as gumbel_l
from dovetail.scipy.stats import gumbel_r as gumbel_r
from dovetail.scipy.stats import laplace as laplace
from dovetail.scipy.stats import logistic as logistic
from dovetail.scipy.stats import pareto as pareto
from dovetail.scipy.stats import uniform as uniform
from dovetail.scipy.stats import wrapcauchy as wrapcauchy
