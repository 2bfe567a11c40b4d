"""Errors of special functions in units in the last place, and those of JAX, as a table.

    python accuracy.py [--jax PYTHON] [--only NAME] [--output accuracy.md]

Exact values are mpmath's. `--jax` is an interpreter that has JAX, which is given the same operands.
A function is added by a line in `FUNCTIONS`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

NDArray = np.ndarray[Any, Any]
DTYPES = ("float32", "float64")
#: How many numbers of each domain are tried.
COUNT = 200


class Range(NamedTuple):
    """A domain of an operand."""

    low: float
    high: float
    #: Whether the logarithms are spread evenly, instead of the numbers.
    logarithmic: bool = False
    #: Whether only whole numbers are meant.
    whole: bool = False

    def numbers(self, random: np.random.Generator) -> NDArray:
        if self.logarithmic:
            low, high = np.log(abs(self.low)), np.log(abs(self.high))
            return np.asarray(np.sign(self.low) * np.exp(random.uniform(low, high, COUNT)))
        drawn = random.uniform(self.low, self.high, COUNT)
        return np.floor(drawn) if self.whole else drawn

    def __str__(self) -> str:
        kind = "log " if self.logarithmic else "whole " if self.whole else ""
        return f"{kind}[{self.low:g}, {self.high:g}]"


class Function(NamedTuple):
    """A row of the table."""

    name: str
    domains: Sequence[Range]
    #: The exact function, of mpmath's numbers; mpmath itself is passed first.
    exact: Callable[..., Any]


def log_normal(mp: Any, x: Any) -> Any:
    return mp.log(mp.ncdf(x)) if x < 0 else mp.log1p(-mp.ncdf(-x))


def inverse_erfc(mp: Any, y: Any) -> Any:
    """By Newton's method in logarithms: mpmath has no inverse of the complementary function."""
    if y > 0.5:
        return mp.erfinv(1 - y)
    x = mp.sqrt(-mp.log(y))
    for _ in range(60):
        value = mp.erfc(x)
        step = mp.log(value / y) * value * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
        x += step
        if abs(step) < mp.mpf(10) ** -30 * abs(x):
            break
    return x


def quantile(mp: Any, p: Any) -> Any:
    return -mp.sqrt(2) * inverse_erfc(mp, 2 * p)


def xlogy(mp: Any, x: Any, y: Any) -> Any:
    return x * mp.log(y)


def divergence(mp: Any, p: Any, q: Any) -> Any:
    return p * mp.log(p / q) - p + q


def box_cox(mp: Any, x: Any, power: Any) -> Any:
    return mp.expm1(power * mp.log(x)) / power


def multivariate(mp: Any, a: Any) -> Any:
    return 1.5 * mp.log(mp.pi) + mp.fsum(mp.loggamma(a - mp.mpf(i) / 2) for i in range(3))


def owens(mp: Any, h: Any, a: Any) -> Any:
    def density(t: Any) -> Any:
        return mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t) / (2 * mp.pi)

    with mp.workdps(30):
        return mp.quad(density, [0, a / 2, a])


def faddeeva(mp: Any, x: Any, y: Any) -> Any:
    z = mp.mpc(x, y)
    return mp.exp(-z * z) * mp.erfc(mp.mpc(y, -x))


def dawson(mp: Any, x: Any) -> Any:
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


#: Functions of `scipy.special`, by topic; a name may have several rows.
FUNCTIONS: tuple[Function, ...] = (
    Function("gammaln", [Range(1e-3, 1e6, True)], lambda mp, x: mp.loggamma(x)),
    Function("gammaln", [Range(-20, 0)], lambda mp, x: mp.log(abs(mp.gamma(x)))),
    Function("gamma", [Range(1e-3, 33)], lambda mp, x: mp.gamma(x)),
    Function("gamma", [Range(-20, 0)], lambda mp, x: mp.gamma(x)),
    Function("digamma", [Range(1e-3, 1e6, True)], lambda mp, x: mp.psi(0, x)),
    Function("beta", [Range(0.1, 30), Range(0.1, 30)], lambda mp, a, b: mp.beta(a, b)),
    Function(
        "betaln",
        [Range(1e-3, 1e8, True), Range(1e-3, 1e8, True)],
        lambda mp, a, b: mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b),
    ),
    Function("poch", [Range(0.1, 50), Range(0, 10)], lambda mp, z, m: mp.rf(z, m)),
    Function("poch", [Range(1e3, 1e6, True), Range(-3, 3)], lambda mp, z, m: mp.rf(z, m)),
    Function("multigammaln", [Range(1.1, 50)], multivariate),
    Function("comb", [Range(30, 60), Range(0, 30)], lambda mp, n, k: mp.binomial(n, k)),
    Function(
        "comb",
        [Range(30, 60, whole=True), Range(0, 30, whole=True)],
        lambda mp, n, k: mp.binomial(n, k),
    ),
    Function("factorial", [Range(0, 33, whole=True)], lambda mp, n: mp.factorial(n)),
    Function(
        "gammainc",
        [Range(0.1, 50, True), Range(0.1, 50, True)],
        lambda mp, a, x: mp.gammainc(a, 0, x, regularized=True),
    ),
    Function(
        "gammaincc",
        [Range(0.1, 50, True), Range(0.1, 50, True)],
        lambda mp, a, x: mp.gammainc(a, x, regularized=True),
    ),
    Function("erf", [Range(-4, 4)], lambda mp, x: mp.erf(x)),
    Function("erfc", [Range(-3, 9)], lambda mp, x: mp.erfc(x)),
    Function("erfinv", [Range(-1, 1)], lambda mp, x: mp.erfinv(x)),
    Function("erfcinv", [Range(1e-37, 1, True)], inverse_erfc),
    Function("ndtr", [Range(-12, 4)], lambda mp, x: mp.ncdf(x)),
    Function("ndtri", [Range(1e-37, 0.5, True)], quantile),
    Function("log_ndtr", [Range(-30, 8)], log_normal),
    Function("log_ndtr", [Range(-30, -1e4, True)], log_normal),
    Function("expit", [Range(-80, 80)], lambda mp, x: 1 / (1 + mp.exp(-x))),
    Function("logit", [Range(0, 1)], lambda mp, x: mp.log(x / (1 - x))),
    Function("xlogy", [Range(-3, 3), Range(0, 3)], xlogy),
    Function("xlog1py", [Range(-3, 3), Range(-1, 3)], lambda mp, x, y: x * mp.log1p(y)),
    Function("entr", [Range(0, 3)], lambda mp, x: -x * mp.log(x)),
    Function("rel_entr", [Range(0.1, 3), Range(0.1, 3)], lambda mp, p, q: p * mp.log(p / q)),
    Function("kl_div", [Range(0.9, 1.1), Range(0.9, 1.1)], divergence),
    Function("boxcox", [Range(1e-3, 50, True), Range(-6, 6)], box_cox),
    Function(
        "boxcox1p", [Range(1e-6, 50, True), Range(-6, 6)], lambda mp, x, n: box_cox(mp, 1 + x, n)
    ),
    Function(
        "polygamma",
        [Range(1, 8, whole=True), Range(0.1, 50, True)],
        lambda mp, n, x: mp.psi(int(n), x),
    ),
    Function(
        "betainc",
        [Range(0.1, 30), Range(0.1, 30), Range(0, 1)],
        lambda mp, a, b, x: mp.betainc(a, b, 0, x, regularized=True),
    ),
    Function("i0", [Range(-80, 80)], lambda mp, x: mp.besseli(0, x)),
    Function("i0e", [Range(1e-3, 1e4, True)], lambda mp, x: mp.exp(-x) * mp.besseli(0, x)),
    Function("i1", [Range(-80, 80)], lambda mp, x: mp.besseli(1, x)),
    Function("i1e", [Range(1e-3, 1e4, True)], lambda mp, x: mp.exp(-x) * mp.besseli(1, x)),
    Function("bessel_jn.3", [Range(0.1, 15)], lambda mp, z: mp.besselj(3, z)),
    Function("bessel_jn.3", [Range(15, 500)], lambda mp, z: mp.besselj(3, z)),
    Function("zeta", [Range(1.01, 20), Range(0.01, 20, True)], lambda mp, s, q: mp.zeta(s, q)),
    Function("zeta.riemann", [Range(-20, 1)], lambda mp, s: mp.zeta(s)),
    Function("zeta.riemann", [Range(1, 30)], lambda mp, s: mp.zeta(s)),
    Function("exp1", [Range(1e-3, 80, True)], lambda mp, x: mp.e1(x)),
    Function("expi", [Range(-40, 80)], lambda mp, x: mp.ei(x)),
    Function(
        "expn",
        [Range(0, 20, whole=True), Range(1e-3, 50, True)],
        lambda mp, n, x: mp.expint(n, x),
    ),
    Function("erfcx", [Range(-9, 50)], lambda mp, x: mp.exp(x * x) * mp.erfc(x)),
    Function("dawsn", [Range(-10, 10)], dawson),
    Function("wofz.real", [Range(-6, 6), Range(-1.5, 6)], lambda mp, x, y: faddeeva(mp, x, y).real),
    Function("wofz.imag", [Range(-6, 6), Range(-1.5, 6)], lambda mp, x, y: faddeeva(mp, x, y).imag),
    Function("sici.si", [Range(-30, 30)], lambda mp, x: mp.si(x)),
    Function("sici.ci", [Range(0.01, 100, True)], lambda mp, x: mp.ci(x)),
    Function("fresnel.s", [Range(-10, 10)], lambda mp, x: mp.fresnels(x)),
    Function("fresnel.c", [Range(-10, 10)], lambda mp, x: mp.fresnelc(x)),
    Function("spence", [Range(1e-3, 1e3, True)], lambda mp, x: mp.re(mp.polylog(2, 1 - x))),
    Function(
        "hyp1f1",
        [Range(0.2, 5), Range(0.2, 5), Range(-30, 30)],
        lambda mp, a, b, x: mp.hyp1f1(a, b, x),
    ),
    Function(
        "hyp2f1",
        [Range(0.2, 3), Range(0.2, 3), Range(3, 5), Range(-0.9, 0.9)],
        lambda mp, a, b, c, x: mp.hyp2f1(a, b, c, x),
    ),
    Function("owens_t", [Range(-4, 4), Range(-4, 4)], owens),
    # At the end: the place of a row gives the seed of its numbers.
    Function("bessel_jn.0", [Range(0.1, 15)], lambda mp, z: mp.besselj(0, z)),
    Function("bessel_jn.10", [Range(0.1, 15)], lambda mp, z: mp.besselj(10, z)),
    Function("ndtri", [Range(0, 1)], quantile),
)

#: What is called for rows that are not an array function of arrays.
CALLS: dict[str, Callable[..., Any]] = {
    "multigammaln": lambda special, a: special.multigammaln(a, 3),
    "polygamma": lambda special, n, x: special.polygamma(n.astype("int32"), x),
    "bessel_jn.0": lambda special, z: special.bessel_jn(z, v=0)[0],
    "bessel_jn.3": lambda special, z: special.bessel_jn(z, v=3)[3],
    "bessel_jn.10": lambda special, z: special.bessel_jn(z, v=10)[10],
    "zeta.riemann": lambda special, s: special.zeta(s),
    "wofz.real": lambda special, x, y: special.wofz(x + 1j * y).real,
    "wofz.imag": lambda special, x, y: special.wofz(x + 1j * y).imag,
    "sici.si": lambda special, x: special.sici(x)[0],
    "sici.ci": lambda special, x: special.sici(x)[1],
    "fresnel.s": lambda special, x: special.fresnel(x)[0],
    "fresnel.c": lambda special, x: special.fresnel(x)[1],
}


def operands_of(function: Function, dtype: str, seed: int) -> list[NDArray]:
    random = np.random.default_rng(seed)
    return [domain.numbers(random).astype(dtype) for domain in function.domains]


def evaluate(framework: str, source: str, target: str) -> None:
    """Compute all functions with one framework: run in a process of its own."""
    given = np.load(source)
    if framework == "jax":
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        special = importlib.import_module("jax.scipy.special")
    else:
        dovetail = importlib.import_module("dovetail")
        dovetail.config.update("jax_enable_x64", True)
        special = importlib.import_module("dovetail.scipy.special")
    results = {}
    for key in given["keys"]:
        name = str(key).split()[0]
        operands = [given[f"{key} {i}"] for i in range(int(given[f"{key} count"]))]
        try:
            got = (
                CALLS[name](special, *operands)
                if name in CALLS
                else getattr(special, name)(*operands)
            )
        except Exception as error:  # a function that is lacking is no row
            print(f"{framework}: {key}: {error}", file=sys.stderr)
            continue
        results[str(key)] = np.asarray(got)
    np.savez(target, **results)


def exact_values(function: Function, operands: Sequence[NDArray]) -> NDArray:
    import mpmath  # only this process needs it

    with mpmath.workdps(60):
        rows = zip(*([mpmath.mpf(float(e)) for e in x] for x in operands), strict=True)
        return np.array([float(function.exact(mpmath, *row)) for row in rows])


def errors(got: NDArray, wanted: NDArray) -> NDArray:
    """Differences in units in the last place; what underflows is no error."""
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = wanted.astype(got.dtype)
        unit = np.maximum(np.spacing(np.abs(rounded)).astype(float), float(info.tiny * info.eps))
        distance = np.abs(got.astype(float) - wanted) / unit
    same = (got == rounded) | ((np.abs(wanted) < info.tiny) & (np.abs(got) <= info.tiny))
    return np.where(same, 0, np.where(np.isfinite(distance), distance, np.inf))


def show(found: NDArray | None) -> list[str]:
    """The worst error and the median."""
    if found is None:
        return ["", ""]
    return [f"{found.max():.3g}", f"{np.median(found):.2g}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax", help="Python that has JAX")
    parser.add_argument("--only", default="", help="functions whose names contain this")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--evaluate", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.evaluate:
        evaluate(*options.evaluate)
        return 0
    from compare import processor, versions  # not in the processes that evaluate

    rows = [function for function in FUNCTIONS if options.only in function.name]
    pythons = {"dovetail": sys.executable} | ({"jax": options.jax} if options.jax else {})
    given: dict[str, Any] = {"keys": []}
    operands: dict[str, list[NDArray]] = {}
    for number, function in enumerate(rows):
        for dtype in DTYPES:
            key = f"{function.name} {number} {dtype}"
            given["keys"].append(key)
            operands[key] = operands_of(function, dtype, number)
            given[f"{key} count"] = len(operands[key])
            given |= {f"{key} {i}": x for i, x in enumerate(operands[key])}
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "operands.npz")
        np.savez(source, **given)
        for framework, python in pythons.items():
            target = os.path.join(folder, f"{framework}.npz")
            words = [python, __file__, "--evaluate", framework, source, target]
            subprocess.run(words, check=True)
            with np.load(target) as file:
                results[framework] = dict(file)

    head = " | ".join(f"{name} {dtype[5:]} | median" for dtype in DTYPES for name in pythons)
    lines = [
        f"{versions(pythons)}. {processor()}, {time.strftime('%Y-%m-%d')}. Errors in units "
        f"in the last place, the worst and the median of {COUNT} numbers of each domain.",
        "",
        f"| function | domains | {head} |",
        "|---|---" + "|--:" * (2 * len(DTYPES) * len(pythons)) + "|",
    ]
    for number, function in enumerate(rows):
        cells = [function.name, " x ".join(map(str, function.domains))]
        for dtype in DTYPES:
            key = f"{function.name} {number} {dtype}"
            wanted = exact_values(function, operands[key])
            for framework in pythons:
                got = results[framework].get(key)
                cells += show(None if got is None else errors(got, wanted))
        lines.append(f"| {' | '.join(cells)} |")
    text = "\n".join(lines) + "\n"
    print(text)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
