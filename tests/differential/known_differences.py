"""Differences on purpose, by predicate: few, each told in a section `Differs:`.

`where` is the heading in docs/differences-from-jax.md that tells of it, or None for what that file
leaves out, such as what JAX merely refuses.
"""

from __future__ import annotations

import re

from comparison import Difference
from difference_patterns import Known, of
from known_values import KNOWN_VALUES


def _is_position_or_boolean(difference: Difference) -> bool:
    """Whether what is weakly typed in JAX, and not here, is a boolean, a position or a count."""
    functions = r"(lax|jnp)\.(top_k|argpartition)|lax\.linalg\.(lu|qdwh)"
    return re.search(r"^bool weak=False", difference.ours) is not None or (
        re.fullmatch(functions, difference.function) is not None
        and re.search(r"^int\d+ weak=False", difference.ours) is not None
    )


ANY = ".*"
INSIDE = (
    r"^TypeError: No constant handler for type|"
    r"^(Assertion|Attribute|Key|NotImplemented|XlaRuntime|JaxRuntime|ZeroDivision|Unbound)|"
    r"not compatible with finfo$|index out of range$|Cannot lower jaxpr with verifier errors|"
    r"cannot convert float infinity to integer|"
    r"The problematic value is of type <class '(NoneType|jax\._src\.ad_util\.Zero)'>|"
    r"Triggering __jax_array__\(\) during abstractification"  # references inside of loops
)
"""Errors that no documentation names: they come from inside of JAX."""

MERELY_REFUSED = "|".join(
    (
        r"zero-size array to reduction operation",  # an empty set, rank or histogram
        r"in gather op is out of range",  # the median of no elements
        r"reduction axis must be non-empty",  # the same
        r"index is out of bounds for axis \d with size 0",  # the area below no points
        r"RFFT input must be float32 or float64",  # 16 bits are transformed in float32
        r"logical reduction requires operand dtype bool or int, got u?int[24]",
        r"no available implicit dtype promotion path",  # results that are floats in any case
        r"Sizes passed to split must be nonnegative",  # NumPy's parts beyond the end are empty
        r"`preferred_element_type` must not be narrower",  # of what JAX itself converted
        r"(neg|logistic|lu|svd|lt|gt) does not accept dtype",  # bools are sorted, too
        r"feature_group_count must be a positive integer, got 0",  # windows of no features
        r"(add|mul) does not accept dtype bool",  # it is "or", and "and"
        r"(symmetric_product|cholesky_update) does not accept dtype b?float",  # of any width
        r"\w+ does not accept dtype u?int[24]\b",  # the same
        r"Invalid integer data type 'V'",  # the same
        r"data type <class '[\w.]+'> not inexact",  # a fit to integers
        r"data type dtype\('?\w+'?\) not compatible with finfo",  # the same
        r"does not accept dtype b?float(16|8_\w+) at",  # matrices are factored in float32
        r"Dimension must be 3 for cross product",  # the third component is zero
        r"eq got incompatible shapes",  # which are not equivalent
        r"integer -1 out of bounds|out of range value cannot",  # numbers of its own
        r"dtype argument to `uniform` must be a float dtype, got u?int[24]",  # of probabilities
        r"Integers cannot be raised to negative powers, got integer_pow\(u?int[24]",  # the same
        r"iota does not accept dtype bool",  # false and true are the numbers of two classes
        r"does not accept dtype u?int2\b",  # integers of two bits become floats, too
        r"Attempted boolean conversion of traced array",  # a mask that is known
        r"^ConcretizationTypeError: Abstract tracer value encountered",  # the same
        r"Linearization failed to produce known values",  # gradients of windows that start anywhere
        r"^ValueError: Invalid shape for `(swap|addupdate)`",  # what is written is repeated
        r"^ValueError: Invalid dtype for `(swap|addupdate)`",  # and converted
        r"Argument to jax.numpy.tri[lu] must be at least 2D",  # a row is repeated, as in NumPy
        r"^ValueError: Out of bound slice: start=0, dim=0",  # a part of an empty reference is empty
        r"requires floating-point or complex inputs; got u?int[24]",  # they become floats
        r"^TypeError: len\(\) of unsized object",  # a polynomial of one coefficient
        r"not large enough to hold flattened index",  # positions have the default dtype
        r"broadcasting: input type=~?\w+\[0\]",  # a polynomial without coefficients is zero
        r"PRNG key seed must be an integer; got .*int[24]\[",  # integers of few bits are, too
        r"does not yet support real dtype parameters",  # the variance of complex numbers is real
        r"Unsupported input type to jax.numpy.i0: u?int[24]",  # they become floats
        r"PRNG key seed must be an integer; got JitTracer",  # which is told where it is traced
        r"select cases must have the same shapes",  # the gradient of clamp with bounds of rank 0
        r"clamp requires (min|max)\.shape == operand\.shape",  # numbers mapped with their bounds
        r"unexpected JAX type .* expected float0",  # cotangents of integers are not read
        r"An overflow was encountered while parsing an argument",  # loops of 2**31 turns
        r"^ValueError: dtype=dtype\(.*\) is not an integer type",  # uint64 with a signed integer
        r"Reverse-mode differentiation does not work for",  # loops that pass on what they carry
        r"meshgrid must be 1D, got shapes \[(\((\d+,)?\)(, )?)*\]",  # scalars, as in NumPy
    )
)
"""What JAX refuses in these words has one meaning, which it has here."""

EQUAL_DTYPES = (
    r"arguments to have the same dtypes|inconsistent dtypes|dtypes should match corresponding|"
    r"padding_value must be same dtype|does not accept dtype int\d+ at position|"
    r"and two inexact dtypes must match, but got (float|bfloat|complex)|"
    r"arguments to fori_loop must have equal types"
)

SEVERAL = r"lax\.(cond|switch|scan|map|while_loop|fori_loop)|(transform |through )?dt\."
"""Functions that run several operations."""

REDUCTIONS = r"(jnp\.|method )(nan)?(sum|prod|mean|var|std|a?max|a?min|any|all)"

KNOWN = (
    Known(
        "a function that this version of JAX does not have",
        None,
        of("accepted|error", ANY, theirs=r"^AttributeError: (module|'\w+' object has no)"),
    ),
    Known("JAX fails inside", None, of("accepted|error", ANY, theirs=INSIDE)),
    Known(
        "JAX fails inside",
        None,
        of("error", r"jnp\.poly\w+", theirs="^IndexError: index is out of"),
    ),
    Known(
        "JAX never ends, or ends the process",
        "dovetail.numpy: gcd",
        of("accepted|error", ANY, theirs=r"^(Hung|Crashed)"),
    ),
    Known("JAX merely refuses it", None, of("accepted", ANY, theirs=MERELY_REFUSED)),
    Known(
        "JAX merely refuses one operation, and another one is refused here",
        None,
        lambda d: (
            of("error", ANY, theirs=MERELY_REFUSED)(d)
            and (d.mode == "grad" or re.match(SEVERAL, d.function) is not None)
        ),
    ),
    Known(
        "JAX refuses it later, when it is compiled",
        None,
        of("refused", r"lax\.linalg\..*", ours=r"does not accept dtype b?float(16|8)"),
    ),
    Known(
        "JAX refuses another size later, when it is compiled",
        None,
        of("refused|error", r"lax\.reshape", ours="elements, new_sizes"),
    ),
    Known(
        "JAX refuses another shape later, when it is compiled",
        None,
        of("refused", r"random\.uniform", ours="cannot be broadcast to shape"),
    ),
    Known(
        "a position in a dimension without elements is out of bounds",
        "dovetail: Array.at",
        of("refused|error", r"getitem|at .*", ours=r"^IndexError: .* with size 0 "),
    ),
    Known(
        "all results of a loop are arrays",
        "dovetail.lax: while_loop",
        of(
            "structure",
            r"lax\.(while_loop|fori_loop|scan)",
            theirs=r"(bool|int|float|complex|numpy) ",
        ),
    ),
    Known(
        "what a loop carries has one type",
        "dovetail.lax: scan",
        of("weak type|dtype", r"lax\.(while_loop|fori_loop|scan)", "weak=False"),
    ),
    Known(
        "what a loop carries has one type, and is no number of Python after the first step",
        "dovetail.lax: scan",
        of("refused", r"lax\.(while_loop|fori_loop|scan)", "integers of less than 8 bits are not"),
    ),
    Known(
        "a result is weakly typed only if that of every branch is",
        "dovetail.lax: cond",
        of(
            "weak type",
            r"lax\.(cond|switch|map)|transform dt\.(custom_gradient|jit|vmap)",
            "weak=False",
        ),
    ),
    Known(
        "a predicate and an index are numbers of any width",
        None,
        of("accepted|error", r"lax\.(cond|switch)", theirs=r"(Pred|Index) type must be .* got "),
    ),
    Known(
        "a number that a branch returns takes the dtype of the other one",
        "dovetail.lax: cond",
        of(
            "accepted",
            rf"lax\.(cond|switch)|({SEVERAL}).*",
            theirs=r"(cond|switch) branches must have equal output types",
        ),
    ),
    Known(
        "results are never weakly typed, however many elements there are",
        "dovetail.lax: associative_scan",
        of("weak type", r"lax\.associative_scan", "weak=False"),
    ),
    Known(
        "positions, counts and booleans are never weakly typed",
        "dovetail.lax: top_k",
        lambda d: d.field == "weak type" and _is_position_or_boolean(d),
    ),
    Known(
        "the number of iterations is an int32",
        "dovetail.lax.linalg: qdwh",
        of("dtype", r"lax\.linalg\.qdwh", "^int32$", "^int64$"),
    ),
    Known(
        "operands of a product promote as elsewhere",
        "dovetail.lax: dot_general",
        of("dtype|weak type", r"lax\.(dot|dot_general|batch_matmul|ragged_dot)"),
    ),
    Known(
        "a dtype that cannot hold the products is refused as that of the result",
        "dovetail.lax: dot_general",
        of("refused", r"lax\.(dot|dot_general)", "cannot be summed in preferred_element_type"),
    ),
    Known(
        "logarithms of sums are no integers",
        "dovetail.lax: cumlogsumexp",
        of("refused|error", r"lax\.cumlogsumexp", r"does not accept dtype (u?int|bool)"),
    ),
    Known(
        "a seed is an integer",
        "dovetail.random: key",
        of("refused|error", r"random\..*", "(the seed|data) must be an integer"),
    ),
    Known(
        "bounds are real numbers",
        "dovetail.random: uniform",
        of("refused|error", r"random\..*", "must be a real number|m(in|ax)val must be an integer"),
    ),
    Known(
        "a dtype that cannot hold -1 is refused",
        "dovetail.random: rademacher",
        of("refused", r"random\.rademacher", "must be one of signed numbers"),
    ),
    Known(
        "coefficients have to fit the dtype",
        "dovetail.lax: polynomial",
        of("refused", r"lax\.polynomial", "does not (hold such numbers|accept dtype bool)"),
    ),
    Known(
        "derivatives in the shape are refused, also where nothing depends on them",
        None,
        lambda d: d.mode == "grad" and of("refused|error", ANY, "random_gamma_grad is not diff")(d),
    ),
    Known(
        "JAX has no derivative of what comes before a loop, or there are no elements",
        None,
        lambda d: (
            d.mode == "grad"
            and of("refused", r".*\b(nextafter|nancumsum)\b.*", "no gradient in reverse mode")(d)
        ),
    ),
    Known(
        "slices must fit, also where there are none",
        "dovetail.lax: gather",
        of("refused", r"lax\.gather", "slice_sizes .* has size"),
    ),
    Known(
        "an integer of Python goes with start indices of any dtype",
        "dovetail.lax: dynamic_slice",
        of("accepted", ANY, theirs="must be integers of the same type"),
    ),
    Known(
        "what divides or is a power has the dtype of that",
        "dovetail: Array.at",
        of("dtype|weak type", r"at (divide|power)"),
    ),
    Known(
        "weakly typed scalars take the dtype of the other operand",
        "dovetail.lax: add",
        of("accepted", r"lax\..*", theirs=EQUAL_DTYPES),
    ),
    Known(
        "a scalar has no dimensions to keep",
        "dovetail.numpy: quantile",
        of("shape", r"jnp\.(nan)?(quantile|percentile|median)", r"^\[\]$", r"^\[1\]$"),
    ),
    Known(
        "gradients are weakly typed as their arguments are",
        "dovetail: grad",
        lambda d: (
            d.field == "weak type"
            and (
                d.mode == "grad"
                or (d.ours.endswith("weak=True") and re.search(r"\bdt\.", d.function) is not None)
                or d.function.startswith("transform dt.jac")
            )
        ),
    ),
    Known(
        "gradients have the dtypes of their arguments",
        "dovetail: custom_vjp",
        of("dtype", r"through dt\.custom_vjp"),
    ),
    Known(
        "rules say nothing about what is captured",
        None,
        of(
            "refused|error",
            r"through dt\.custom_(jvp|vjp)",
            "differentiated with respect to a value|rules of its own, and it or one of them uses",
        ),
    ),
    Known(
        "rules may use what is captured where nothing depends on it",
        None,
        of(
            "accepted",
            r"(.* )?(through|transform) dt\.custom_(jvp|vjp|gradient).*",
            theirs="^UnexpectedTracerError",
        ),
    ),
    Known(
        "cotangents have the dtypes of arguments",
        "dovetail: custom_vjp",
        of("refused|error", r"through dt\.custom_vjp", "a cotangent of its type"),
    ),
    Known(
        "what a reference holds has one type, and is not weakly typed",
        "dovetail: new_ref",
        of("weak type", r"through dt\.new_ref", "weak=False", "weak=True"),
    ),
    Known(
        "a result is weakly typed only if that of every branch is",
        "dovetail.lax: cond",
        of("weak type", r"through dt\.(linearize|vjp|custom_(jvp|vjp))", "weak=False", "weak=True"),
    ),
    Known(
        "integers of Python must fit the dtype",
        "dovetail.numpy: add",
        of("refused|error", ANY, ours=r"^OverflowError: .*does not fit"),
    ),
    Known(
        "64-bit integers that do not fit 32 bits raise",
        "dovetail.numpy: array",
        of("refused|error", ANY, ours=r"^OverflowError"),
    ),
    Known(
        "transforms of no points are refused",
        "dovetail.numpy.fft: fft",
        of("refused|error", r"jnp\.fft\..*", ours="needs a signal of one point|no points"),
    ),
    Known(
        "complex numbers have no order, and are no angles",
        "dovetail.nn: relu",
        of("refused|error", r"(nn|jnp)\..*", ours="defined for real numbers only"),
    ),
    Known(
        "one zero is left of a remainder that vanishes, and roots that are zero come last",
        "dovetail.numpy: polydiv",
        of("value|shape", r"jnp\.(polydiv|roots)"),
    ),
    Known(
        "predicates are never weakly typed",
        "dovetail.numpy: equal",
        of("weak type", ANY, "^bool weak=False", "^bool weak=True"),
    ),
    Known(
        "booleans and floats are no positions",
        "dovetail.numpy: unravel_index",
        of("refused|error", r"jnp\..*", ours="it takes integer"),
    ),
    Known(
        "small integers do not combine with others",
        "dovetail.numpy: array_equiv",
        of("refused", r"jnp\.array_equiv", ours="do not combine"),
    ),
    Known(
        "of no elements there is no mean",
        "dovetail.numpy: pad",
        of("refused", r"jnp\.pad", "which has no elements"),
    ),
    Known(
        "of no singular values the weak type is that of any",
        None,
        of("weak type", r"jnp\.linalg\.lstsq", "weak=True", "weak=False"),
    ),
    Known(
        "singular values are real",
        "dovetail.numpy.linalg: lstsq",
        of("dtype", r"jnp\.linalg\.lstsq", "^float", "^complex"),
    ),
    Known(
        "the angle of one number has its dtype",
        "dovetail.numpy: angle",
        of("dtype|weak type", r"jnp\.angle"),
    ),
    Known(
        "positions are never weakly typed",
        "dovetail.numpy: partition",
        of("weak type", r"jnp\.argpartition", "^int", "^int"),
    ),
    Known(
        "the pair is a tuple",
        "dovetail.numpy: top_k",
        of("structure", r"jnp\.top_k", r"^tuple", r"^list"),
    ),
    Known(
        "small integers are multiplied, and positions counted, in the default integer dtype",
        "dovetail.numpy: cumulative_prod",
        of("dtype", r"jnp\.(cumulative_prod|ravel_multi_index)", r"^u?int(32|64)$", "^u?int"),
    ),
    Known(
        "integers of two bits become floats as all integers do",
        "dovetail.numpy: mean",
        of("dtype", ANY, r"^(float|complex)", r"^u?int2$"),
    ),
    Known(
        "the dtype asked for is that of the result",
        "dovetail.numpy: var",
        of("accepted|dtype", r"(jnp\.|method )(nan)?(var|std)", r"int", r"inexact|sqrt|float"),
    ),
    Known(
        "all dimensions that a mask adds are reduced",
        "dovetail.numpy: sum",
        of(
            "shape|accepted",
            REDUCTIONS,
            theirs=r"^\[|broadcast to shape with fewer|axis \d is out of",
        ),
    ),
    Known(
        "counts are exact",
        "dovetail.numpy: histogram",
        of("dtype", r"jnp\.histogram", "^float", r"^b?float(16|8)"),
    ),
    Known(
        "of no variables the dtype is that of any",
        "dovetail.numpy: cov",
        of("dtype", r"jnp\.(cov|corrcoef)"),
    ),
    Known(
        "booleans are numbers, as elsewhere",
        None,
        of("accepted", r"(jnp|nn)\..*", theirs="(mul|sub|polynomial) does not accept dtype bool"),
    ),
    Known(
        "a weakly typed x takes the dtype of y",
        "dovetail.numpy: polyfit",
        of("dtype", r"jnp\.polyfit", r"32$|16$", r"64$"),
    ),
    Known(
        "of no elements the weak type is that of any",
        "dovetail.numpy: take_along_axis",
        of("weak type", r"jnp\.take_along_axis", "weak=True", "weak=False"),
    ),
    Known(
        "of no elements the weak type is that of any",
        None,
        of("weak type", r"jnp\.setdiff1d", "^complex.* weak=False", "weak=True"),
    ),
    Known(
        "what is drawn has the dimensions and the weak type of slices",
        "dovetail.random: choice",
        of("shape|weak type", r"random\.choice", r"weak=True|^\[.*\b0\b", r"weak=False|^\[.*\b0\b"),
    ),
    Known(
        "a boolean is no bound of integers",
        "dovetail.random: choice",
        of("refused|error", r"random\.choice", ours="got bool; write|requires a to be an integer"),
    ),
    Known(
        "never weakly typed",
        "dovetail.lax: random_gamma_grad",
        of("weak type", r"lax\.random_gamma_grad", "weak=False"),
    ),
    Known(
        "what is mapped has the weak type of what is not",
        None,
        lambda d: (
            d.mode == "vmap"
            and of("weak type", r"lax\.dynamic_update_\w+", "weak=False", "weak=True")(d)
        ),
    ),
    Known(
        "an exponent of rank 0 is an array",
        "dovetail.numpy: power",
        of("weak type", r"jnp\.(float_)?pow(er)?|operator \*\*", "weak=False", "weak=True"),
    ),
    Known(
        "a weakly typed argument takes the type of the coefficients",
        None,
        of("weak type", r"lax\.polynomial", "weak=False", "weak=True"),
    ),
    Known(
        "an exponent of rank 0 is an array",
        "dovetail.numpy: power",
        of("dtype", r"jnp\.pow(er)?|operator \*\*", r"^u?int\d+$", r"^u?int\d+$"),
    ),
    Known(
        "indices of no elements take their place",
        "dovetail.numpy: take",
        of("shape", r"jnp\.take", r"\b0\b", r"\b0\b"),
    ),
    Known(
        "a dtype that cannot hold the value is refused",
        "dovetail.lax: full",
        of("refused", r"lax\.full(_like)?", "cannot hold the fill_value"),
    ),
    Known(
        "complex numbers have a mean and a variance",
        None,
        of("accepted", r"nn\.standardize", theirs="Clip received a complex value"),
    ),
    Known(
        "what is made of arrays of NumPy is an array, too",
        None,
        of(
            "structure",
            r"jnp\.reshape|lax\.(polynomial|stop_gradient|associative_scan)|"
            r"(transform|through) dt\.\w+",
            r"^(tuple\()?\*",
            r"^(tuple\()?(numpy |Typed)",
        ),
    ),
    Known(
        "what has no derivative is returned as it is",
        "dovetail.lax: stop_gradient",
        of("structure", r"lax\.stop_gradient", r"^(bool|int) "),
    ),
    Known(
        "booleans have no Jacobian",
        "dovetail: jacfwd",
        of("refused", r"transform dt\.jacfwd", "requires numeric results, got bool"),
    ),
    Known(
        "older versions of JAX",
        None,
        of("dtype|weak type", r"jnp\.(tri|hypot|log2)", theirs="32|64|128"),
    ),
    Known(
        "an element that is updated twice has no derivative",
        None,
        of("refused", r"lax\.scatter_apply", "only where no element is updated twice"),
    ),
    Known(
        "JAX refuses to compute the loop, of which there is no gradient",
        None,
        lambda d: (
            d.mode == "grad" and of("refused", r"lax\.fori_loop", "no gradient in reverse mode")(d)
        ),
    ),
    Known(
        "of two mistakes either may be told",
        None,
        of(
            "error", r"lax\.stack", "requires arguments of equal dtypes", "must have the same shape"
        ),
    ),
    Known(
        "of two mistakes either may be told",
        None,
        of("error", r"at .*", "do not combine", "Too many indices"),
    ),
    Known(
        "of two mistakes either may be told",
        None,
        of("error", r"lax\.fori_loop", "cannot be broadcast|unroll needs", "must have equal types"),
    ),
    Known(
        "of two mistakes either may be told",
        None,
        of("error", r"(jnp\.|method )(nan)?mean", "dtype must be one of", "where must be None"),
    ),
    Known(
        "of two mistakes either may be told",
        None,
        of("error", r"lax\.(scan|map)", "cannot be broadcast to", "must have equal output types"),
    ),
    Known(
        "more indices than dimensions are an IndexError, as for arrays",
        None,
        of("error", r"through dt\.new_ref", "^IndexError: too many", "must not be longer than"),
    ),
    Known(
        "lax does not promote",
        None,
        of("refused", r"lax\.random_gamma_grad", "requires arguments of equal dtypes"),
    ),
    Known(
        "booleans are no numbers to add, however few they are",
        None,
        of("refused", r"jnp\.poly(add|sub)", "does not accept booleans", r"\[0\] \[\]$"),
    ),
    Known(
        "a value that is known",
        None,
        of("error", "method item", "^ValueError: can only convert", "^Concretization"),
    ),
    Known(
        "a mask that is known",
        None,
        of("error", r"jnp\.(compress|extract)", theirs="^(TracerBool|Concretization)"),
    ),
    Known(
        "older versions of JAX",
        None,
        of("structure", r"jnp\.(meshgrid|broadcast_arrays)", "^tuple", "^list"),
    ),
    *KNOWN_VALUES,
)


def reason_for(difference: Difference) -> str | None:
    """Why a difference is on purpose, or None."""
    return next((known.reason for known in KNOWN if known.applies(difference)), None)
