"""The names of `dovetail.scipy.special`, for type checkers and at run time."""

from dovetail.scipy.special.exponential_integrals import exp1 as exp1
from dovetail.scipy.special.exponential_integrals import expi as expi
from dovetail.scipy.special.exponential_integrals import expn as expn
from dovetail.scipy.special.faddeeva import dawsn as dawsn
from dovetail.scipy.special.faddeeva import erfcx as erfcx
from dovetail.scipy.special.faddeeva import wofz as wofz
from dovetail.scipy.special.dilogarithm import spence as spence
from dovetail.scipy.special.trigonometric_integrals import fresnel as fresnel
from dovetail.scipy.special.trigonometric_integrals import sici as sici
