"""The printed form of jaxprs."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

from dovetail._core.base.bindings import get_traceback
from dovetail._core.ir.avals import abstract_token
from dovetail._core.ir.jaxpr import DropVar
from dovetail._core.ir.layout import Break, Group, Nest, render
from dovetail._core.ir.printer import NameTable, print_eqn, print_jaxpr
from dovetail.extend import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive, Var, primitives
from dovetail.extend.avals import make_aval

F32 = np.dtype(np.float32)
SCALAR = make_aval((), F32)
VECTOR = make_aval((3,), F32)


@cache
def named(name: str) -> Any:
    """The primitive of that name; where there is none, one of which nothing is known."""
    known = primitives()
    return known[name] if name in known else Primitive(name)


class Recorder:
    """Writes jaxprs down, one equation at a time."""

    def __init__(self, *avals: Any) -> None:
        self.invars = [Var(a) for a in avals]
        self.eqns: list[JaxprEqn] = []

    def __call__(self, name: str, /, *operands: Any, out: Any = SCALAR, **params: Any) -> Any:
        avals = out if isinstance(out, list) else [out]
        results = [Var(a) for a in avals]
        self.eqns.append(
            JaxprEqn(operands, results, named(name), params, traceback=get_traceback())
        )
        return results if isinstance(out, list) else results[0]

    def returns(self, *results: Any, consts: Sequence[Var] = ()) -> Jaxpr:
        return Jaxpr(consts, self.invars, results, self.eqns)


def closed(jaxpr: Jaxpr) -> ClosedJaxpr:
    return ClosedJaxpr(jaxpr, [None] * len(jaxpr.constvars))


def literal(value: Any, dtype: Any = F32) -> Literal:
    return Literal(value, make_aval((), np.dtype(dtype)))


def chain(length: int, name: str = "sin") -> Jaxpr:
    r = Recorder(SCALAR)
    x = r.invars[0]
    for _ in range(length):
        x = r(name, x)
    return r.returns(x)


def call(r: Recorder, inner: Jaxpr, *operands: Any, name: str = "g") -> Any:
    results = r(
        "jit", *operands, out=[v.aval for v in inner.outvars], jaxpr=closed(inner), name=name
    )
    return results[0] if len(results) == 1 else results


def one_equation() -> Jaxpr:
    return chain(1)


def two_short() -> Jaxpr:
    return chain(2)


def broken() -> Jaxpr:
    r = Recorder(VECTOR)
    b = r("mul", r.invars[0], literal(2.0), out=VECTOR)
    return r.returns(r("add", b, literal(1.0), out=VECTOR))


def constants() -> Jaxpr:
    r = Recorder(VECTOR)
    c = Var(VECTOR)
    return r.returns(r("add", r.invars[0], c, out=VECTOR), consts=[c])


def no_equations() -> Jaxpr:
    r = Recorder(SCALAR)
    return r.returns(r.invars[0])


def nothing() -> Jaxpr:
    return Recorder().returns()


def literal_results() -> Jaxpr:
    r = Recorder(SCALAR)
    b = r("mul", r.invars[0], literal(1.0))
    return r.returns(r.invars[0], literal(3.0), b)


def inner_call() -> Jaxpr:
    r = Recorder(VECTOR)
    inner = Recorder(VECTOR)
    c = inner("sin", inner.invars[0], out=VECTOR)
    body = inner.returns(inner("mul", c, literal(2.0), out=VECTOR))
    return r.returns(call(r, body, r.invars[0], name="<lambda>"))


def same_operand_twice() -> Jaxpr:
    r = Recorder(SCALAR)
    inner = Recorder(SCALAR, SCALAR)
    y = inner("sin", inner.invars[0])
    body = inner.returns(inner("mul", y, inner.invars[1]))
    return r.returns(call(r, body, *r.invars * 2, name="<lambda>"))


def passed_through() -> Jaxpr:
    r = Recorder(SCALAR, SCALAR)
    inner = Recorder(SCALAR, SCALAR)
    a, b = inner.invars
    body = inner.returns(b, a, inner("add", a, b), literal(3.0))
    return r.returns(*call(r, body, *r.invars, name="<lambda>"))


def called_twice() -> Jaxpr:
    r = Recorder(SCALAR)
    inner = Recorder(SCALAR)
    body = inner.returns(inner("mul", inner("sin", inner.invars[0]), literal(2.0)))
    return r.returns(call(r, body, call(r, body, r.invars[0], name="h"), name="h"))


def called_in_what_is_called_twice() -> Jaxpr:
    leaf = chain(1)
    middle = Recorder(SCALAR)
    body = middle.returns(middle("mul", call(middle, leaf, *middle.invars, name="s"), literal(2.0)))
    r = Recorder(SCALAR)
    return r.returns(call(r, body, call(r, body, *r.invars, name="a"), name="a"))


def equal_names() -> Jaxpr:
    r = Recorder(SCALAR)
    x = call(r, chain(12), *r.invars, name="<lambda>")
    return r.returns(call(r, chain(11), x, name="lambda"))


def ten_equations() -> Jaxpr:
    r = Recorder(SCALAR)
    return r.returns(call(r, chain(10), *r.invars))


def control_flow() -> Jaxpr:
    r = Recorder(make_aval((), np.dtype(np.int32)), SCALAR)
    negative = chain(1, "neg")
    same = no_equations()
    return r.returns(r("cond", *r.invars, branches=(closed(negative), closed(same))))


def shared_branches() -> Jaxpr:
    r = Recorder(make_aval((), np.dtype(np.int32)), SCALAR)
    branches = (closed(chain(1, "neg")), closed(chain(1, "sin")))
    b = r("cond", *r.invars, branches=branches)
    return r.returns(r("cond", r.invars[0], b, branches=branches))


def open_jaxpr() -> Jaxpr:
    r = Recorder(VECTOR)
    inner = Recorder(SCALAR, SCALAR)
    body = inner.returns(inner("add", *inner.invars))
    return r.returns(
        r("scatter-add", *r.invars, out=VECTOR, update_jaxpr=body, update_consts=(), mode=None)
    )


def unused_result() -> Jaxpr:
    r = Recorder(VECTOR)
    short = make_aval((2,), F32)
    b, _ = r("top_k", r.invars[0], out=[short, make_aval((2,), np.dtype(np.int32))], axis=0, k=2)
    r("sin", b, out=short)
    return r.returns(r("cos", b, out=short))


def dropped_result() -> Jaxpr:
    r = Recorder(SCALAR)
    r.eqns.append(JaxprEqn(r.invars, [DropVar(SCALAR)], named("sin"), {}))
    return r.returns(r.invars[0])


def no_results() -> Jaxpr:
    r = Recorder(SCALAR)
    r("debug_print", r.invars[0], out=[], fmt="hi {}", ordered=False)
    return r.returns()


def no_operands() -> Jaxpr:
    r = Recorder()
    return r.returns(r("iota", out=VECTOR, dimension=0, dtype=F32, shape=(3,), sharding=None))


def wide_parameters() -> Jaxpr:
    r = Recorder(VECTOR)
    return r.returns(
        r(
            "gather",
            *r.invars,
            out=VECTOR,
            slice_sizes=(1, 1),
            mode="fill",
            indices_are_sorted=False,
            unique_indices=False,
            fill_value=None,
        )
    )


def many_operands() -> Jaxpr:
    r = Recorder(*[VECTOR] * 30)
    return r.returns(r("concatenate", *r.invars, out=make_aval((90,), F32), dimension=0))


def many_results() -> Jaxpr:
    r = Recorder(*[VECTOR] * 30)
    return r.returns(*r("optimization_barrier", *r.invars, out=[VECTOR] * 30))


def many_literals() -> Jaxpr:
    r = Recorder(SCALAR)
    a = r.invars[0]
    return r.returns(*[a] * 18, literal(np.float32(1e-30)), *[a] * 3)


def token() -> Jaxpr:
    r = Recorder(abstract_token)
    return r.returns(*r.invars)


# Nothing is compared with what another program prints while the tests run; these forms are the
# ones that are documented for the language and were seen in practice.
PROGRAMS: dict[str, tuple[Callable[[], Jaxpr], str]] = {
    "one equation": (one_equation, "{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }"),
    "two short equations": (
        two_short,
        "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = sin b in (c,) }",
    ),
    "more than a line": (
        broken,
        """\
{ lambda ; a:f32[3]. let
    b:f32[3] = mul a 2.0:f32[]
    c:f32[3] = add b 1.0:f32[]
  in (c,) }""",
    ),
    "constants": (constants, "{ lambda a:f32[3]; b:f32[3]. let c:f32[3] = add b a in (c,) }"),
    "no equations": (no_equations, "{ lambda ; a:f32[]. let  in (a,) }"),
    "nothing": (nothing, "{ lambda ; . let  in () }"),
    "literal results": (
        literal_results,
        "{ lambda ; a:f32[]. let b:f32[] = mul a 1.0:f32[] in (a, 3.0:f32[], b) }",
    ),
    "a call": (
        inner_call,
        """\
{ lambda ; a:f32[3]. let
    b:f32[3] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[3]. let
          c:f32[3] = sin a
          b:f32[3] = mul c 2.0:f32[]
        in (b,) }
    ] a
  in (b,) }""",
    ),
    "one operand twice": (
        same_operand_twice,
        """\
{ lambda ; a:f32[]. let
    b:f32[] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[] c:f32[]. let
          d:f32[] = sin a
          b:f32[] = mul d c
        in (b,) }
    ] a a
  in (b,) }""",
    ),
    "results that are operands": (
        passed_through,
        """\
{ lambda ; a:f32[] b:f32[]. let
    d:f32[] e:f32[] c:f32[] f:f32[] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[] b:f32[]. let
          c:f32[] = add a b
        in (b, a, c, 3.0:f32[]) }
    ] a b
  in (d, e, c, f) }""",
    ),
    "called twice": (
        called_twice,
        """\
let h = { lambda ; a:f32[]. let
    b:f32[] = sin a
    c:f32[] = mul b 2.0:f32[]
  in (c,) } in
{ lambda ; d:f32[]. let
    e:f32[] = jit[name=h jaxpr=h] d
    f:f32[] = jit[name=h jaxpr=h] e
  in (f,) }""",
    ),
    "inside what is called twice": (
        called_in_what_is_called_twice,
        """\
let a = { lambda ; b:f32[]. let
    c:f32[] = jit[name=s jaxpr=s] b
    d:f32[] = mul c 2.0:f32[]
  in (d,) } in
let s = { lambda ; e:f32[]. let f:f32[] = sin e in (f,) } in
{ lambda ; g:f32[]. let
    h:f32[] = jit[name=a jaxpr=a] g
    i:f32[] = jit[name=a jaxpr=a] h
  in (i,) }""",
    ),
    "large ones with one name": (
        equal_names,
        """\
let lambda = { lambda ; a:f32[]. let
    b:f32[] = sin a
    c:f32[] = sin b
    d:f32[] = sin c
    e:f32[] = sin d
    f:f32[] = sin e
    g:f32[] = sin f
    h:f32[] = sin g
    i:f32[] = sin h
    j:f32[] = sin i
    k:f32[] = sin j
    l:f32[] = sin k
    m:f32[] = sin l
  in (m,) } in
let lambda1 = { lambda ; n:f32[]. let
    o:f32[] = sin n
    p:f32[] = sin o
    q:f32[] = sin p
    r:f32[] = sin q
    s:f32[] = sin r
    t:f32[] = sin s
    u:f32[] = sin t
    v:f32[] = sin u
    w:f32[] = sin v
    x:f32[] = sin w
    y:f32[] = sin x
  in (y,) } in
{ lambda ; z:f32[]. let
    ba:f32[] = jit[name=<lambda> jaxpr=lambda] z
    bb:f32[] = jit[name=lambda jaxpr=lambda1] ba
  in (bb,) }""",
    ),
    "ten equations inside": (
        ten_equations,
        """\
{ lambda ; a:f32[]. let
    b:f32[] = jit[
      name=g
      jaxpr={ lambda ; a:f32[]. let
          c:f32[] = sin a
          d:f32[] = sin c
          e:f32[] = sin d
          f:f32[] = sin e
          g:f32[] = sin f
          h:f32[] = sin g
          i:f32[] = sin h
          j:f32[] = sin i
          k:f32[] = sin j
          b:f32[] = sin k
        in (b,) }
    ] a
  in (b,) }""",
    ),
    "branches": (
        control_flow,
        """\
{ lambda ; a:i32[] b:f32[]. let
    c:f32[] = cond[
      branches=(
        { lambda ; d:f32[]. let e:f32[] = neg d in (e,) }
        { lambda ; f:f32[]. let  in (f,) }
      )
    ] a b
  in (c,) }""",
    ),
    "shared branches": (
        shared_branches,
        """\
let jaxpr = { lambda ; a:f32[]. let b:f32[] = neg a in (b,) } in
let jaxpr1 = { lambda ; c:f32[]. let d:f32[] = sin c in (d,) } in
{ lambda ; e:i32[] f:f32[]. let
    g:f32[] = cond[branches=(jaxpr jaxpr1)] e f
    h:f32[] = cond[branches=(jaxpr jaxpr1)] e g
  in (h,) }""",
    ),
    "an open jaxpr": (
        open_jaxpr,
        """\
{ lambda ; a:f32[3]. let
    b:f32[3] = scatter-add[
      mode=None
      update_consts=()
      update_jaxpr={ lambda ; c:f32[] d:f32[]. let e:f32[] = add c d in (e,) }
    ] a
  in (b,) }""",
    ),
    "results that nothing uses": (
        unused_result,
        """\
{ lambda ; a:f32[3]. let
    b:f32[2] _:i32[2] = top_k[axis=0 k=2] a
    _:f32[2] = sin b
    c:f32[2] = cos b
  in (c,) }""",
    ),
    "a result that was dropped": (
        dropped_result,
        "{ lambda ; a:f32[]. let _:f32[] = sin a in (a,) }",
    ),
    "no results": (
        no_results,
        "{ lambda ; a:f32[]. let debug_print[fmt=hi {} ordered=False] a in () }",
    ),
    "no operands": (
        no_operands,
        """\
{ lambda ; . let
    a:f32[3] = iota[dimension=0 dtype=float32 shape=(3,) sharding=None]\x20
  in (a,) }""",
    ),
    "many parameters": (
        wide_parameters,
        """\
{ lambda ; a:f32[3]. let
    b:f32[3] = gather[
      fill_value=None
      indices_are_sorted=False
      mode=fill
      slice_sizes=(1, 1)
      unique_indices=False
    ] a
  in (b,) }""",
    ),
    "many operands": (
        many_operands,
        """\
{ lambda ; a:f32[3] b:f32[3] c:f32[3] d:f32[3] e:f32[3] f:f32[3] g:f32[3] h:f32[3]
    i:f32[3] j:f32[3] k:f32[3] l:f32[3] m:f32[3] n:f32[3] o:f32[3] p:f32[3] q:f32[3]
    r:f32[3] s:f32[3] t:f32[3] u:f32[3] v:f32[3] w:f32[3] x:f32[3] y:f32[3] z:f32[3]
    ba:f32[3] bb:f32[3] bc:f32[3] bd:f32[3]. let
    be:f32[90] = concatenate[dimension=0] a b c d e f g h i j k l m n o p q r s t
      u v w x y z ba bb bc bd
  in (be,) }""",
    ),
    "many results": (
        many_results,
        """\
{ lambda ; a:f32[3] b:f32[3] c:f32[3] d:f32[3] e:f32[3] f:f32[3] g:f32[3] h:f32[3]
    i:f32[3] j:f32[3] k:f32[3] l:f32[3] m:f32[3] n:f32[3] o:f32[3] p:f32[3] q:f32[3]
    r:f32[3] s:f32[3] t:f32[3] u:f32[3] v:f32[3] w:f32[3] x:f32[3] y:f32[3] z:f32[3]
    ba:f32[3] bb:f32[3] bc:f32[3] bd:f32[3]. let
    be:f32[3] bf:f32[3] bg:f32[3] bh:f32[3] bi:f32[3] bj:f32[3] bk:f32[3] bl:f32[3]
      bm:f32[3] bn:f32[3] bo:f32[3] bp:f32[3] bq:f32[3] br:f32[3] bs:f32[3] bt:f32[3]
      bu:f32[3] bv:f32[3] bw:f32[3] bx:f32[3] by:f32[3] bz:f32[3] ca:f32[3] cb:f32[3]
      cc:f32[3] cd:f32[3] ce:f32[3] cf:f32[3] cg:f32[3] ch:f32[3] = optimization_barrier a
      b c d e f g h i j k l m n o p q r s t u v w x y z ba bb bc bd
  in (be, bf, bg, bh, bi, bj, bk, bl, bm, bn, bo, bp, bq, br, bs, bt, bu, bv, bw,
    bx, by, bz, ca, cb, cc, cd, ce, cf, cg, ch) }""",
    ),
    "a long literal": (
        many_literals,
        """\
{ lambda ; a:f32[]. let
   \x20
  in (a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, 1.0000000031710769e-30:f32[],
    a, a, a) }""",
    ),
    "a token": (token, "{ lambda ; a:Tok. let  in (a,) }"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_printed_form(name: str) -> None:
    make, text = PROGRAMS[name]
    assert print_jaxpr(make()) == text


@pytest.mark.parametrize("name", PROGRAMS)
def test_strings_and_reprs_are_the_printed_form(name: str) -> None:
    make, text = PROGRAMS[name]
    jaxpr = make()
    assert str(jaxpr) == repr(jaxpr) == str(closed(jaxpr)) == repr(closed(jaxpr)) == text


class Mode(enum.Enum):
    FILL = 1

    def __str__(self) -> str:
        return "Mode.FILL"


class Numbers(NamedTuple):
    lhs: tuple[int, ...]
    rhs: tuple[int, ...]


def a_function() -> None:
    """Only its name is printed."""


PARAMETERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "numbers": ("p", {"b": 1, "a": 2.5, "c": True}, "[a=2.5 b=1 c=True]"),
    "name comes first": ("p", {"a": 1, "name": "f"}, "[name=f a=1]"),
    "a dtype": ("p", {"dtype": np.dtype(np.int32)}, "[dtype=int32]"),
    "an extension dtype": ("p", {"dtype": np.dtype(ml_dtypes.bfloat16)}, "[dtype=bfloat16]"),
    "a type": ("p", {"t": np.float32}, "[t=float32]"),
    "a function": ("p", {"f": a_function}, "[f=a_function]"),
    "an enumeration": ("p", {"mode": Mode.FILL}, "[mode=Mode.FILL]"),
    "a named tuple": ("p", {"d": Numbers((0,), ())}, "[d=Numbers(lhs=(0,), rhs=())]"),
    "sharding of a conversion": (
        "convert_element_type",
        {"new_dtype": F32, "sharding": None, "weak_type": False},
        "[new_dtype=float32 weak_type=False]",
    ),
    "sharding of a reshape": ("reshape", {"sharding": None}, "[sharding=None]"),
    "accuracy": ("sin", {"accuracy": None}, ""),
    "a given accuracy": ("sin", {"accuracy": 1}, "[accuracy=1]"),
    "broadcasting a scalar": (
        "broadcast_in_dim",
        {"shape": (3,), "broadcast_dimensions": (), "sharding": None},
        "",
    ),
    "broadcasting": (
        "broadcast_in_dim",
        {"shape": (3, 2), "broadcast_dimensions": (0,), "sharding": None},
        "[broadcast_dimensions=(0,)]",
    ),
    "contraction": (
        "dot_general",
        {
            "dimension_numbers": (((1,), (0,)), ((), ())),
            "precision": None,
            "preferred_element_type": F32,
            "out_sharding": None,
        },
        "[dimension_numbers=(([1], [0]), ([], [])) preferred_element_type=float32]",
    ),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(name: str) -> None:
    primitive, params, text = PARAMETERS[name]
    x = Var(SCALAR)
    eqn = JaxprEqn([x], [Var(SCALAR)], named(primitive), params)
    assert " ".join(print_eqn(eqn).split()).replace("[ ", "[").replace(" ]", "]") == (
        f"a:f32[] = {primitive}{text} b"
    )


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (2.0, "float32", "2.0:f32[]"),
        (np.float32(0.1), "float32", "0.10000000149011612:f32[]"),
        (np.float16(65504), "float16", "65504.0:f16[]"),
        (ml_dtypes.bfloat16(1.1), ml_dtypes.bfloat16, "1.1015625:bf16[]"),
        (np.float32(-0.0), "float32", "-0.0:f32[]"),
        (float("inf"), "float32", "inf:f32[]"),
        (np.float32("nan"), "float32", "nan:f32[]"),
        (3, "int32", "3:i32[]"),
        (np.uint8(200), "uint8", "200:u8[]"),
        (True, "bool", "True:bool[]"),
        (np.bool_(False), "bool", "False:bool[]"),
        (np.complex64(1 + 2j), "complex64", "(1+2j):c64[]"),
        (1j, "complex64", "1j:c64[]"),
    ],
    ids=str,
)
def test_literals(value: Any, dtype: Any, text: str) -> None:
    eqn = JaxprEqn([literal(value, dtype)], [Var(SCALAR)], named("p"), {})
    assert print_eqn(eqn) == f"a:f32[] = p {text}"


def test_names_count_like_numbers() -> None:
    names = NameTable()
    found = [names[Var(SCALAR)] for _ in range(26 * 27 + 1)]
    assert found[:3] == ["a", "b", "c"]
    assert found[25:28] == ["z", "ba", "bb"]
    assert found[26 * 26 - 1 : 26 * 26 + 1] == ["zz", "baa"]
    assert len(set(found)) == len(found)


def test_names_that_are_taken_are_left_out() -> None:
    names = NameTable()
    names.taken.add("b")
    assert [names[Var(SCALAR)] for _ in range(3)] == ["a", "c", "d"]


def test_a_variable_keeps_its_name() -> None:
    names = NameTable()
    x, y = Var(SCALAR), Var(SCALAR)
    eqn = JaxprEqn([x], [y], named("sin"), {})
    assert print_eqn(eqn, names=names) == print_eqn(eqn, names=names) == "a:f32[] = sin b"
    assert repr(eqn) == "a:f32[] = sin b"


def test_types_can_be_left_out() -> None:
    assert print_jaxpr(called_twice(), print_shapes=False) == (
        "let h = { lambda ; a. let b = sin a; c = mul b 2.0:f32[] in (c,) } in\n"
        "{ lambda ; d. let e = jit[name=h jaxpr=h] d; f = jit[name=h jaxpr=h] e in (f,) }"
    )


def test_colors() -> None:
    blue, plain, magenta, default = "\x1b[34;1m", "\x1b[39;22m", "\x1b[35m", "\x1b[39m"
    typed = f"{magenta}:f32[3]{default}"
    assert print_jaxpr(broken(), use_color=True) == (
        f"{{ {blue}lambda {plain}; a{typed}. {blue}let\n"
        f"    {plain}b{typed} = mul a 2.0:f32[]\n"
        f"    c{typed} = add b 1.0:f32[]\n"
        f"  {blue}in {plain}(c,) }}"
    )
    assert print_jaxpr(one_equation(), use_color=True) == (
        f"{{ {blue}lambda {plain}; a{typed}. {blue}let{plain} b{typed} = sin a "
        f"{blue}in {plain}(b,) }}"
    ).replace("[3]", "[]")


def test_colors_are_all_that_they_add() -> None:
    import re

    for make, text in PROGRAMS.values():
        assert re.sub("\x1b\\[[0-9;]*m", "", print_jaxpr(make(), use_color=True)) == text


def test_source_lines_stand_to_the_right() -> None:
    jaxpr = inner_call()
    lines = print_jaxpr(jaxpr, source_info=True).split("\n")
    plain = print_jaxpr(jaxpr).split("\n")
    edge = max(map(len, plain))
    commented = [line for line in lines if "#" in line]
    assert [line.split(" #")[0].rstrip() for line in lines] == plain
    assert len(commented) == 3
    assert all(line.index("#") == edge + 1 for line in commented)
    assert all("test_jaxpr_printing.py:" in line for line in commented)
    assert commented[0].startswith("    b:f32[3] = jit[ ")
    assert "(Recorder.__call__)" in commented[1]


def test_several_source_lines_of_one_line() -> None:
    first, second = print_jaxpr(two_short(), source_info=True).split("\n")
    assert first.startswith(print_jaxpr(two_short()) + " # ")
    assert second.strip().startswith("# ")
    assert first.index("#") == second.index("#")


def test_an_equation_from_nowhere() -> None:
    x, y = Var(SCALAR), Var(SCALAR)
    eqn = JaxprEqn([x], [y], named("sin"), {})
    assert print_eqn(eqn, source_info=True) == "a:f32[] = sin b # an unknown place"


def test_name_stack() -> None:
    lines = print_jaxpr(inner_call(), name_stack=True).split("\n")
    stacks = [line.split("# ")[1] for line in lines if "#" in line]
    assert stacks == ["jit", "jit(<lambda>)/sin", "jit(<lambda>)/mul"]


def test_a_hundred_thousand_equations() -> None:
    r = Recorder(SCALAR)
    x = r.invars[0]
    for _ in range(100_000):
        x = r("sin", x)
    text = print_jaxpr(r.returns(x))
    assert text.count("\n") == 100_001
    assert text.endswith(" in (frye,) }")


def test_deep_nesting_neither_overflows_nor_runs_off_the_page() -> None:
    jaxpr = chain(1)
    for _ in range(300):
        r = Recorder(SCALAR)
        jaxpr = r.returns(call(r, jaxpr, *r.invars))
    text = print_jaxpr(jaxpr)
    assert text.count("lambda") == 301
    assert max(map(len, text.split("\n"))) < 300
    assert len(repr(jaxpr.eqns[0])) < 30_000


def test_calls_that_double_at_every_level() -> None:
    jaxpr = chain(1)
    for _ in range(60):
        r = Recorder(SCALAR)
        jaxpr = r.returns(call(r, jaxpr, call(r, jaxpr, *r.invars)))
    text = print_jaxpr(jaxpr)
    assert text.count("lambda") == 61


# Layout


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (11, "(one two)"),
        (9, "(one two)"),
        (8, "(\n  one\n  two\n)"),
        (3, "(\n  one\n  two\n)"),
    ],
)
def test_a_group_is_on_one_line_if_it_fits(width: int, text: str) -> None:
    document = Group(["(", Nest(2, [Break(""), "one", Break(), "two"]), Break(""), ")"])
    assert render(document, width=width) == text


def test_an_inner_group_may_fit_where_the_outer_does_not() -> None:
    inner = Group(["[", Nest(1, [Break(""), "a", Break(), "b"]), "]"])
    document = Group(["(", Nest(2, [Break(""), inner, Break(), inner]), ")"])
    assert render(document, width=7) == "(\n  [a b]\n  [a b])"


def test_a_long_list_is_laid_out_in_linear_time() -> None:
    parts: list[Any] = []
    for number in range(50_000):
        parts += [Group(Break()), str(number)]
    text = render(Group(["(", parts, ")"]), width=80)
    assert max(map(len, text.split("\n"))) <= 85
    assert text.replace("\n", " ").split()[1] == "0"
