"""The text of optimised programs is read in all forms in which compilers write it."""

from __future__ import annotations

import dataclasses
import itertools
import random
from dataclasses import dataclass
from typing import Any

import pytest

import dovetail as dt
from dovetail._core.plugins.hookspecs import CompileRequest
from dovetail._core.plugins.manager import manager
from dovetail._core.runtime.programs.compilation import compile_options
from dovetail._core.runtime.reports.costs import Costs, Exchange, costs_of
from dovetail._core.runtime.reports.groups import (
    across_slices,
    axes_of_groups,
    groups_of,
    in_all_slices,
)
from dovetail._core.runtime.reports.hardware import HARDWARE, hardware_of
from dovetail._core.runtime.reports.hlo_text import Instruction, Shape, parsed
from dovetail._core.runtime.reports.model import ring_bandwidth, sent_bytes
from dovetail.sharding import Mesh, NamedSharding, PartitionSpec

EIGHT = tuple(range(8))
ROWS = ((0, 1, 2, 3), (4, 5, 6, 7))
PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7))
STRIDED = ((0, 2, 4, 6), (1, 3, 5, 7))
FAR = ((0, 4), (1, 5), (2, 6), (3, 7))

#: Attributes, and the groups.
GROUPS: dict[str, Any] = {
    "replica_groups={{0,1,2,3},{4,5,6,7}}": ROWS,
    "replica_groups={{0,1,2},{3,4},{5,6,7}}": ((0, 1, 2), (3, 4), (5, 6, 7)),
    "replica_groups={}": (EIGHT,),
    "to_apply=%add": (EIGHT,),
    "replica_groups=[2,4]<=[8]": ROWS,
    "replica_groups=[1,8]<=[8]": (EIGHT,),
    "replica_groups=[2,4]<=[4,2]T(1,0)": STRIDED,
    "replica_groups=[4,2]<=[2,4]T(1,0)": FAR,
    "replica_groups=[4,2]<=[2,2,2]T(1,2,0)": FAR,
    "replica_groups=mesh['a'=2,'b'=4] {'b'}": ROWS,
    "replica_groups=mesh['a'=2,'b'=4] {'a'}": FAR,
    "replica_groups=mesh['a'=2,'b'=4] {'a','b'}": (EIGHT,),
    "replica_groups=@mesh['a'=2,'b'=4] {'a'}": FAR,
    "replica_groups=mesh['a'=8] {'a':(4)2}": PAIRS,
    "replica_groups=mesh['a'=8] {'a':(1)2}": FAR,
    "replica_groups=mesh['a'=8] {'a':(2)2}": ((0, 2), (1, 3), (4, 6), (5, 7)),
    "replica_groups=mesh['a'=8], device_ids=([4,2]T(1,0)) {'a'}": None,
    "replica_groups=mesh['a'=4,'b'=2], device_ids=([8]<=[2,4]T(1,0)) {'b'}": FAR,
    "replica_groups=mesh['a'=4,'b'=2], device_ids=(0,4,1,5,2,6,3,7) {'b'}": FAR,
    "replica_groups=mesh['a'=2] {'c'}": None,
    "replica_groups=something[8]": None,
}


@pytest.mark.parametrize("attributes", GROUPS)
def test_groups(attributes: str) -> None:
    text = (
        f', channel_id=1, {attributes}, use_global_device_ids=true, metadata={{op_name="a{{{{0}}"}}'
    )
    instruction = Instruction("a", "all-reduce", (), (), "", text)
    assert groups_of(instruction, 8) == GROUPS[attributes]


AXES: dict[str, Any] = {
    "rows": (ROWS, ("y",), True),
    "far": (FAR, ("x",), True),
    "all": ((EIGHT,), ("x", "y"), True),
    "pairs": (PAIRS, ("y",), False),
    "ring": (((0, 1), (1, 2), (2, 3), (3, 0)), ("y",), False),
    "diagonal": (((0, 5), (1, 4)), ("x", "y"), False),
    "alone": (((0,), (1,)), (), True),
}


@pytest.mark.parametrize("case", AXES)
def test_axes(case: str) -> None:
    groups, names, whole = AXES[case]
    assert axes_of_groups(groups, (("x", 2), ("y", 4))) == (names, whole)


def program(body: str, others: str = "", header: str = ", num_partitions=8") -> Costs:
    """The costs of a program with such operations in its entry."""
    text = f"""HloModule jit_f, is_scheduled=true{header}

FileNames
1 "user.py"
2 "a b.py"

FunctionNames
1 "f"

FileLocations
1 {{file_name_id=1 function_name_id=1 line=7 end_line=7 column=2 end_column=2}}
2 {{file_name_id=2 function_name_id=1 line=9 end_line=9 column=2 end_column=2}}

StackFrames
1 {{file_location_id=1 parent_frame_id=1}}
2 {{file_location_id=2 parent_frame_id=1}}


%add (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}}
{others}
ENTRY %main.0_spmd (p0: f32[8,16], p1: f32[16,4]) -> f32[8,4] {{
  %p0 = f32[8,16]{{1,0:T(8,128)(2,1)}} parameter(0), sharding={{devices=[2,4]<=[8]}}
  %p1 = f32[16,4]{{1,0}} parameter(1)
{body}
  ROOT %out = f32[8,4]{{1,0}} copy(%p0)
}}
"""
    return costs_of(parsed(text))


REDUCE = "replica_groups=[2,4]<=[8], use_global_device_ids=true, to_apply=%add"

#: Operations; kind, bytes of the operands and source of each that is an exchange.
TEXTS: dict[str, tuple[str, list[tuple[str, int, str]]]] = {
    "plain": (
        f"  %r = f32[8,16]{{1,0}} all-reduce(%p0), channel_id=1, {REDUCE}, "
        'metadata={op_name="jit(f)/dot" stack_frame_id=2}',
        [("all-reduce", 512, "a b.py:9")],
    ),
    "source in full": (
        f"  %r = f32[8,16]{{1,0}} all-reduce(%p0), channel_id=1, {REDUCE}, "
        'metadata={op_type="dot" op_name="f" source_file="/a/b \\"c\\".py" source_line=12}',
        [("all-reduce", 512, '/a/b \\"c\\".py:12')],
    ),
    "of a tuple": (
        "  %r = (f32[8,16]{1,0:T(8,128)}, /*index=1*/f32[16,4]{1,0}) "
        f"all-reduce(%p0, /*index=1*/%p1), {REDUCE}",
        [("all-reduce", 512 + 256, "?")],
    ),
    "operands with types": (
        f"  r = f32[8,16]{{1,0}} all-reduce(f32[8,16]{{1,0}} p0), {REDUCE}",
        [("all-reduce", 512, "?")],
    ),
    "asynchronous all-reduce": (
        f"  %s = f32[8,16]{{1,0}} all-reduce-start(%p0), {REDUCE}\n"
        "  %d = f32[8,16]{1,0} all-reduce-done(%s), metadata={stack_frame_id=1}",
        [("all-reduce", 512, "user.py:7")],
    ),
    "asynchronous all-gather": (
        "  %s = (f32[8,16]{1,0}, f32[32,16]{1,0}) all-gather-start(%p0), "
        "replica_groups=[2,4]<=[8], dimensions={0}\n"
        "  %d = f32[32,16]{1,0} all-gather-done(%s)",
        [("all-gather", 512, "?")],
    ),
    "asynchronous reduce-scatter": (
        f"  %s = ((f32[8,16]{{1,0}}), f32[2,16]{{1,0}}) reduce-scatter-start(%p0), {REDUCE}, "
        "dimensions={0}\n  %d = f32[2,16]{1,0} reduce-scatter-done(%s)",
        [("reduce-scatter", 512, "?")],
    ),
    "asynchronous by a computation": (
        "  %s = ((f32[8,16]), f32[8,16]) async-start(%p0), calls=%inner\n"
        "  %u = ((f32[8,16]), f32[8,16]) async-update(%s), calls=%inner\n"
        "  %d = f32[8,16] async-done(%u), calls=%inner",
        [("all-reduce", 512, "user.py:7")],
    ),
    "permutation": (
        "  %s = (f32[8,16], f32[8,16], u32[]{:S(2)}, u32[]) collective-permute-start(%p0), "
        "source_target_pairs={{0,1},{1,0}}\n  %d = f32[8,16] collective-permute-done(%s)",
        [("collective-permute", 512, "?")],
    ),
    "parts of all to all": (
        "  %a2a = (f32[4,16], f32[4,16]) all-to-all(%p0, %p0), replica_groups={{0,1}}",
        [("all-to-all", 1024, "?")],
    ),
    "in a fusion": (
        "  %f = f32[8,16]{1,0} fusion(%p0), kind=kCustom, calls=%inner, "
        "metadata={stack_frame_id=2}",
        [("all-reduce", 512, "a b.py:9")],
    ),
    "in a call": (
        "  %f = f32[8,16]{1,0} call(%p0), to_apply=%inner",
        [("all-reduce", 512, "user.py:7")],
    ),
    "scattered in a fusion": (
        "  %f = f32[2,16]{1,0} fusion(%p0), kind=kCustom, calls=%scattered",
        [("reduce-scatter", 512, "?")],
    ),
    "begun and gone on with": (
        "  %s = (f32[8,16], f32[32,16], u32[]) fusion(%p0), kind=kCustom, calls=%begin\n"
        "  %m = (f32[8,16], f32[32,16], u32[]) fusion(%p0), kind=kCustom, calls=%go_on\n"
        "  %d = f32[32,16] fusion(%p0), kind=kCustom, calls=%go_on",
        [("all-gather", 512, "?")],
    ),
    "between slices": (
        "  %t = token[] after-all()\n"
        "  %s = (f32[8,16], u32[], token[]) send(%p0, %t), channel_id=4, is_host_transfer=true, "
        'frontend_attributes={_xla_megascale_transfer_type="ALL_GATHER"}\n'
        "  %d = token[] send-done(%s), channel_id=4",
        [("all-gather", 512, "?")],
    ),
}

CONTINUED = 'dimensions={0}, backend_config={"async_collective_fusion_config":{}}'

OTHERS = f"""
%inner (q: f32[8,16]) -> f32[8,16] {{
  %q = f32[8,16]{{1,0}} parameter(0)
  ROOT %ir = f32[8,16]{{1,0}} all-reduce(%q), {REDUCE}, metadata={{stack_frame_id=1}}
}}

%scattered (q: f32[8,16]) -> f32[2,16] {{
  %q = f32[8,16]{{1,0}} parameter(0)
  %ir = f32[8,16]{{1,0}} all-reduce(%q), {REDUCE}
  %i = s32[] constant(0)
  ROOT %ds = f32[2,16]{{1,0}} dynamic-slice(%ir, %i, %i), dynamic_slice_sizes={{2,16}}
}}

%begin (q: f32[8,16]) -> (f32[8,16], f32[32,16], u32[]) {{
  %q = f32[8,16]{{1,0}} parameter(0)
  %g = f32[32,16]{{1,0}} all-gather(%q), {CONTINUED}
  ROOT %c = (f32[8,16], f32[32,16]) custom-call(%g), custom_call_target="AsyncCollectiveStart"
}}

%go_on (q: f32[8,16]) -> f32[32,16] {{
  %q = f32[8,16]{{1,0}} parameter(0)
  ROOT %g = f32[32,16]{{1,0}} all-gather(%q), {CONTINUED}
}}
"""


def exchanges(costs: Costs) -> list[tuple[str, int, str]]:
    return [(e.kind, e.operand_bytes, step.source) for step in costs.steps for e in step.exchanges]


@pytest.mark.parametrize("case", TEXTS)
def test_collectives(case: str) -> None:
    body, expected = TEXTS[case]
    costs = program(body, OTHERS)
    assert exchanges(costs) == expected
    assert costs.notes == []


def loop(condition: str, step: str, state: str, config: str = "") -> Costs:
    """A loop whose counter is the first of its three variables."""
    others = f"""
%body (s: (s32[], f32[8,16], s32[])) -> (s32[], f32[8,16], s32[]) {{
  %s = (s32[], f32[8,16], s32[]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[8,16] get-tuple-element(%s), index=1
  %n = s32[] get-tuple-element(%s), index=2
  %one = s32[] constant(1)
  %two = s32[] constant(2)
  %back = s32[] constant(-1)
  %ic = s32[] copy(%i)
  %next = s32[] {step}
  %r = f32[8,16] all-reduce(%x), {REDUCE}
  ROOT %t = (s32[], f32[8,16], s32[]) tuple(%next, %r, %n)
}}

%cond (s: (s32[], f32[8,16], s32[])) -> pred[] {{
  %s = (s32[], f32[8,16], s32[]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] get-tuple-element(%s), index=2
  %ten = s32[] constant(10)
  %zero = s32[] constant(0)
  ROOT %c = pred[] {condition}
}}
"""
    body = f"""  %zero = s32[] constant(0)
  %three = s32[] constant(3)
  %ten = s32[] constant(10)
  %any = s32[] bitcast(%p0)
  %begin = s32[]{{:T(128)}} copy(%zero)
  %state = (s32[], f32[8,16], s32[]) tuple({state})
  %w = (s32[], f32[8,16], s32[]) while(%state), condition=%cond, body=%body{config}"""
    return program(body, others)


LESS = "compare(%i, %ten), direction=LT"
ADD = "add(%i, %one)"
START = "%begin, %p0, %three"

#: Condition, step, initial state, text behind; turns, or None.
LOOPS: dict[str, tuple[str, str, str, str, int | None]] = {
    "less": (LESS, ADD, START, "", 10),
    "copied counter": (LESS, "add(%ic, %one)", START, "", 10),
    "turned around": (LESS, "add(%one, %i)", START, "", 10),
    "by two": (LESS, "add(%i, %two)", START, "", 5),
    "from three": (LESS, ADD, "%three, %p0, %three", "", 7),
    "from three by two": (LESS, "add(%i, %two)", "%three, %p0, %three", "", 4),
    "at most": ("compare(%i, %ten), direction=LE", ADD, START, "", 11),
    "unequal": ("compare(%i, %ten), direction=NE", ADD, START, "", 10),
    "down": ("compare(%i, %zero), direction=GT", "subtract(%i, %one)", "%ten, %p0, %ten", "", 10),
    "down to zero": (
        "compare(%i, %zero), direction=GE",
        "add(%i, %back)",
        "%ten, %p0, %ten",
        "",
        11,
    ),
    "to a variable that stays": ("compare(%i, %n), direction=LT", ADD, START, "", 3),
    "never": (LESS, ADD, "%ten, %p0, %three", "", 0),
    "written down": (
        LESS,
        ADD,
        "%any, %p0, %three",
        ', backend_config={"known_trip_count":{"n":"12"},"x":{}}',
        12,
    ),
    "written down in a string": (
        LESS,
        ADD,
        "%any, %p0, %three",
        ', backend_config="{\\"known_trip_count\\":{\\"n\\":\\"12\\"}}"',
        12,
    ),
    "unknown beginning": (LESS, ADD, "%any, %p0, %three", "", None),
    "unknown step": (LESS, "multiply(%i, %two)", START, "", None),
    "away from the end": (LESS, "subtract(%i, %one)", START, "", None),
    "another test": ("compare(%ten, %i), direction=GT", ADD, START, "", None),
}


@pytest.mark.parametrize("case", LOOPS)
def test_loops(case: str) -> None:
    *words, turns = LOOPS[case]
    costs = loop(*words)  # type: ignore[arg-type]
    (step,) = (step for step in costs.steps if step.exchanges)
    assert step.times == (1 if turns is None else turns)
    assert step.exact is (turns is not None)
    assert bool(costs.notes) is (turns is None)


#: Operations of products: the kind of factors, and how many.
PRODUCTS: dict[str, tuple[str, dict[str, int]]] = {
    "dot": (
        "  %d = f32[8,4] dot(%p0, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        {"f32": 2 * 8 * 16 * 4},
    ),
    "highest": (
        "  %d = f32[8,4] dot(%p0, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
        "operand_precision={highest,highest}",
        {"f32:highest": 2 * 8 * 16 * 4},
    ),
    "three passes": (
        "  %d = f32[8,4] dot(%p0, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
        "algorithm=dot_bf16_bf16_f32_x3",
        {"f32:high": 2 * 8 * 16 * 4},
    ),
    "as a TPU writes it": (
        "  %d = f32[8,4] convolution(%p0, %p1), dim_labels=bf_io->bf",
        {"f32": 2 * 8 * 16 * 4},
    ),
    "a batch as a TPU writes it": (
        "  %l = bf16[6,8,16] bitcast(%p0)\n  %r = bf16[6,16,4] bitcast(%p1)\n"
        "  %d = bf16[6,8,4] convolution(%l, %r), dim_labels=0bf_0io->0bf, "
        "window={size=6 stride=5 pad=0_0 lhs_dilate=6}",
        {"bf16": 2 * 6 * 8 * 16 * 4},
    ),
    "padding is not multiplied": (
        "  %l = f32[1,5,1] bitcast(%p0)\n  %r = f32[3,1,1] bitcast(%p1)\n"
        "  %d = f32[1,5,1] convolution(%l, %r), dim_labels=b0f_0io->b0f, window={size=3 pad=1_1}",
        {"f32": 2 * 13},
    ),
    "by a library": (
        '  %d = (f32[8,4], s8[64]) custom-call(%p0, %p1), custom_call_target="__cublas$gemm", '
        'backend_config={"gemm_backend_config":{"dot_dimension_numbers":'
        '{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}',
        {"f32": 2 * 8 * 16 * 4},
    ),
    "by another library": (
        '  %d = f32[8,4] custom-call(%p0, %p1), custom_call_target="__onednn$matmul"',
        {"f32": 2 * 8 * 16 * 4},
    ),
    "by a kernel that says it": (
        '  %d = f32[8,4] custom-call(%p0), custom_call_target="tpu_custom_call", backend_config='
        '{"custom_call_config":{"body":"bW9k","cost_estimate":{"flops":"2147","x":"1"}}}',
        {"f32": 2147},
    ),
    "eight bits": (
        "  %l = f8e4m3fn[8,16] convert(%p0)\n  %r = f8e4m3fn[16,4] convert(%p1)\n"
        "  %d = f32[8,4] dot(%l, %r), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        {"f8": 2 * 8 * 16 * 4},
    ),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_products(case: str) -> None:
    body, expected = PRODUCTS[case]
    costs = program(body)
    total: dict[str, int] = {}
    for step in costs.steps:
        total |= step.products
    assert total == expected
    assert costs.notes == []


@pytest.mark.parametrize("seed", range(40))
def test_multiplications_of_a_convolution_are_those_that_a_loop_counts(seed: int) -> None:
    draw = random.Random(seed)
    n, m, k, stride, holes, spread = (draw.randint(1, 7) for _ in range(6))
    pad = draw.randint(-2, 6)
    body = (
        f"  %l = f32[1,{n},1] bitcast(%p0)\n  %r = f32[{k},1,1] bitcast(%p1)\n"
        f"  %d = f32[1,{m},1] convolution(%l, %r), dim_labels=b0f_0io->b0f, window={{size={k} "
        f"stride={stride} pad={pad}_0 lhs_dilate={holes} rhs_dilate={spread}}}"
    )
    met = 0
    for out, tap in itertools.product(range(m), range(k)):
        place = out * stride + tap * spread - pad
        met += place % holes == 0 and 0 <= place // holes < n
    (step,) = (step for step in program(body).steps if step.products)
    assert step.products == {"f32": 2 * met}


SLICES = """
%sliced (a: f32[100,8,16], i: s32[]) -> f32[1,8,16] {
  %a = f32[100,8,16] parameter(0)
  %i = s32[] parameter(1)
  ROOT %ds = f32[1,8,16] dynamic-slice(%a, %i, %i, %i), dynamic_slice_sizes={1,8,16}
}

%updated (a: f32[100,8,16], u: f32[1,8,16], i: s32[]) -> f32[100,8,16] {
  %a = f32[100,8,16] parameter(0)
  %u = f32[1,8,16] parameter(1)
  %i = s32[] parameter(2)
  ROOT %dus = f32[100,8,16] dynamic-update-slice(%a, %u, %i, %i, %i)
}
"""

#: Operations, and the bytes that the last of them moves.
TRAFFIC: dict[str, tuple[str, int]] = {
    "elementwise": ("  %e = f32[8,16] add(%p0, %p0)", 3 * 512),
    "nothing": ("  %e = f32[16,8] bitcast(%p0)", 0),
    "in a cache": ("  %e = f32[8,16]{1,0:T(8,128)S(1)} copy(%p0)", 512),
    "into a cache": (
        "  %e = (f32[8,16]{1,0:S(1)}, f32[8,16]{1,0}, u32[]{:S(2)}) copy-start(%p0)\n"
        "  %f = f32[8,16]{1,0:S(1)} copy-done(%e)",
        512,
    ),
    "a slice": (
        "  %a = f32[100,8,16] bitcast(%p0)\n  %i = s32[] constant(3)\n"
        "  %e = f32[1,8,16] fusion(%a, %i), kind=kLoop, calls=%sliced",
        512 + 4 + 512,
    ),
    "an update in place": (
        "  %a = f32[100,8,16] bitcast(%p0)\n  %i = s32[] constant(3)\n"
        "  %u = f32[1,8,16] bitcast(%p0)\n"
        "  %e = f32[100,8,16] fusion(%a, %u, %i), kind=kLoop, calls=%updated",
        512 + 4 + 512,
    ),
}


@pytest.mark.parametrize("case", TRAFFIC)
def test_traffic(case: str) -> None:
    body, moved = TRAFFIC[case]
    costs = program(body, SLICES)
    out = 512 + 128  # the copy at the end
    assert sum(step.moved for step in costs.steps) - out == moved


@dataclass(eq=False)
class Fake:
    """A device that is described and not there."""

    coords: tuple[int, ...] | None = None
    process_index: int = 0
    slice_index: int = 0
    device_kind: str = ""
    core_on_chip: int = 0


def grid(x: int, y: int, slices: int = 1) -> list[Fake]:
    return [
        Fake((i, j, 0), i // 2, part) for part in range(slices) for i in range(x) for j in range(y)
    ]


def along(count: int, step: int = 1) -> tuple[tuple[int, ...], ...]:
    return (tuple(range(0, count * step, step)),)


#: Hardware, devices, groups, and how many links a device uses; a float is a rate.
RATES: dict[str, tuple[str, list[Fake], Any, float | None]] = {
    "a line": ("v5e", grid(4, 4), along(4), 1),
    "a ring": ("v5e", grid(16, 16), along(16), 2),
    "both axes": ("v5e", grid(16, 16), along(256), 4),
    "a part of a ring": ("v5e", grid(16, 16), along(8), 1),
    "neighbours": ("v5e", grid(16, 16), ((0, 1), (1, 2)), 1),
    "a cube's ring": ("v4", grid(4, 4), along(4), 2),
    "slices": ("v5e", grid(2, 2, 2), ((0, 4),), 6.4e12 / 8 / 256),
    "slices without a rate": ("v4", grid(2, 2, 2), ((0, 4),), None),
    "a host of GPUs": ("h200", [Fake() for _ in range(8)], along(8), 450e9),
    "two hosts of GPUs": ("h200", [Fake(process_index=i // 8) for i in range(16)], along(16), 50e9),
    "within hosts": ("h200", [Fake(process_index=i // 8) for i in range(16)], along(8), 450e9),
    "unknown groups": ("h200", [Fake(process_index=i // 8) for i in range(16)], None, 50e9),
    "without places": ("v5e", [Fake() for _ in range(4)], along(4), 2),
}


@pytest.mark.parametrize("case", RATES)
def test_rates_of_links(case: str) -> None:
    name, devices, groups, expected = RATES[case]
    hardware = HARDWARE[name]
    if isinstance(expected, int):
        expected *= hardware.link_bandwidth
    assert ring_bandwidth(groups, devices, hardware) == expected


def test_sent_bytes() -> None:
    whole = Exchange("a", "all-reduce", "", 1024, (EIGHT,))
    sent = {
        kind: sent_bytes(dataclasses.replace(whole, kind=kind), 8)
        for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
    }
    assert sent == {
        "all-reduce": 2 * 7 * 128,
        "all-gather": 7 * 1024,
        "reduce-scatter": 7 * 128,
        "all-to-all": 7 * 128,
    }
    moved = dataclasses.replace(whole, kind="collective-permute", groups=((0, 1),))
    assert sent_bytes(moved, 2) == 1024
    assert sent_bytes(dataclasses.replace(moved, groups=((0, 0),)), 2) == 0


def test_kinds_of_hardware() -> None:
    kinds = {
        "TPU v4": "v4",
        "TPU v5 lite": "v5e",
        "TPU v5": "v5p",
        "TPU v5p": "v5p",
        "TPU v6 lite": "v6e",
        "NVIDIA H100 80GB HBM3": "h100",
        "NVIDIA H200": "h200",
        "NVIDIA B200": "b200",
    }
    for kind, name in kinds.items():
        assert hardware_of([Fake(device_kind=kind)], None) is HARDWARE[name]
    assert hardware_of([Fake(device_kind="cpu")], None) is None


def test_cores_share_a_chip() -> None:
    cores = [Fake(device_kind="TPU v4", core_on_chip=core) for core in (0, 1)]
    half, whole = hardware_of(cores, None), HARDWARE["v4"]
    assert half is not None
    assert (half.name, half.network_bandwidth) == ("a core of v4", None)
    assert half.peak_flops["bf16"] == whole.peak_flops["bf16"] / 2
    assert half.memory == whole.memory / 2
    assert hardware_of(cores, "v4") is whole, "what is asked for is taken as it is"


def test_slices() -> None:
    devices: Any = grid(2, 2, 2)
    assert in_all_slices(((0, 1), (2, 3)), 4, devices) == PAIRS
    assert in_all_slices(PAIRS, 8, devices) == PAIRS
    assert across_slices(devices) == FAR


def test_shapes() -> None:
    for dtype, size in (("pred", 1), ("bf16", 2), ("f8e4m3fn", 1), ("c64", 8), ("u32", 4)):
        assert Shape(dtype, (3, 5)).bytes == 15 * size
    assert Shape("s4", (3, 5)).bytes == 8
    assert Shape("token", ()).bytes == 0
    assert str(Shape("f32", (3, 5))) == "f32[3,5]"


def test_a_text_without_a_program() -> None:
    with pytest.raises(ValueError, match="no entry computation"):
        parsed("HloModule nothing")


REDUCE_SCATTER = """
module @scatter {
  sdy.mesh @mesh = <["i"=4]>
  func.func public @main(%a: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"i"}, {}]>})
      -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"i"}, {}]>}) {
    %r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"i"}, {}]>]
        out_shardings=[<@mesh, [{"i"}, {}]>] manual_axes={"i"} (%b: tensor<8x16xf32>) {
      %s = "stablehlo.reduce_scatter"(%b) <{scatter_dimension = 0 : i64,
          replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>,
          channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
          use_global_device_ids}> ({
        ^bb0(%u: tensor<f32>, %v: tensor<f32>):
          %w = stablehlo.add %u, %v : tensor<f32>
          stablehlo.return %w : tensor<f32> }) : (tensor<8x16xf32>) -> tensor<2x16xf32>
      sdy.return %s : tensor<2x16xf32>
    } : (tensor<32x16xf32>) -> tensor<8x16xf32>
    return %r : tensor<8x16xf32>
  }
}
"""


def test_a_reduce_scatter_of_the_compiler() -> None:
    devices = dt.devices("cpu")[:4]
    options, _ = compile_options("cpu", devices)
    on_devices: Any = NamedSharding(Mesh(devices, "i"), PartitionSpec("i"))
    executable: Any = manager().compile(
        CompileRequest(
            platform="cpu",
            client=devices[0].client,
            module=REDUCE_SCATTER,
            devices=on_devices._internal_device_list,
            options=options,
            name="scatter",
        )
    )
    costs = costs_of(parsed(executable.hlo_modules()[0].to_string()))
    (exchange,) = (e for step in costs.steps for e in step.exchanges)
    assert (exchange.kind, exchange.operand_bytes, exchange.groups) == (
        "reduce-scatter",
        8 * 16 * 4,
        ((0, 1, 2, 3),),
    )
    assert sent_bytes(exchange, 4) == 8 * 16 * 4 * 3 // 4
