"""The names of `dovetail.scipy.special`, for type checkers and at run time."""

from dovetail.scipy.special.entropies import entr as entr
from dovetail.scipy.special.entropies import kl_div as kl_div
from dovetail.scipy.special.entropies import rel_entr as rel_entr
from dovetail.scipy.special.error_functions import erf as erf
from dovetail.scipy.special.error_functions import erfc as erfc
from dovetail.scipy.special.error_functions import erfcinv as erfcinv
from dovetail.scipy.special.error_functions import erfinv as erfinv
from dovetail.scipy.special.exponents import boxcox as boxcox
from dovetail.scipy.special.exponents import boxcox1p as boxcox1p
from dovetail.scipy.special.exponents import expit as expit
from dovetail.scipy.special.exponents import log_softmax as log_softmax
from dovetail.scipy.special.exponents import logit as logit
from dovetail.scipy.special.exponents import logsumexp as logsumexp
from dovetail.scipy.special.exponents import softmax as softmax
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
