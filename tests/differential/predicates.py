"""Which differences a reason applies to: predicates, and the patterns that they share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from comparison import Difference


@dataclass(frozen=True, slots=True)
class Known:
    """A difference on purpose."""

    reason: str
    where: str | None
    applies: Callable[[Difference], bool]


def is_position_or_boolean(difference: Difference) -> bool:
    """Whether what is weakly typed in JAX, and not here, is a boolean, a position or a count."""
    functions = r"(lax|jnp)\.(top_k|argpartition)|lax\.linalg\.(lu|qdwh)"
    return re.search(r"^bool weak=False", difference.ours) is not None or (
        re.fullmatch(functions, difference.function) is not None
        and re.search(r"^int\d+ weak=False", difference.ours) is not None
    )


def elements(told: str) -> list[str]:
    """The elements that differ, as far as they are told: eight of each array."""
    return [element for text in re.findall(r"\] \[(.+?)\]", told) for element in text.split(", ")]


def pairs(functions: str, applies: Callable[[str, str], bool]) -> Callable[[Difference], bool]:
    """Differences in value, of functions, where each pair of elements that differ is such a one."""

    def all_apply(difference: Difference) -> bool:
        ours, theirs = elements(difference.ours), elements(difference.theirs)
        return (
            difference.field == "value"
            and re.fullmatch(functions, difference.function) is not None
            and len(ours) == len(theirs) > 0
            and all(map(applies, ours, theirs))
        )

    return all_apply


def is_special(element: str) -> bool:
    return "inf" in element or "nan" in element


def is_zero(element: str) -> bool:
    return element.lstrip("-") in ("0", "0.0", "0j", "(-0+0j)", "(-0-0j)")


def is_reordered(difference: Difference) -> bool:
    """Whether the same numbers come in another order, where all that differ are told."""
    ours, theirs = elements(difference.ours), elements(difference.theirs)
    return len(ours) >= 8 or sorted(ours) == sorted(theirs)


def not_finite(told: str) -> bool:
    """Whether the elements that are told are infinite or nan, each of them."""
    lists = re.findall(r"\] \[(.*?)\]", told)
    return bool(lists) and all(
        "inf" in element or "nan" in element for text in lists for element in text.split(", ")
    )


def of(fields: str, functions: str, ours: str = "", theirs: str = "") -> Callable[..., bool]:
    """Differences in one of some fields, of functions and with outcomes that match patterns."""

    def applies(difference: Difference) -> bool:
        return (
            difference.field in fields.split("|")
            and re.fullmatch(functions, difference.function) is not None
            and re.search(ours, difference.ours) is not None
            and re.search(theirs, difference.theirs) is not None
        )

    return applies


ANY = ".*"
INSIDE = (
    r"^TypeError: No constant handler for type|"
    r"^(Assertion|Attribute|Key|NotImplemented|XlaRuntime|JaxRuntime|ZeroDivision|Unbound)|"
    r"not compatible with finfo$|index out of range$|Cannot lower jaxpr with verifier errors|"
    r"cannot convert float infinity to integer|"
    r"The problematic value is of type <class 'NoneType'>"
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
        r"unexpected JAX type .* expected float0",  # cotangents of integers are not read
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

ELEMENTARY = (
    r"(jnp|lax|nn)\.(a?(rc)?(sin|cos|tan)h?|exp\w*|log\w*|\w*sqrt|square|(float_)?power|pow)"
)

REDUCTIONS = r"(jnp\.|method )(nan)?(sum|prod|mean|var|std|a?max|a?min|any|all)"

LEAF = r"^\* \w+\[[\d, ]*\] \["
"""Before the elements that differ, of a result that is one array."""

NO_FIGURES = r"\[(inf|nan)\]|\d{7,}\.|e\+"
"""The condition of a matrix that is singular but for rounding."""

DIVISIONS = r"jnp\.(floor_divide|mod|remainder|divmod|fmod)|operator (//|%)"
