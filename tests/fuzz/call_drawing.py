"""Random calls of public functions, valid and invalid, as lines of Python."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from public_functions import LOOPS, Function, Parameter, public_functions

PRELUDE = """import ml_dtypes
import numpy as np
from numpy import inf, nan

import dovetail as dt
import dovetail.numpy as jnp
import dovetail.scipy as jsp
from dovetail import image, lax, nn, random, tree
from dovetail.experimental import ode
"""

COMMON = ("float32",) * 8 + ("int32",) * 4 + ("bool", "uint8", "complex64", "bfloat16", "float64")
ODD = (
    *("int2", "uint2", "int4", "uint4", "int8", "int16", "uint16", "uint32", "int64", "uint64"),
    *("float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn"),
    *("float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
    *("float16", "complex128"),
)
SHAPES = (
    *((), (1,), (2,), (3,), (3,), (2, 3), (3, 3), (3, 3), (2, 3, 3), (1, 1), (4, 3, 2, 1)),
    *((0,), (0, 3), (3, 0), (2, 0, 0), (2, 2, 2, 2, 2), (1,) * 9, (1,) * 40),
)
NUMBERS = ("0", "1", "2", "3", "-1", "-2", "0.5", "True", "1j", "5")
HUGE = ("2**31", "2**31 - 1", "-2**31", "2**32", "2**62", "2**63", "2**64", "-2**63", "2**200")
EXTREME = ("1e308", "inf", "-inf", "nan", "-0.0", "1e-320", "np.float64(1e300)", "np.int64(2**62)")
STRANGE = (
    *("None", "''", "'x'", "'float32'", "b'x'", "()", "[]", "{}", "set()", "object()", "int"),
    *("...", "slice(None)", "range(3)", "np.float32", "jnp", "lambda x: x", "NotImplemented"),
    *("{'a': 1}", "[[1, 2], [3]]", "np.array(['a'])", "np.array([None, 1], object)", "(None, 1)"),
    *("np.datetime64(0, 's')", "np.zeros(2, [('a', int)])", "iter([1])", "'\\ud800'", "[[]]"),
    *("dt.ShapeDtypeStruct((2,), 'float32')", "dt.devices()[0]", "random.key(0)", "['a', 'b']"),
    *("random.split(random.key(0), 3)", "np.random.default_rng(0)", "Exception", "dt.new_ref(1.0)"),
    *("jnp.zeros((2, 2)).at", "dt.float0", "np.zeros(2, dt.float0)", "[jnp.zeros(2), 1]", "1e5"),
)
FUNCTIONS = (
    *("jnp.sin", "lambda x: x", "lambda x: x * 2", "lambda *a: a[0]", "lambda x: (x, x)"),
    *("lambda x, y: x + y", "lambda c, x: (c, x)", "lambda *a, **k: None", "jnp.sum", "lax.add"),
    *("lambda i, c: c", "lambda x: x < 3", "lambda x: 'text'", "lambda: 1", "dt.jit(jnp.cos)"),
    *("lambda x: x[0]", "lambda x: 1.0 * (x if x > 0 else -x)", "lambda x: np.asarray(x)"),
    *(
        "lambda x: jnp.sum(x * x)",
        "lambda y, t: -y",
        "lambda x: 2 * x",
        "jnp.array([[2.0, 1], [1, 2]])",
    ),
)
INDICES = (
    *("0", "-1", "5", "2**31", "...", "None", ":", "::-1", "1:0", "0, 0", "..., 0", "None, 0"),
    *("[0, 1]", "jnp.array([0, 5])", "jnp.array([True, False])", "np.array([], int)", "'a'"),
    *("1.5", "True", "()", "[[0], [0]]", "jnp.array(0)", ":2**40", "jnp.zeros((0, 2), int)", "::0"),
    *("jnp.uint8(200)", "(0,) * 20", "[None]", "jnp.array([0.5])", "random.key(0)", "0, [0], :"),
)
#: Words that parameters of `scipy` take, by the parameter's name.
WORDS = {
    "assume_a": ("'gen'", "'pos'", "'sym'", "'her'"),
    "average": ("'mean'", "'median'"),
    "boundary": ("'fill'", "'wrap'", "'zeros'", "'even'", "None"),
    "bw_method": ("'scott'", "'silverman'", "0.5"),
    "detrend": ("'linear'", "'constant'", "False"),
    "distribution": ("'normal'", "'uniform'", "'truncated_normal'"),
    "kind": ("'symmetric'", "'lower'", "'upper'"),
    "lapack_driver": ("'gesdd'", "'gesvd'"),
    "method": ("'BFGS'", "'linear'", "'nearest'", "'fft'", "'direct'", "'average'", "'bicubic'"),
    "mode": ("'valid'", "'same'", "'full'", "'constant'", "'reflect'", "'economic'", "'psd'"),
    "nan_policy": ("'propagate'", "'omit'"),
    "norm": ("'ortho'", "'backward'", "None"),
    "output": ("'real'", "'complex'"),
    "scaling": ("'density'", "'spectrum'"),
    "select": ("'a'", "'i'", "'v'"),
    "seq": ("'xyz'", "'ZYX'", "'x'"),
    "solve_method": ("'batched'", "'incremental'"),
    "trans": ("0", "1", "2", "'T'"),
    "type": ("1", "2", "3", "4", "'linear'", "'constant'"),
    "window": ("'hann'", "'boxcar'", "('tukey', 0.5)", "jnp.ones(3)", "('gaussian', 2)"),
}
MODES = ("'clip'", "'fill'", "'wrap'", "'drop'", "'edge'", "'reflect'", "'full'", "'same'", "'x'")
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "@", "<", "==", "&", "|", "^", "<<", ">>")

#: How a call is transformed, by weight.
WRAPPERS = {
    "{call}": 60,
    "dt.jit(lambda x: {call})({x})": 12,
    "dt.vmap(lambda x: {call})({x})": 8,
    "dt.grad(lambda x: jnp.sum(jnp.abs({call})))({x})": 5,
    "dt.jvp(lambda x: {call}, ({x},), ({x},))": 4,
    "dt.make_jaxpr(lambda x: {call})({x})": 4,
    "dt.eval_shape(lambda x: {call}, {x})": 3,
    "dt.jit(lambda x: {call}).lower({x})": 2,
    "dt.vjp(lambda x: {call}, {x})": 2,
}


@dataclass(frozen=True, slots=True)
class Call:
    """A call, as a line of Python that follows `PRELUDE`, and whether 64-bit types are on."""

    seed: int
    function: str
    line: str
    x64: bool

    def script(self) -> str:
        """A program that makes the call."""
        x64 = "dt.config.update('enable_x64', True)\n" if self.x64 else ""
        return f"{PRELUDE}{x64}{self.line}"


class CallDraw:
    """A source of calls.

    Args:
        seed: the same seed gives the same call.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.fits = self.random.choice((0.5, 0.9, 1.0))
        self.huge = self.random.random() < 0.15
        self.shape = self.pick(SHAPES)

    def pick(self, options: Any) -> Any:
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def call(self) -> Call:
        """The call."""
        form = self.random.random()
        if form < 0.03:
            function, line = "operator", f"{self.value()} {self.pick(OPERATORS)} {self.array()}"
        elif form < 0.07:
            function, line = "[]", f"{self.array()}[{self.pick(INDICES)}]"
        else:
            chosen: Function = self.pick(public_functions())
            function = chosen.name
            self.huge = self.huge and function not in LOOPS
            line = self.line(chosen)
        return Call(self.seed, function, line, self.chance(0.3))

    def line(self, function: Function) -> str:
        """A call of a function, transformed or not."""
        arguments = self.arguments(function)
        name = function.name
        if name.startswith("."):
            name = self.array() + name.replace("INDEX", self.pick(INDICES))
        wrapper = self.random.choices([*WRAPPERS], [*WRAPPERS.values()])[0]
        x = ""
        if "{x}" in wrapper:
            places = [i for i, argument in enumerate(arguments) if "jnp." in argument]
            x = self.array()
            if places and not function.name.startswith("."):
                keyword, equals, x = arguments[places[0]].rpartition("=")
                if not re.fullmatch(r"\w*", keyword):
                    keyword, equals, x = "", "", arguments[places[0]]
                arguments[places[0]] = f"{keyword}{equals}x"
        return wrapper.format(call=f"{name}({', '.join(arguments)})", x=x)

    def arguments(self, function: Function) -> list[str]:
        """What a function is given, in order."""
        made: list[str] = []
        by_name = False
        for parameter in function.parameters:
            if parameter.several:
                count = self.pick((0, 1, 1, 2, 3))
                made += [] if by_name else [self.argument(parameter) for _ in range(count)]
                by_name = True
                continue
            if parameter.optional and not self.chance(0.25):
                by_name = True
                continue
            if not parameter.optional and self.chance(0.01):
                break  # too few of them
            by_name = by_name or parameter.keyword
            given = self.argument(parameter)
            made.append(f"{parameter.name}={given}" if by_name else given)
        return made

    def argument(self, parameter: Parameter) -> str:
        """An argument, which mostly is of the kind that a parameter of this name takes."""
        if self.chance(self.fits):
            if parameter.name in WORDS and self.chance(0.5):
                return str(self.pick(WORDS[parameter.name]))
            for pattern, draw in KINDS:
                if pattern.fullmatch(parameter.name):
                    return str(draw(self))
            return self.array() if self.chance(0.8) else self.pick(NUMBERS)
        return self.value()

    def value(self) -> str:
        """Anything."""
        kind = self.random.random()
        if kind < 0.3:
            return self.array()
        if kind < 0.45:
            return str(self.pick(NUMBERS))
        if kind < 0.55:
            return str(self.pick(EXTREME))
        if kind < 0.62:
            return self.number()
        if kind < 0.7:
            return self.tuple()
        if kind < 0.75:
            return str(self.pick(FUNCTIONS))
        return str(self.pick(STRANGE))

    def number(self) -> str:
        """An integer, now and then one that no array has the size of."""
        return str(
            self.pick(HUGE if self.huge and self.chance(0.5) else ("0", "1", "2", "3", "-1"))
        )

    def tuple(self) -> str:
        """Some integers."""
        count = self.pick((0, 1, 2, 2, 3))
        numbers = [self.number() for _ in range(count)]
        if "0" in numbers:
            # XLA takes minutes to compile what is empty but for a size of 2**31.
            numbers = ["2" if number in HUGE else number for number in numbers]
        return "(" + "".join(f"{number}, " for number in numbers) + ")"

    def axis(self) -> str:
        return str(self.pick((self.number, self.number, self.tuple, lambda: "None"))())

    def dtype(self) -> str:
        name = self.pick(ODD if self.chance(0.3) else COMMON)
        return self.choice(f"'{name}'", f"'{name}'", f"jnp.{name}", "float", "int", "complex")

    def shape_of_result(self) -> str:
        if self.chance(0.6):
            return repr(self.pick(SHAPES[:-1]))
        return str(self.pick((self.tuple, self.number))())

    def key(self) -> str:
        return self.choice(
            *("random.key(0)",) * 4, "random.PRNGKey(1)", "random.key(2, impl='rbg')"
        )

    def array(self) -> str:
        """An array, of one shape more often than not."""
        shape = self.shape if self.chance(0.6) else self.pick(SHAPES)
        dtype = self.pick(ODD if self.chance(0.25) else COMMON)
        size = math.prod(shape)
        kind = self.random.random()
        if kind < 0.3:
            return f"jnp.full({shape}, {self.pick((0, 1, 1, 2))}, '{dtype}')"
        if kind < 0.6:
            return f"jnp.arange({size}).reshape({shape}).astype('{dtype}')"
        if kind < 0.75:
            values = self.pick(("[inf, nan, -0.0, 1e30]", "[nan]", "[inf]", "[1e-45, -1e38]"))
            return f"jnp.array(np.resize({values}, {shape})).astype('{dtype}')"
        if kind < 0.85:
            return f"np.ones({shape}, jnp.{dtype})"
        if kind < 0.9:
            return repr([1.0, 2.0, 3.0]) if self.chance(0.5) else "[[1, 2], [3, 4]]"
        return f"jnp.ones({shape})"

    def arrays(self) -> str:
        return f"[{self.array()}, {self.array()}]"

    def tree(self) -> str:
        return self.choice(f"{{'a': {self.array()}, 'b': (1, None)}}", self.arrays(), self.array())

    def choice(self, *options: str) -> str:
        return str(self.pick(options))


def _kind(names: str, draw: Callable[[CallDraw], str]) -> tuple[re.Pattern[str], Any]:
    return re.compile(names.replace(" ", "|")), draw


#: What parameters take, by patterns of their names; the first that matches holds.
KINDS = (
    _kind("axis axes axis1 axis2 dimension dimensions dims perm permutation source", CallDraw.axis),
    _kind("destination start_axis offset shifts? shift repeats reps pad_width", CallDraw.axis),
    _kind(
        "shape newshape new_sizes size sizes out_shape slice_sizes dims", CallDraw.shape_of_result
    ),
    _kind(".*dtype out_type new_dtype preferred_element_type", CallDraw.dtype),
    _kind("key keys", CallDraw.key),
    _kind(
        "f fun func function .*_fun(n)? f_.* body.* cond.* callback fwd bwd",
        lambda d: d.pick(FUNCTIONS),
    ),
    _kind("is_leaf computation update_jaxpr solve transpose_solve", lambda d: d.pick(FUNCTIONS)),
    _kind("mode method kind side order", lambda d: d.pick(MODES)),
    _kind("k n m N M num deg bins length total_repeat_length decimals ndim", CallDraw.number),
    _kind(
        "num_.* .*_size .*num argnums static_argnums donate_argnums in_axes out_axes",
        CallDraw.number,
    ),
    _kind("axis_size maxval minval upper lower start stop step limit .*_index", CallDraw.number),
    _kind(
        "keepdims .*_is_.* is_.* full.* .*_sorted unique.* .*_rates inplace copy",
        lambda d: d.choice("True", "False"),
    ),
    _kind(
        "return_.* hermitian left_side holomorphic has_aux .*_unused",
        lambda d: d.choice("True", "False"),
    ),
    _kind(".*treedefs?", lambda d: d.choice("tree.structure([0, (0, 0)])", "tree.structure(0)")),
    _kind("tree .*tree.* pytree args primals.* tangents.* init.* operands xs", CallDraw.tree),
    _kind("arrays tup seq .*list arys choicelist condlist branches", CallDraw.arrays),
    _kind("points coordinates", CallDraw.arrays),
    _kind("lu_and_piv", lambda d: f"jsp.linalg.lu_factor({d.array()})"),
    _kind("c_and_lower", lambda d: f"({d.array()}, {d.choice('True', 'False')})"),
    _kind("n_.* max_.* diff_n series_order lwork blocksize maxiter restart d v", CallDraw.number),
    _kind("nperseg noverlap nfft order mxstep", CallDraw.number),
    _kind(
        "lower overwrite_.* check_finite eigvals_only exact repetition antialias pivoting unit_.*",
        lambda d: d.choice("True", "False"),
    ),
    _kind("subscripts", lambda d: d.choice("'ij,jk->ik'", "'i'", "'...i->i...'", "'ii'", "'i,->'")),
    _kind("name names axis_name", lambda d: d.choice("'x'", "''")),
)
