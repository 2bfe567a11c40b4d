"""The names of `dovetail.nn.initializers`, for type checkers and at run time."""

from dovetail.nn.initializers.initializer import Initializer as Initializer
from dovetail.nn.initializers.matrices import delta_orthogonal as delta_orthogonal
from dovetail.nn.initializers.matrices import orthogonal as orthogonal
from dovetail.nn.initializers.scaled import glorot_normal as glorot_normal
from dovetail.nn.initializers.scaled import glorot_uniform as glorot_uniform
from dovetail.nn.initializers.scaled import he_normal as he_normal
from dovetail.nn.initializers.scaled import he_uniform as he_uniform
from dovetail.nn.initializers.scaled import lecun_normal as lecun_normal
from dovetail.nn.initializers.scaled import lecun_uniform as lecun_uniform
from dovetail.nn.initializers.scaled import variance_scaling as variance_scaling
from dovetail.nn.initializers.simple import constant as constant
from dovetail.nn.initializers.simple import normal as normal
from dovetail.nn.initializers.simple import ones as ones
from dovetail.nn.initializers.simple import truncated_normal as truncated_normal
from dovetail.nn.initializers.simple import uniform as uniform
from dovetail.nn.initializers.simple import zeros as zeros

kaiming_normal = he_normal
kaiming_uniform = he_uniform
xavier_normal = glorot_normal
xavier_uniform = glorot_uniform
