"""The names of `dovetail.scipy.special`, for type checkers and at run time."""

from dovetail.scipy.special.entropies import entr as entr
from dovetail.scipy.special.exponents import logsumexp as logsumexp
from dovetail.scipy.special.exponents import xlog1py as xlog1py
from dovetail.scipy.special.exponents import xlogy as xlogy
from dovetail.scipy.special.gamma_functions import betainc as betainc
from dovetail.scipy.special.gamma_functions import betaln as betaln
from dovetail.scipy.special.gamma_functions import digamma as digamma
from dovetail.scipy.special.gamma_functions import gammainc as gammainc
from dovetail.scipy.special.gamma_functions import gammaincc as gammaincc
from dovetail.scipy.special.gamma_functions import gammaln as gammaln
from dovetail.scipy.special.gamma_functions import multigammaln as multigammaln
from dovetail.scipy.special.normal_distribution import log_ndtr as log_ndtr
from dovetail.scipy.special.normal_distribution import ndtr as ndtr
from dovetail.scipy.special.normal_distribution import ndtri as ndtri
