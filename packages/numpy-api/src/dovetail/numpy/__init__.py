"""The API of NumPy, for arrays that can be transformed and compiled.

Every name is loaded when it is first used; importing this package loads nothing else.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # the name is enough for type checkers; importing typing costs 5 ms
if TYPE_CHECKING:
    from dovetail.core.runtime.array import Array as ndarray
    from dovetail.numpy import linalg as linalg
    from dovetail.numpy.arithmetic import abs as abs
    from dovetail.numpy.arithmetic import abs as absolute
    from dovetail.numpy.arithmetic import add as add
    from dovetail.numpy.arithmetic import cbrt as cbrt
    from dovetail.numpy.arithmetic import divmod as divmod
    from dovetail.numpy.arithmetic import fabs as fabs
    from dovetail.numpy.arithmetic import float_power as float_power
    from dovetail.numpy.arithmetic import floor_divide as floor_divide
    from dovetail.numpy.arithmetic import fmax as fmax
    from dovetail.numpy.arithmetic import fmin as fmin
    from dovetail.numpy.arithmetic import fmod as fmod
    from dovetail.numpy.arithmetic import heaviside as heaviside
    from dovetail.numpy.arithmetic import hypot as hypot
    from dovetail.numpy.arithmetic import maximum as maximum
    from dovetail.numpy.arithmetic import minimum as minimum
    from dovetail.numpy.arithmetic import multiply as multiply
    from dovetail.numpy.arithmetic import negative as negative
    from dovetail.numpy.arithmetic import positive as positive
    from dovetail.numpy.arithmetic import power as pow
    from dovetail.numpy.arithmetic import power as power
    from dovetail.numpy.arithmetic import reciprocal as reciprocal
    from dovetail.numpy.arithmetic import remainder as mod
    from dovetail.numpy.arithmetic import remainder as remainder
    from dovetail.numpy.arithmetic import sign as sign
    from dovetail.numpy.arithmetic import sqrt as sqrt
    from dovetail.numpy.arithmetic import square as square
    from dovetail.numpy.arithmetic import subtract as subtract
    from dovetail.numpy.arithmetic import true_divide as divide
    from dovetail.numpy.arithmetic import true_divide as true_divide
    from dovetail.numpy.bits import bitwise_and as bitwise_and
    from dovetail.numpy.bits import bitwise_count as bitwise_count
    from dovetail.numpy.bits import bitwise_not as bitwise_invert
    from dovetail.numpy.bits import bitwise_not as bitwise_not
    from dovetail.numpy.bits import bitwise_not as invert
    from dovetail.numpy.bits import bitwise_or as bitwise_or
    from dovetail.numpy.bits import bitwise_xor as bitwise_xor
    from dovetail.numpy.bits import left_shift as bitwise_left_shift
    from dovetail.numpy.bits import left_shift as left_shift
    from dovetail.numpy.bits import right_shift as bitwise_right_shift
    from dovetail.numpy.bits import right_shift as right_shift
    from dovetail.numpy.complex_numbers import angle as angle
    from dovetail.numpy.complex_numbers import conj as conj
    from dovetail.numpy.complex_numbers import conj as conjugate
    from dovetail.numpy.complex_numbers import imag as imag
    from dovetail.numpy.complex_numbers import iscomplex as iscomplex
    from dovetail.numpy.complex_numbers import iscomplexobj as iscomplexobj
    from dovetail.numpy.complex_numbers import isreal as isreal
    from dovetail.numpy.complex_numbers import isrealobj as isrealobj
    from dovetail.numpy.complex_numbers import real as real
    from dovetail.numpy.constants import e as e
    from dovetail.numpy.constants import euler_gamma as euler_gamma
    from dovetail.numpy.constants import inf as inf
    from dovetail.numpy.constants import nan as nan
    from dovetail.numpy.constants import newaxis as newaxis
    from dovetail.numpy.constants import pi as pi
    from dovetail.numpy.contraction import cross as cross
    from dovetail.numpy.contraction import dot as dot
    from dovetail.numpy.contraction import inner as inner
    from dovetail.numpy.contraction import kron as kron
    from dovetail.numpy.contraction import matmul as matmul
    from dovetail.numpy.contraction import matvec as matvec
    from dovetail.numpy.contraction import outer as outer
    from dovetail.numpy.contraction import tensordot as tensordot
    from dovetail.numpy.contraction import vdot as vdot
    from dovetail.numpy.contraction import vecdot as vecdot
    from dovetail.numpy.contraction import vecmat as vecmat
    from dovetail.numpy.creation import array as array
    from dovetail.numpy.creation import asarray as asarray
    from dovetail.numpy.creation import astype as astype
    from dovetail.numpy.creation import copy as copy
    from dovetail.numpy.creation import empty as empty
    from dovetail.numpy.creation import empty_like as empty_like
    from dovetail.numpy.creation import frombuffer as frombuffer
    from dovetail.numpy.creation import fromfunction as fromfunction
    from dovetail.numpy.creation import full as full
    from dovetail.numpy.creation import full_like as full_like
    from dovetail.numpy.creation import ones as ones
    from dovetail.numpy.creation import ones_like as ones_like
    from dovetail.numpy.creation import zeros as zeros
    from dovetail.numpy.creation import zeros_like as zeros_like
    from dovetail.numpy.cumulative import cumprod as cumprod
    from dovetail.numpy.cumulative import cumsum as cumsum
    from dovetail.numpy.cumulative import cumulative_prod as cumulative_prod
    from dovetail.numpy.cumulative import cumulative_sum as cumulative_sum
    from dovetail.numpy.cumulative import diff as diff
    from dovetail.numpy.cumulative import nancumprod as nancumprod
    from dovetail.numpy.cumulative import nancumsum as nancumsum
    from dovetail.numpy.cumulative import trapezoid as trapezoid
    from dovetail.numpy.einstein import einsum as einsum
    from dovetail.numpy.einstein import einsum_path as einsum_path
    from dovetail.numpy.exponentials import exp as exp
    from dovetail.numpy.exponentials import exp2 as exp2
    from dovetail.numpy.exponentials import expm1 as expm1
    from dovetail.numpy.exponentials import log as log
    from dovetail.numpy.exponentials import log1p as log1p
    from dovetail.numpy.exponentials import log2 as log2
    from dovetail.numpy.exponentials import log10 as log10
    from dovetail.numpy.exponentials import logaddexp as logaddexp
    from dovetail.numpy.exponentials import logaddexp2 as logaddexp2
    from dovetail.numpy.exponentials import sinc as sinc
    from dovetail.numpy.float_parts import copysign as copysign
    from dovetail.numpy.float_parts import frexp as frexp
    from dovetail.numpy.float_parts import ldexp as ldexp
    from dovetail.numpy.float_parts import nextafter as nextafter
    from dovetail.numpy.float_parts import signbit as signbit
    from dovetail.numpy.float_parts import spacing as spacing
    from dovetail.numpy.gathering import compress as compress
    from dovetail.numpy.gathering import extract as extract
    from dovetail.numpy.gathering import take as take
    from dovetail.numpy.gathering import take_along_axis as take_along_axis
    from dovetail.numpy.joining import append as append
    from dovetail.numpy.joining import array_split as array_split
    from dovetail.numpy.joining import column_stack as column_stack
    from dovetail.numpy.joining import concat as concat
    from dovetail.numpy.joining import concatenate as concatenate
    from dovetail.numpy.joining import dsplit as dsplit
    from dovetail.numpy.joining import dstack as dstack
    from dovetail.numpy.joining import hsplit as hsplit
    from dovetail.numpy.joining import hstack as hstack
    from dovetail.numpy.joining import pad as pad
    from dovetail.numpy.joining import repeat as repeat
    from dovetail.numpy.joining import split as split
    from dovetail.numpy.joining import stack as stack
    from dovetail.numpy.joining import tile as tile
    from dovetail.numpy.joining import unstack as unstack
    from dovetail.numpy.joining import vsplit as vsplit
    from dovetail.numpy.joining import vstack as vstack
    from dovetail.numpy.logic import allclose as allclose
    from dovetail.numpy.logic import array_equal as array_equal
    from dovetail.numpy.logic import array_equiv as array_equiv
    from dovetail.numpy.logic import equal as equal
    from dovetail.numpy.logic import greater as greater
    from dovetail.numpy.logic import greater_equal as greater_equal
    from dovetail.numpy.logic import isclose as isclose
    from dovetail.numpy.logic import isfinite as isfinite
    from dovetail.numpy.logic import isinf as isinf
    from dovetail.numpy.logic import isnan as isnan
    from dovetail.numpy.logic import isneginf as isneginf
    from dovetail.numpy.logic import isposinf as isposinf
    from dovetail.numpy.logic import less as less
    from dovetail.numpy.logic import less_equal as less_equal
    from dovetail.numpy.logic import logical_and as logical_and
    from dovetail.numpy.logic import logical_not as logical_not
    from dovetail.numpy.logic import logical_or as logical_or
    from dovetail.numpy.logic import logical_xor as logical_xor
    from dovetail.numpy.logic import not_equal as not_equal
    from dovetail.numpy.lookups import bincount as bincount
    from dovetail.numpy.lookups import digitize as digitize
    from dovetail.numpy.lookups import interp as interp
    from dovetail.numpy.lookups import isin as isin
    from dovetail.numpy.lookups import polyval as polyval
    from dovetail.numpy.lookups import ravel_multi_index as ravel_multi_index
    from dovetail.numpy.lookups import unravel_index as unravel_index
    from dovetail.numpy.matrices import diag as diag
    from dovetail.numpy.matrices import diag_indices as diag_indices
    from dovetail.numpy.matrices import diag_indices_from as diag_indices_from
    from dovetail.numpy.matrices import diagflat as diagflat
    from dovetail.numpy.matrices import diagonal as diagonal
    from dovetail.numpy.matrices import eye as eye
    from dovetail.numpy.matrices import identity as identity
    from dovetail.numpy.matrices import trace as trace
    from dovetail.numpy.matrices import tri as tri
    from dovetail.numpy.matrices import tril as tril
    from dovetail.numpy.matrices import tril_indices as tril_indices
    from dovetail.numpy.matrices import tril_indices_from as tril_indices_from
    from dovetail.numpy.matrices import triu as triu
    from dovetail.numpy.matrices import triu_indices as triu_indices
    from dovetail.numpy.matrices import triu_indices_from as triu_indices_from
    from dovetail.numpy.matrices import vander as vander
    from dovetail.numpy.nan_reductions import nanmax as nanmax
    from dovetail.numpy.nan_reductions import nanmean as nanmean
    from dovetail.numpy.nan_reductions import nanmin as nanmin
    from dovetail.numpy.nan_reductions import nanprod as nanprod
    from dovetail.numpy.nan_reductions import nanstd as nanstd
    from dovetail.numpy.nan_reductions import nansum as nansum
    from dovetail.numpy.nan_reductions import nanvar as nanvar
    from dovetail.numpy.quantiles import median as median
    from dovetail.numpy.quantiles import percentile as percentile
    from dovetail.numpy.quantiles import quantile as quantile
    from dovetail.numpy.ranges import arange as arange
    from dovetail.numpy.ranges import geomspace as geomspace
    from dovetail.numpy.ranges import indices as indices
    from dovetail.numpy.ranges import linspace as linspace
    from dovetail.numpy.ranges import logspace as logspace
    from dovetail.numpy.ranges import meshgrid as meshgrid
    from dovetail.numpy.reductions import all as all
    from dovetail.numpy.reductions import any as any
    from dovetail.numpy.reductions import average as average
    from dovetail.numpy.reductions import count_nonzero as count_nonzero
    from dovetail.numpy.reductions import max as amax
    from dovetail.numpy.reductions import max as max
    from dovetail.numpy.reductions import mean as mean
    from dovetail.numpy.reductions import min as amin
    from dovetail.numpy.reductions import min as min
    from dovetail.numpy.reductions import prod as prod
    from dovetail.numpy.reductions import ptp as ptp
    from dovetail.numpy.reductions import std as std
    from dovetail.numpy.reductions import sum as sum
    from dovetail.numpy.reductions import var as var
    from dovetail.numpy.rounding import ceil as ceil
    from dovetail.numpy.rounding import floor as floor
    from dovetail.numpy.rounding import modf as modf
    from dovetail.numpy.rounding import rint as rint
    from dovetail.numpy.rounding import round as around
    from dovetail.numpy.rounding import round as round
    from dovetail.numpy.rounding import trunc as fix
    from dovetail.numpy.rounding import trunc as trunc
    from dovetail.numpy.scalar_types import bfloat16 as bfloat16
    from dovetail.numpy.scalar_types import bool_ as bool
    from dovetail.numpy.scalar_types import bool_ as bool_
    from dovetail.numpy.scalar_types import can_cast as can_cast
    from dovetail.numpy.scalar_types import cdouble as cdouble
    from dovetail.numpy.scalar_types import character as character
    from dovetail.numpy.scalar_types import complex64 as complex64
    from dovetail.numpy.scalar_types import complex128 as complex128
    from dovetail.numpy.scalar_types import complex_ as complex_
    from dovetail.numpy.scalar_types import complexfloating as complexfloating
    from dovetail.numpy.scalar_types import csingle as csingle
    from dovetail.numpy.scalar_types import double as double
    from dovetail.numpy.scalar_types import dtype as dtype
    from dovetail.numpy.scalar_types import finfo as finfo
    from dovetail.numpy.scalar_types import flexible as flexible
    from dovetail.numpy.scalar_types import float4_e2m1fn as float4_e2m1fn
    from dovetail.numpy.scalar_types import float8_e3m4 as float8_e3m4
    from dovetail.numpy.scalar_types import float8_e4m3 as float8_e4m3
    from dovetail.numpy.scalar_types import float8_e4m3b11fnuz as float8_e4m3b11fnuz
    from dovetail.numpy.scalar_types import float8_e4m3fn as float8_e4m3fn
    from dovetail.numpy.scalar_types import float8_e4m3fnuz as float8_e4m3fnuz
    from dovetail.numpy.scalar_types import float8_e5m2 as float8_e5m2
    from dovetail.numpy.scalar_types import float8_e5m2fnuz as float8_e5m2fnuz
    from dovetail.numpy.scalar_types import float8_e8m0fnu as float8_e8m0fnu
    from dovetail.numpy.scalar_types import float16 as float16
    from dovetail.numpy.scalar_types import float32 as float32
    from dovetail.numpy.scalar_types import float64 as float64
    from dovetail.numpy.scalar_types import float_ as float_
    from dovetail.numpy.scalar_types import floating as floating
    from dovetail.numpy.scalar_types import generic as generic
    from dovetail.numpy.scalar_types import iinfo as iinfo
    from dovetail.numpy.scalar_types import inexact as inexact
    from dovetail.numpy.scalar_types import int2 as int2
    from dovetail.numpy.scalar_types import int4 as int4
    from dovetail.numpy.scalar_types import int8 as int8
    from dovetail.numpy.scalar_types import int16 as int16
    from dovetail.numpy.scalar_types import int32 as int32
    from dovetail.numpy.scalar_types import int64 as int64
    from dovetail.numpy.scalar_types import int_ as int_
    from dovetail.numpy.scalar_types import integer as integer
    from dovetail.numpy.scalar_types import isdtype as isdtype
    from dovetail.numpy.scalar_types import issubdtype as issubdtype
    from dovetail.numpy.scalar_types import number as number
    from dovetail.numpy.scalar_types import object_ as object_
    from dovetail.numpy.scalar_types import promote_types as promote_types
    from dovetail.numpy.scalar_types import result_type as result_type
    from dovetail.numpy.scalar_types import signedinteger as signedinteger
    from dovetail.numpy.scalar_types import single as single
    from dovetail.numpy.scalar_types import uint as uint
    from dovetail.numpy.scalar_types import uint2 as uint2
    from dovetail.numpy.scalar_types import uint4 as uint4
    from dovetail.numpy.scalar_types import uint8 as uint8
    from dovetail.numpy.scalar_types import uint16 as uint16
    from dovetail.numpy.scalar_types import uint32 as uint32
    from dovetail.numpy.scalar_types import uint64 as uint64
    from dovetail.numpy.scalar_types import unsignedinteger as unsignedinteger
    from dovetail.numpy.searching import argmax as argmax
    from dovetail.numpy.searching import argmin as argmin
    from dovetail.numpy.searching import argwhere as argwhere
    from dovetail.numpy.searching import flatnonzero as flatnonzero
    from dovetail.numpy.searching import nanargmax as nanargmax
    from dovetail.numpy.searching import nanargmin as nanargmin
    from dovetail.numpy.searching import nonzero as nonzero
    from dovetail.numpy.searching import searchsorted as searchsorted
    from dovetail.numpy.selection import clip as clip
    from dovetail.numpy.selection import nan_to_num as nan_to_num
    from dovetail.numpy.selection import select as select
    from dovetail.numpy.selection import where as where
    from dovetail.numpy.shapes import atleast_1d as atleast_1d
    from dovetail.numpy.shapes import atleast_2d as atleast_2d
    from dovetail.numpy.shapes import atleast_3d as atleast_3d
    from dovetail.numpy.shapes import broadcast_arrays as broadcast_arrays
    from dovetail.numpy.shapes import broadcast_shapes as broadcast_shapes
    from dovetail.numpy.shapes import broadcast_to as broadcast_to
    from dovetail.numpy.shapes import expand_dims as expand_dims
    from dovetail.numpy.shapes import flip as flip
    from dovetail.numpy.shapes import fliplr as fliplr
    from dovetail.numpy.shapes import flipud as flipud
    from dovetail.numpy.shapes import matrix_transpose as matrix_transpose
    from dovetail.numpy.shapes import moveaxis as moveaxis
    from dovetail.numpy.shapes import ndim as ndim
    from dovetail.numpy.shapes import permute_dims as permute_dims
    from dovetail.numpy.shapes import ravel as ravel
    from dovetail.numpy.shapes import reshape as reshape
    from dovetail.numpy.shapes import roll as roll
    from dovetail.numpy.shapes import rollaxis as rollaxis
    from dovetail.numpy.shapes import rot90 as rot90
    from dovetail.numpy.shapes import shape as shape
    from dovetail.numpy.shapes import size as size
    from dovetail.numpy.shapes import squeeze as squeeze
    from dovetail.numpy.shapes import swapaxes as swapaxes
    from dovetail.numpy.shapes import transpose as transpose
    from dovetail.numpy.sorting import argsort as argsort
    from dovetail.numpy.sorting import lexsort as lexsort
    from dovetail.numpy.sorting import sort as sort
    from dovetail.numpy.trigonometry import arccos as acos
    from dovetail.numpy.trigonometry import arccos as arccos
    from dovetail.numpy.trigonometry import arccosh as acosh
    from dovetail.numpy.trigonometry import arccosh as arccosh
    from dovetail.numpy.trigonometry import arcsin as arcsin
    from dovetail.numpy.trigonometry import arcsin as asin
    from dovetail.numpy.trigonometry import arcsinh as arcsinh
    from dovetail.numpy.trigonometry import arcsinh as asinh
    from dovetail.numpy.trigonometry import arctan as arctan
    from dovetail.numpy.trigonometry import arctan as atan
    from dovetail.numpy.trigonometry import arctan2 as arctan2
    from dovetail.numpy.trigonometry import arctan2 as atan2
    from dovetail.numpy.trigonometry import arctanh as arctanh
    from dovetail.numpy.trigonometry import arctanh as atanh
    from dovetail.numpy.trigonometry import cos as cos
    from dovetail.numpy.trigonometry import cosh as cosh
    from dovetail.numpy.trigonometry import deg2rad as deg2rad
    from dovetail.numpy.trigonometry import deg2rad as radians
    from dovetail.numpy.trigonometry import rad2deg as degrees
    from dovetail.numpy.trigonometry import rad2deg as rad2deg
    from dovetail.numpy.trigonometry import sin as sin
    from dovetail.numpy.trigonometry import sinh as sinh
    from dovetail.numpy.trigonometry import tan as tan
    from dovetail.numpy.trigonometry import tanh as tanh

_TOPICS = {
    "arithmetic": (
        "abs add cbrt divmod fabs float_power floor_divide fmax fmin fmod heaviside hypot maximum "
        "minimum multiply negative positive power reciprocal remainder sign sqrt square subtract "
        "true_divide"
    ),
    "bits": "bitwise_and bitwise_count bitwise_not bitwise_or bitwise_xor left_shift right_shift",
    "complex_numbers": "angle conj imag iscomplex iscomplexobj isreal isrealobj real",
    "constants": "e euler_gamma inf nan newaxis pi",
    "contraction": "cross dot inner kron matmul matvec outer tensordot vdot vecdot vecmat",
    "creation": (
        "array asarray astype copy empty empty_like frombuffer fromfunction full full_like ones "
        "ones_like zeros zeros_like"
    ),
    "cumulative": (
        "cumprod cumsum cumulative_prod cumulative_sum diff nancumprod nancumsum trapezoid"
    ),
    "einstein": "einsum einsum_path",
    "exponentials": "exp exp2 expm1 log log10 log1p log2 logaddexp logaddexp2 sinc",
    "float_parts": "copysign frexp ldexp nextafter signbit spacing",
    "gathering": "compress extract take take_along_axis",
    "joining": (
        "append array_split column_stack concat concatenate dsplit dstack hsplit hstack pad "
        "repeat split stack tile unstack vsplit vstack"
    ),
    "logic": (
        "allclose array_equal array_equiv equal greater greater_equal isclose isfinite isinf "
        "isnan isneginf isposinf less less_equal logical_and logical_not logical_or logical_xor "
        "not_equal"
    ),
    "lookups": "bincount digitize interp isin polyval ravel_multi_index unravel_index",
    "matrices": (
        "diag diag_indices diag_indices_from diagflat diagonal eye identity trace tri tril "
        "tril_indices tril_indices_from triu triu_indices triu_indices_from vander"
    ),
    "nan_reductions": "nanmax nanmean nanmin nanprod nanstd nansum nanvar",
    "quantiles": "median percentile quantile",
    "ranges": "arange geomspace indices linspace logspace meshgrid",
    "reductions": "all any average count_nonzero max mean min prod ptp std sum var",
    "rounding": "ceil floor modf rint round trunc",
    "scalar_types": (
        "bfloat16 bool_ can_cast cdouble character complex128 complex64 complex_ complexfloating "
        "csingle double dtype finfo flexible float16 float32 float4_e2m1fn float64 float8_e3m4 "
        "float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
        "float8_e8m0fnu float_ floating generic iinfo inexact int16 int2 int32 int4 int64 int8 "
        "int_ integer isdtype issubdtype number object_ promote_types result_type signedinteger "
        "single uint uint16 uint2 uint32 uint4 uint64 uint8 unsignedinteger"
    ),
    "searching": "argmax argmin argwhere flatnonzero nanargmax nanargmin nonzero searchsorted",
    "selection": "clip nan_to_num select where",
    "shapes": (
        "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes broadcast_to "
        "expand_dims flip fliplr flipud matrix_transpose moveaxis ndim permute_dims ravel reshape "
        "roll rollaxis rot90 shape size squeeze swapaxes transpose"
    ),
    "sorting": "argsort lexsort sort",
    "trigonometry": (
        "arccos arccosh arcsin arcsinh arctan arctan2 arctanh cos cosh deg2rad rad2deg sin sinh "
        "tan tanh"
    ),
}
"""The public names in each topic module."""

_NAMES = {name: topic for topic, names in _TOPICS.items() for name in names.split()}
_NAMES |= {
    "absolute": "arithmetic:abs",
    "acos": "trigonometry:arccos",
    "acosh": "trigonometry:arccosh",
    "amax": "reductions:max",
    "amin": "reductions:min",
    "around": "rounding:round",
    "asin": "trigonometry:arcsin",
    "asinh": "trigonometry:arcsinh",
    "atan": "trigonometry:arctan",
    "atan2": "trigonometry:arctan2",
    "atanh": "trigonometry:arctanh",
    "bitwise_invert": "bits:bitwise_not",
    "bitwise_left_shift": "bits:left_shift",
    "bitwise_right_shift": "bits:right_shift",
    "bool": "scalar_types:bool_",
    "conjugate": "complex_numbers:conj",
    "degrees": "trigonometry:rad2deg",
    "divide": "arithmetic:true_divide",
    "fix": "rounding:trunc",
    "invert": "bits:bitwise_not",
    "mod": "arithmetic:remainder",
    "ndarray": "dovetail.core.runtime.array:Array",
    "pow": "arithmetic:power",
    "radians": "trigonometry:deg2rad",
}
"""The topic module that a public name is in; after a colon, the name that it has there."""

_MODULES = ("linalg",)

# fmt: off
__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "all",
    "allclose",
    "amax",
    "amin",
    "angle",
    "any",
    "append",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "around",
    "array",
    "array_equal",
    "array_equiv",
    "array_split",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "average",
    "bfloat16",
    "bincount",
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool",
    "bool_",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "cbrt",
    "cdouble",
    "ceil",
    "character",
    "clip",
    "column_stack",
    "complex64",
    "complex128",
    "complex_",
    "complexfloating",
    "compress",
    "concat",
    "concatenate",
    "conj",
    "conjugate",
    "copy",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cross",
    "csingle",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "deg2rad",
    "degrees",
    "diag",
    "diag_indices",
    "diag_indices_from",
    "diagflat",
    "diagonal",
    "diff",
    "digitize",
    "divide",
    "divmod",
    "dot",
    "double",
    "dsplit",
    "dstack",
    "dtype",
    "e",
    "einsum",
    "einsum_path",
    "empty",
    "empty_like",
    "equal",
    "euler_gamma",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "extract",
    "eye",
    "fabs",
    "finfo",
    "fix",
    "flatnonzero",
    "flexible",
    "flip",
    "fliplr",
    "flipud",
    "float4_e2m1fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "float_",
    "float_power",
    "floating",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "frombuffer",
    "fromfunction",
    "full",
    "full_like",
    "generic",
    "geomspace",
    "greater",
    "greater_equal",
    "heaviside",
    "hsplit",
    "hstack",
    "hypot",
    "identity",
    "iinfo",
    "imag",
    "indices",
    "inexact",
    "inf",
    "inner",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "integer",
    "interp",
    "invert",
    "isclose",
    "iscomplex",
    "iscomplexobj",
    "isdtype",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "issubdtype",
    "kron",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "lexsort",
    "linalg",
    "linspace",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logspace",
    "matmul",
    "matrix_transpose",
    "matvec",
    "max",
    "maximum",
    "mean",
    "median",
    "meshgrid",
    "min",
    "minimum",
    "mod",
    "modf",
    "moveaxis",
    "multiply",
    "nan",
    "nan_to_num",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "ndarray",
    "ndim",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "number",
    "object_",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "percentile",
    "permute_dims",
    "pi",
    "polyval",
    "positive",
    "pow",
    "power",
    "prod",
    "promote_types",
    "ptp",
    "quantile",
    "rad2deg",
    "radians",
    "ravel",
    "ravel_multi_index",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "right_shift",
    "rint",
    "roll",
    "rollaxis",
    "rot90",
    "round",
    "searchsorted",
    "select",
    "shape",
    "sign",
    "signbit",
    "signedinteger",
    "sin",
    "sinc",
    "single",
    "sinh",
    "size",
    "sort",
    "spacing",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "trace",
    "transpose",
    "trapezoid",
    "tri",
    "tril",
    "tril_indices",
    "tril_indices_from",
    "triu",
    "triu_indices",
    "triu_indices_from",
    "true_divide",
    "trunc",
    "uint",
    "uint2",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unravel_index",
    "unsignedinteger",
    "unstack",
    "vander",
    "var",
    "vdot",
    "vecdot",
    "vecmat",
    "vsplit",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]
# fmt: on


def __getattr__(name: str) -> object:
    value: object
    if name in _MODULES:
        return import_module(f"dovetail.numpy.{name}")
    entry = _NAMES.get(name)
    if entry is None:
        raise AttributeError(f"module 'dovetail.numpy' has no attribute {name!r}")
    module, _, attribute = entry.partition(":")
    if "." not in module:
        module = f"dovetail.numpy.{module}"
    value = getattr(import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
