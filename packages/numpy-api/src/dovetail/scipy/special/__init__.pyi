"""The names of `dovetail.scipy.special`, for type checkers and at run time."""

from dovetail.scipy.special.bessel_functions import bessel_jn as bessel_jn
from dovetail.scipy.special.bessel_functions import i0 as i0
from dovetail.scipy.special.bessel_functions import i0e as i0e
from dovetail.scipy.special.bessel_functions import i1 as i1
from dovetail.scipy.special.bessel_functions import i1e as i1e
from dovetail.scipy.special.dilogarithm import spence as spence
from dovetail.scipy.special.exponential_integrals import exp1 as exp1
from dovetail.scipy.special.exponential_integrals import expi as expi
from dovetail.scipy.special.exponential_integrals import expn as expn
from dovetail.scipy.special.faddeeva import dawsn as dawsn
from dovetail.scipy.special.faddeeva import erfcx as erfcx
from dovetail.scipy.special.faddeeva import wofz as wofz
from dovetail.scipy.special.hypergeometric import hyp1f1 as hyp1f1
from dovetail.scipy.special.hypergeometric import hyp2f1 as hyp2f1
from dovetail.scipy.special.owens_function import owens_t as owens_t
from dovetail.scipy.special.spherical_harmonics import sph_harm_y as sph_harm_y
from dovetail.scipy.special.trigonometric_integrals import fresnel as fresnel
from dovetail.scipy.special.trigonometric_integrals import sici as sici
from dovetail.scipy.special.zeta_function import zeta as zeta
