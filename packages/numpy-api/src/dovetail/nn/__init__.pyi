"""The names of `dovetail.nn`: the one list of them, for type checkers and at run time."""

from dovetail.nn import initializers as initializers
from dovetail.nn.activations import celu as celu
from dovetail.nn.activations import elu as elu
from dovetail.nn.activations import gelu as gelu
from dovetail.nn.activations import glu as glu
from dovetail.nn.activations import hard_sigmoid as hard_sigmoid
from dovetail.nn.activations import hard_silu as hard_silu
from dovetail.nn.activations import hard_tanh as hard_tanh
from dovetail.nn.activations import identity as identity
from dovetail.nn.activations import leaky_relu as leaky_relu
from dovetail.nn.activations import log1mexp as log1mexp
from dovetail.nn.activations import log_sigmoid as log_sigmoid
from dovetail.nn.activations import mish as mish
from dovetail.nn.activations import relu as relu
from dovetail.nn.activations import relu6 as relu6
from dovetail.nn.activations import selu as selu
from dovetail.nn.activations import sigmoid as sigmoid
from dovetail.nn.activations import silu as silu
from dovetail.nn.activations import soft_sign as soft_sign
from dovetail.nn.activations import softplus as softplus
from dovetail.nn.activations import sparse_plus as sparse_plus
from dovetail.nn.activations import sparse_sigmoid as sparse_sigmoid
from dovetail.nn.activations import squareplus as squareplus
from dovetail.nn.attention import dot_product_attention as dot_product_attention
from dovetail.nn.block_scaling import (
    get_scaled_dot_general_config as get_scaled_dot_general_config,
)
from dovetail.nn.block_scaling import scaled_dot_general as scaled_dot_general
from dovetail.nn.block_scaling import scaled_matmul as scaled_matmul
from dovetail.nn.normalisation import log_softmax as log_softmax
from dovetail.nn.normalisation import logmeanexp as logmeanexp
from dovetail.nn.normalisation import logsumexp as logsumexp
from dovetail.nn.normalisation import one_hot as one_hot
from dovetail.nn.normalisation import softmax as softmax
from dovetail.nn.normalisation import standardize as standardize
from dovetail.numpy.trigonometry import tanh as tanh

hard_swish = hard_silu
swish = silu
