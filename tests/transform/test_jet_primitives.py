"""The Taylor series of every primitive: equal to nested jvp, and of few operations."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dovetail as dt
from dovetail._core.ir.walk import count_equations
from dovetail.experimental.jet import jet
from dovetail.testing.checks import apply, smooth_samples
from dovetail.testing.numerics import far, is_inexact, random_like
from dovetail.testing.samples import all_samples, defined_primitives

pytestmark = pytest.mark.laws

NAMES = sorted(name for name in all_samples() if not defined_primitives()[name].no_derivative)


def chosen(name):
    """Two of the samples with something to differentiate: functions, arguments, derivatives."""
    primitive = defined_primitives()[name]
    found = smooth_samples(all_samples()[name])
    found = [found[i] for i in sorted({0, len(found) // 2}) if found]
    generator = np.random.default_rng(0)
    for sample, wide in found:
        positions = sample.differentiable_positions()
        series = [[random_like(wide[p], generator) for _ in range(3)] for p in positions]

        def function(*moving, sample=sample, wide=wide, positions=positions):
            full = list(wide)
            for position, value in zip(positions, moving, strict=True):
                full[position] = value
            return [o for o in apply(primitive, sample, full) if is_inexact(o)]

        yield sample, function, [wide[p] for p in positions], series


def nested(function, primals, series, order):
    """Derivatives along the curve by nested jvp."""

    def along(t):
        return function(
            *(
                p + sum(t**k * x / math.factorial(k) for k, x in enumerate(terms, 1))
                for p, terms in zip(primals, series, strict=True)
            )
        )

    def derivatives(t):
        return [along(t)]

    for _ in range(order):
        previous = derivatives

        def derivatives(t, previous=previous):
            found, further = dt.jvp(previous, (t,), (1.0,))
            return [*found, further[-1]]

    return derivatives(0.0)


@pytest.mark.parametrize("name", NAMES)
def test_terms_are_nested_derivatives(name):
    with dt.enable_x64(True), np.errstate(all="ignore"):
        samples = list(chosen(name))
        # Compiling nested derivatives is what takes time.
        orders = [
            (2 if i else 3) if sample.order > 1 else 1 for i, (sample, *_) in enumerate(samples)
        ]

        @dt.jit
        def both(arguments):
            results = []
            for (_, function, *_), order, (primals, series) in zip(
                samples, orders, arguments, strict=True
            ):
                given = [terms[:order] for terms in series]
                first, terms = jet(function, primals, given)
                results.append((first, terms, nested(function, primals, given, order)))
            return results

        results = both([(primals, series) for _, _, primals, series in samples])
    wrong = []
    for (sample, *_), (first, terms, derivatives) in zip(samples, results, strict=True):
        for order, derivative in enumerate(derivatives):
            for i, want in enumerate(derivative):
                found = terms[i][order - 1] if order else first[i]
                if message := far(found, want, 1e-9):
                    wrong.append(f"{sample}: result {i}, derivative {order}: {message}")
    assert not wrong, "\n".join(wrong)


def counted(function, primals, series, order):
    """The number of equations of the series to an order."""

    def run(*primals):
        return jet(function, primals, [terms[:1] * order for terms in series])

    return count_equations(dt.make_jaxpr(run)(*primals))


@pytest.mark.parametrize("name", NAMES)
def test_cost_is_a_power_of_the_order(name):
    """Twice the order takes up to 12 times the equations, where nested jvp takes 16 times."""
    with dt.enable_x64(True), np.errstate(all="ignore"):
        for sample, function, primals, series in chosen(name):
            if sample.order > 1:
                few, many = (counted(function, primals, series, order) for order in (4, 8))
                assert many <= 12 * few, f"{sample}: {few} at order 4, {many} at order 8"
