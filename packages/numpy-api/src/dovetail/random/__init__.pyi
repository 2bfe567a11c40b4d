"""The names of `dovetail.random`: the one list of them, for type checkers and at run time."""

from dovetail.random.continuous import cauchy as cauchy
from dovetail.random.continuous import exponential as exponential
from dovetail.random.continuous import gumbel as gumbel
from dovetail.random.continuous import laplace as laplace
from dovetail.random.continuous import logistic as logistic
from dovetail.random.continuous import normal as normal
from dovetail.random.continuous import truncated_normal as truncated_normal
from dovetail.random.intervals import bernoulli as bernoulli
from dovetail.random.intervals import bits as bits
from dovetail.random.intervals import rademacher as rademacher
from dovetail.random.intervals import randint as randint
from dovetail.random.intervals import uniform as uniform
from dovetail.random.keys import PRNGKey as PRNGKey
from dovetail.random.keys import clone as clone
from dovetail.random.keys import fold_in as fold_in
from dovetail.random.keys import key as key
from dovetail.random.keys import key_data as key_data
from dovetail.random.keys import key_dtype as key_dtype
from dovetail.random.keys import key_impl as key_impl
from dovetail.random.keys import split as split
from dovetail.random.keys import wrap_key_data as wrap_key_data
from dovetail.random.resampling import categorical as categorical
from dovetail.random.resampling import choice as choice
from dovetail.random.resampling import permutation as permutation
