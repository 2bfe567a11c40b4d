"""Differences of values on purpose: see `known_differences`."""

from __future__ import annotations

from difference_patterns import (
    Known,
    are_apart,
    is_moved,
    is_one_less,
    is_reordered,
    is_rounded,
    is_special,
    is_zero,
    not_finite,
    of,
    pairs,
)

ANY = ".*"

ELEMENTARY = (
    r"(jnp|lax|nn)\.(a?(rc)?(sin|cos|tan)h?|exp\w*|log\w*|\w*sqrt|square|(float_)?power|pow)|"
    r"(jnp\.|lax\.)?abs(olute)?"
)

LEAF = r"^\* \w+\[[\d, ]*\] \["
"""Before the elements that differ, of a result that is one array."""

NO_FIGURES = r"\[(inf|nan)\]|\d{7,}\.|e\+"
"""The condition of a matrix that is singular but for rounding."""

DIVISIONS = r"jnp\.(floor_divide|mod|remainder|divmod|fmod)|operator (//|%)"

COMPARISONS = r"jnp\.(equal|not_equal|(greater|less)(_equal)?)|operator [<>=!]=?"

KNOWN_VALUES = (
    Known(
        "special functions are exact, and infinite at every pole",
        "dovetail.lax: zeta",
        pairs(r"lax\.(zeta|polygamma|digamma)", lambda a, b: is_special(a) or is_special(b)),
    ),
    Known(
        "functions of complex numbers have the values of C99 where they are not finite",
        "dovetail.lax: acos",
        lambda d: (
            of("value", ELEMENTARY, ours=r"complex|\binf", theirs="nan|inf")(d)
            and pairs(ELEMENTARY, lambda a, b: is_special(a) or is_special(b))(d)
        ),
    ),
    Known(
        "the sign of an infinite complex number lies on an axis",
        "dovetail.lax: sign",
        pairs(r"(jnp|lax)\.sign", lambda a, b: "j" in a and not is_special(a) and "nan" in b),
    ),
    Known(
        "imaginary numbers are true",
        "dovetail.numpy: all",
        lambda d: (
            of("value", ANY, r"^\* bool\[")(d)
            and pairs(
                r"(jnp\.|method )(all|any|astype)|lax\.convert_element_type",
                lambda a, b: a == "True",
            )(d)
        ),
    ),
    Known(
        "gradients pass through sets",
        "dovetail.numpy: unique",
        lambda d: (
            d.mode == "grad"
            and of("value", r"jnp\.(unique\w*|union1d|intersect1d|setdiff1d|setxor1d)")(d)
        ),
    ),
    Known(
        "mantissas of all dtypes are from 0.5 to 1",
        "dovetail.numpy: frexp",
        of("value", r"jnp\.frexp", ours="float8_e4m3fn|float8_e4m3b11fnuz|float8_e5m2fnuz"),
    ),
    Known(
        "the initial value of a reduction counts",
        "dovetail.lax: reduce",
        of("value", r"lax\.reduce", call=r"^(?!.* (0(\.0)?, lax\.add|1(\.0)?, lax\.mul))"),
    ),
    Known(
        "the incomplete gamma functions are accurate for large arguments",
        "dovetail.lax: igamma",
        of("value", r"lax\.igammac?"),
    ),
    Known(
        "the incomplete gamma functions are accurate for large arguments",
        "dovetail.lax: igamma",
        of("value", r"lax\.igamma_grad_a", theirs="inf"),
    ),
    Known(
        "the bits of floats differ where these are rounded",
        None,
        pairs(r"lax\.bitcast_convert_type|method view", is_rounded),
    ),
    Known(
        "there are zeros below the diagonal",
        "dovetail.lax.linalg: cholesky_update",
        pairs(r"lax\.linalg\.cholesky_update", lambda a, b: is_zero(a)),
    ),
    Known(
        "what a group holds never reaches another",
        "dovetail.lax: ragged_dot",
        of("value", r"lax\.ragged_dot", theirs="nan"),
    ),
    Known(
        "an integer divided by zero is 0; infinities as in the array API standard",
        "dovetail.numpy: floor_divide",
        pairs(DIVISIONS, lambda a, b: is_zero(a) or is_special(a) or is_special(b)),
    ),
    Known(
        "the ends of a sequence are those that were given",
        "dovetail.numpy: geomspace",
        pairs(r"jnp\.geomspace", lambda a, b: "nan" in b or b in ("0", "True")),
    ),
    Known(
        "unsigned integers are floats before anything is subtracted from them",
        "dovetail.nn: log_sigmoid",
        of("value", r"nn\.log_sigmoid|nn\.log1mexp", theirs=r"nan|inf|\d{3,}\.0|e\+"),
    ),
    Known(
        "integers are floats before they are negated",
        "dovetail.nn: log_sigmoid",
        of("value", r"nn\.log_sigmoid", r"-2147483648\.0|-9\.223\d+e\+18"),
    ),
    Known(
        "integers are floats before they are squared",
        None,
        pairs(r"nn\.squareplus", lambda a, b: abs(float(a)) > 2**15 or float(b) < 0),
    ),
    Known(
        "integers are floats before they are squared",
        None,
        of("value", r"nn\.standardize", theirs=r"\d{5,}\.|e\+|nan|inf"),
    ),
    Known(
        "of two elements that are as near the one in the even place is taken",
        "dovetail.numpy: quantile",
        of("value", r"jnp\.(nan)?(quantile|percentile)", call="nearest"),
    ),
    *(
        Known(
            "integers of Python are compared by value",
            "dovetail.numpy: equal",
            of("value", COMPARISONS, r"^\* bool", call=call, dtypes=dtypes),
        )
        for call, dtypes in (
            (r"(^| |\()-\d|\d{3,}", ""),
            (r"(?<![\w.])([2-9]|\d{2,})(?![\w.])", r"\bu?int[24]\b"),
            ("", r"\buint\d.*\bint\d|\bint\d.*\buint\d"),
        )
    ),
    Known(
        "zeros keep their signs",
        "dovetail.numpy: modf",
        pairs(
            r"lax\.(rsqrt|div|atan2)|jnp\.(divide|true_divide|reciprocal)|operator /",
            lambda a, b: {a, b} == {"inf", "-inf"},
        ),
    ),
    Known(
        "what a result does not depend on has no derivative, not an infinite one times zero",
        None,
        lambda d: d.mode == "grad" and pairs(ANY, lambda a, b: is_zero(a) and b == "nan")(d),
    ),
    Known(
        "the derivative at the origin is zero",
        None,
        lambda d: (
            d.mode == "grad"
            and pairs(r".*\bjnp\.hypot\b.*", lambda a, b: b == "nan" or is_one_less(a, b))(d)
        ),
    ),
    Known(
        "the power of zero is zero where its limit is",
        None,
        pairs(
            r"(jnp|lax)\.(float_)?pow(er)?|operator \*\*", lambda a, b: is_zero(a) and "nan" in b
        ),
    ),
    Known(
        "zero is the hypotenuse of zeros in dtypes without a negative zero, too",
        None,
        pairs(r"jnp\.hypot", lambda a, b: is_zero(a) and b == "nan"),
    ),
    Known(
        "an infinite argument times zero is nan, as in NumPy",
        None,
        pairs(r"jnp\.polyval", lambda a, b: a == "nan"),
    ),
    Known(
        "the derivative in the shape vanishes at infinity",
        None,
        pairs(r"lax\.igamma_grad_a", lambda a, b: is_zero(a) and b == "nan"),
    ),
    Known(
        "a predicate that is an integer counts as true unless it is zero, in derivatives, too",
        None,
        lambda d: d.mode == "grad" and of("value", r"lax\.select")(d),
    ),
    Known(
        "nan is one element of a set",
        None,
        of("value", r"jnp\.(setdiff1d|setxor1d|union1d|intersect1d)", theirs="nan"),
    ),
    Known(
        "numbers of more periods than their digits can count have no phase",
        None,
        pairs(r"jnp\.unwrap", lambda a, b: are_apart(a, b, 1e6)),
    ),
    Known(
        "there is no area below one point, and an infinite one below infinity",
        None,
        pairs(r"jnp\.trapezoid", lambda a, b: a in ("0.0", "inf", "-inf") and b == "nan"),
    ),
    Known(
        "what a loop carries is not weakly typed, and is not rounded to narrower operands",
        "dovetail.lax: scan",
        pairs(r"lax\.(scan|while_loop|fori_loop)", is_rounded),
    ),
    Known(
        "integers are floats before they are negated",
        "dovetail.nn: soft_sign",
        of("value", r"nn\.soft_sign", r"-1\.0", r"[^-]1\.0"),
    ),
    Known(
        "unsigned integers are floats before anything is subtracted from them",
        "dovetail.nn: log_sigmoid",
        of("value", r"nn\.(log_)?softmax", theirs=r"nan|inf"),
    ),
    Known(
        "integers are floats before anything is subtracted from them",
        None,
        pairs(r"nn\.(log_)?softmax", lambda a, b: abs(float(a)) >= 2**31),
    ),
    Known(
        "JAX sorts integers of two bits in another order",
        None,
        of("value", r"(jnp|lax)\.(arg)?sort\w*", dtypes=r"\bu?int2\b"),
    ),
    Known(
        "nan is the minimum, and the maximum, of complex numbers, too",
        None,
        pairs(
            r"(at |lax\.(scatter|reduce)_|(jnp\.|method )a?)(min|max)|(jnp\.|method )ptp",
            lambda a, b: "nan" in a and "j" in b,
        ),
    ),
    Known(
        "between infinities there are no bins",
        None,
        of("value", r"jnp\.histogram\w*", r"nan, nan\]", r"inf, -?inf\]"),
    ),
    Known(
        "a complex number is nan where either part is",
        None,
        pairs(r"jnp\.fm(in|ax)", lambda a, b: "nan" in b and "nan" not in a),
    ),
    Known(
        "integers are floats before they are made positive",
        None,
        pairs(r"nn\.soft_sign", lambda a, b: is_special(b) or abs(float(b)) > 1),
    ),
    Known(
        "a set without elements is filled with zeros",
        None,
        pairs(r"jnp\.intersect1d", lambda a, b: is_zero(a)),
    ),
    Known(
        "powers that are all zero have the coefficient zero",
        None,
        pairs(r"jnp\.polyfit", lambda a, b: is_zero(a) and b == "nan"),
    ),
    Known(
        "a fit has a derivative where its singular values are equal, too",
        None,
        lambda d: d.mode == "grad" and pairs(r"jnp\.polyfit", lambda a, b: b == "nan")(d),
    ),
    Known(
        "a polynomial without coefficients is zero",
        None,
        pairs(r"jnp\.polymul", lambda a, b: is_zero(a) and b == "nan"),
    ),
    Known(
        "an infinite number is a quantile of its own",
        None,
        pairs(
            r"jnp\.(nan)?(quantile|percentile)", lambda a, b: a in ("inf", "-inf") and b == "nan"
        ),
    ),
    Known(
        "JAX's products of small integers lose their upper half",
        None,
        of("value", r"lax\.mulhi", dtypes=r"\bu?int[24]\b"),
    ),
    Known(
        "JAX reads six bits of an exponent that is an array",
        None,
        lambda d: (
            of("value", r"jnp\.pow(er)?|operator \*\*", r"^\* u?int(32|64)")(d)
            and pairs(ANY, lambda a, b: is_zero(a) or abs(int(a)) >= 2**15)(d)
        ),
    ),
    Known(
        "the sign of a complex number has a derivative",
        "dovetail.lax: sign",
        lambda d: d.mode == "grad" and of("value", r"(jnp|lax)\.sign", r"^\* complex")(d),
    ),
    Known(
        "the incomplete beta function is one at one",
        None,
        pairs(r"lax\.betainc", lambda a, b: a == "1.0" and b == "nan"),
    ),
    Known(
        "JAX passes on the memory of NumPy's array, which may be gone",
        None,
        lambda d: d.mode == "vmap" and of("value", r"lax\.stop_gradient", r"^\* u?int")(d),
    ),
    Known(
        "products of infinite complex numbers depend on their order",
        None,
        pairs(
            r"(jnp|lax)\.cum(ulative_)?prod|jnp\.trapezoid",
            lambda a, b: is_special(a) and is_special(b),
        ),
    ),
    Known(
        "a determinant that is infinite has a sign",
        None,
        of("value", r"jnp\.linalg\.slogdet", theirs=r"nan"),
    ),
    Known(
        "negative numbers become the unsigned integer zero",
        None,
        lambda d: (
            of("value", r"jnp\.insert", r"^\* uint")(d) and pairs(ANY, lambda a, b: is_zero(a))(d)
        ),
    ),
    Known(
        "nan comes last in dtypes without a negative zero, too",
        None,
        of("value", r"(jnp|lax)\.sort\w*", theirs=r"nan", dtypes=r"float8_\w+fnuz"),
    ),
    Known(
        "the sign of an imaginary zero says on which side of the cut a number is",
        None,
        pairs(
            r"(jnp|lax)\.a(rc)?(sin|cos|tan)h?",
            lambda a, b: "j" in a and is_rounded(a, b),
        ),
    ),
    Known(
        "mixed floats are interpolated in the wider dtype",
        None,
        lambda d: (
            of("value", r"jnp\.interp", dtypes=r"float16\b.*\bfloat(32|64)|float(32|64).*float16")(
                d
            )
            and pairs(ANY, lambda a, b: not are_apart(a, b, 0.01 * max(1, abs(float(b)))))(d)
        ),
    ),
    Known(
        "transforms of numbers of 16 bits differ by their rounding",
        None,
        lambda d: (
            of("value", r"jnp\.fft\.\w+", dtypes=r"float16")(d)
            and pairs(ANY, lambda a, b: abs(complex(a) - complex(b)) < 0.01 * abs(complex(b)))(d)
        ),
    ),
    Known(
        "a number at an edge is in the bin above it",
        "dovetail.numpy: histogram",
        lambda d: of("value", r"jnp\.histogram(2d|dd)?")(d) and is_moved(d),
    ),
    Known(
        "equal elements share the derivative of the extreme",
        None,
        lambda d: (
            d.mode == "grad" and of("value", r"lax\.cum(max|min)|jnp\.partition")(d) and is_moved(d)
        ),
    ),
    Known(
        "what a loop carries is not weakly typed, so that it does not become unsigned",
        "dovetail.lax: scan",
        pairs(
            r"lax\.(scan|while_loop|fori_loop|map)",
            lambda a, b: b.isdigit() and int(b) >= 2**31,
        ),
    ),
    Known(
        "what is single is converted to double after it is rounded",
        None,
        lambda d: (
            of("value", r"through dt\.new_ref", r"(float64|complex128)\[")(d)
            and pairs(ANY, is_rounded)(d)
        ),
    ),
    Known(
        "positions beyond int32 are out of bounds",
        None,
        pairs(r"jnp\.take_along_axis", lambda a, b: a in ("4294967295", "18446744073709551615")),
    ),
    Known(
        "integers are divided by numbers that are none",
        "dovetail: Array.at",
        of("value", r"at divide", theirs=r"nan|inf"),
    ),
    Known(
        "booleans are divided by numbers that are none",
        "dovetail: Array.at",
        of("value", r"at divide", theirs=r"\[([01]\.0(, )?)*\]$"),
    ),
    Known(
        "an integer divided by zero is the same in each program",
        "dovetail.lax: div",
        lambda d: d.mode != "eager" and of("value", r"lax\.div", r"\* u?int")(d),
    ),
    Known(
        "equal numbers share the gradient of the greater or the smaller one",
        "dovetail.numpy: fmax",
        lambda d: d.mode == "grad" and of("value", r"jnp\.fm(ax|in)")(d),
    ),
    Known(
        "the result is sorted as a whole",
        "dovetail.numpy: partition",
        lambda d: of("value", r"jnp\.(arg)?partition")(d) and is_reordered(d),
    ),
    Known(
        "JAX loses gradients that are small beside the inverse of the matrix",
        None,
        lambda d: (
            d.mode == "grad"
            and pairs(r"(jnp|lax)\.linalg\.qr", lambda a, b: is_zero(b) and not is_special(a))(d)
        ),
    ),
    Known(
        "what is factored from nan or infinity is nan",
        None,
        lambda d: (
            of("value", r"(lax|jnp)\.linalg\.(svd|qr|eigh|schur|hessenberg|tridiagonal)")(d)
            and not_finite(d.ours)
        ),
    ),
    Known(
        "floats of 8 bits have logarithms of sums",
        "dovetail.lax: cumlogsumexp",
        of("value", r"lax\.cumlogsumexp", r"^\* float8", "nan"),
    ),
    Known(
        "the maximum of no complex numbers is less than any",
        "dovetail.lax: reduce_min",
        of(
            "value",
            r"lax\.(reduce_|cum)(min|max)|jnp\.nan(min|max)",
            r"^\* complex.*inf",
            r"inf[+-]0j",
        ),
    ),
    Known(
        "elements are copied, nan and infinities, too",
        "dovetail.lax: conv_general_dilated_patches",
        of("value", r"lax\.conv_general_dilated_patches", theirs="nan"),
    ),
    Known(
        "the condition of a matrix that is singular but for rounding has no figures",
        None,
        of("value", r"jnp\.linalg\.cond", NO_FIGURES, NO_FIGURES),
    ),
    Known(
        "older versions of JAX",
        None,
        lambda d: d.mode == "grad" and of("value", r".*\b(arc|a)cosh\b.*", "j|nan")(d),
    ),
    Known(
        "the sign of complex numbers has a derivative",
        "dovetail.lax: sign",
        lambda d: d.mode == "grad" and of("value", r"(jnp|lax)\.sign", "complex", r"\b0j")(d),
    ),
    Known(
        "the fraction of an infinity is zero",
        "dovetail.numpy: modf",
        pairs(r"jnp\.modf", lambda a, b: is_zero(a) and b == "nan"),
    ),
    Known(
        "what is multiplied by a beta of 0 is not read",
        "dovetail.lax.linalg: symmetric_product",
        of("value", r"lax\.linalg\.symmetric_product", theirs="nan"),
    ),
    Known(
        "sums of squares have a derivative where they vanish",
        "dovetail.numpy.linalg: lstsq",
        lambda d: d.mode == "grad" and of("value", r".*\bjnp\.linalg\.lstsq\b.*", theirs="nan")(d),
    ),
    Known(
        "infinities are scaled",
        "dovetail.numpy.fft: ihfft",
        of("value", r"jnp\.fft\.ihfft", "inf", "inf[+-]nanj"),
    ),
    Known(
        "zeros at the ends of windows are exact",
        None,
        of("value", r"jnp\.blackman", r"[[ ]0\.0\b", r"-1\.49\d+e-08"),
    ),
    Known(
        "JAX scales eigenvalues of large matrices by a power of two",
        "dovetail.numpy.linalg: eigvals",
        of("value", r"jnp\.linalg\.eig(vals)?", theirs=r"1099511627776"),
    ),
    Known(
        "distances have the signs of numbers",
        "dovetail.numpy: spacing",
        of("value", r"jnp\.spacing", r"^\* float16"),
    ),
    Known(
        "infinite at infinity",
        "dovetail.numpy: i0",
        of("value", r"jnp\.i0", rf"{LEAF}inf(, inf)*\]$", rf"{LEAF}nan(, nan)*\]$"),
    ),
    Known(
        "derivatives of powers at (0, 0) are 0",
        "dovetail.numpy: power",
        lambda d: (
            d.mode == "grad"
            and of("value", r".*\b(jnp|lax)\.(pow|power|float_power)\b.*", theirs=f"{LEAF}nan")(d)
        ),
    ),
    Known(
        "where a number equals a bound, the derivative is that of the bound",
        "dovetail.lax: clamp",
        lambda d: d.mode == "grad" and of("value", r".*\blax\.clamp\b.*")(d),
    ),
    Known(
        "what divides keeps its fraction and sign",
        "dovetail: Array.at",
        of("value", r"at divide", r"^\* b?float"),
    ),
    Known(
        "what JAX makes of integers to negative powers has no meaning",
        None,
        pairs(r"at power|jnp\.(pow|power)|operator \*\*", lambda a, b: a in ("-1", "0", "1")),
    ),
    Known(
        "of infinities and nan matrices and transforms make one or the other",
        None,
        lambda d: (
            of("value", r"(lax|jnp)\.(linalg|fft)\..*")(d)
            and not_finite(d.ours)
            and not_finite(d.theirs)
        ),
    ),
    Known(
        "unsigned integers are never below -1",
        "dovetail.nn: hard_tanh",
        of("value", r"nn\.hard_tanh", r"^\* uint"),
    ),
    Known(
        "the logarithmic derivative of the gamma function is -inf at 0",
        "dovetail.lax: digamma",
        of("value", r"lax\.digamma", rf"{LEAF}-inf(, -inf)*\]$", rf"{LEAF}nan(, nan)*\]$"),
    ),
    Known(
        "older versions of JAX",
        None,
        of("value", r"jnp\.sinc", rf"{LEAF}-?0\.0(, -?0\.0)*\]$", rf"{LEAF}nan(, nan)*\]$"),
    ),
)
