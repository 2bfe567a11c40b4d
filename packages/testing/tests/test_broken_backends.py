"""The kit finds what is broken: backends with one fault each fail the tests that are about it.

They are copies of the example that computes with NumPy, and of the CPU backend, under another
name. What a broken lowering has to fail is stated for the tests ``lowering_agrees``, which run one
primitive alone: exactly that of the primitive. Programs of the other checks, and of other suites,
contain derivatives and sums, and so may fail as well where they use it.
"""

from __future__ import annotations

import fnmatch
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dovetail import enable_x64
from dovetail.testing.keys import aval_of_sample
from dovetail.testing.samples import all_samples, defined_primitives, mantissas

EXAMPLE = Path(__file__).parents[3] / "examples" / "backend-numpy" / "src"

#: A plug-in whose faults come from the environment: names of primitives, or of a function below.
NUMPY = """
import os
from dovetail.extend import BackendInfo, hookimpl

FAULTS = os.environ["FAULTS"].split(",")
CAPABILITIES = {"complex", "donation", "eig", "float64", "host_callbacks", "schur"}

if "imports" in FAULTS:
    import email.message, dovetail_backend_numpy
if "writes" in FAULTS:
    open(__file__ + ".log", "w").close()
if "capability" in FAULTS:
    CAPABILITIES.add("donations")
if "strict" in FAULTS:
    CAPABILITIES -= {"complex", "float64"}
if "private" in FAULTS:
    CAPABILITIES.add("x-own")
calls = []

@hookimpl
def dovetail_backend_info():
    calls.append(1)
    if "environment" in FAULTS:
        os.environ["DOVETAIL_CHANGED"] = "1"
    description = f"broken {len(calls) if 'changing' in FAULTS else ''}"
    capabilities = frozenset(CAPABILITIES)
    return BackendInfo("broken", (1, 0), -5, (), description, capabilities, programs="jaxpr")

@hookimpl
def dovetail_probe(platform):
    if "program" in FAULTS:
        import subprocess
        subprocess.run(["true"])
    return ""

def refuse_what_is_not_declared(runtime):
    import numpy as np
    refused = {np.dtype(f"{k}8") for k in "iuf"} | {np.dtype("c8"), np.dtype("c16")}
    put, compute = runtime.Client.put, runtime.Executable.compute
    execute = runtime.Executable.execute

    def check(values, what):
        for value in values:
            if getattr(value, "dtype", None) in refused:
                raise TypeError(f"{what} of {value.dtype}")

    def strict_put(self, value, device):
        check([value], "put")
        return put(self, value, device)

    def strict_compute(self, primitive, operands, params):
        results = compute(self, primitive, operands, params)
        found = results if isinstance(results, (list, tuple)) else [results]
        check([*operands, *found], primitive.name)
        return results

    def strict_execute(self, arguments):
        results = execute(self, arguments)
        check([buffer.to_numpy() for buffer in results], "a result")
        return results

    runtime.Client.put = strict_put
    runtime.Executable.compute, runtime.Executable.execute = strict_compute, strict_execute

def lose_bits(runtime, wide, narrow, operands_too):
    import ml_dtypes
    import numpy as np
    wide, narrow = np.dtype(wide), np.dtype(getattr(ml_dtypes, narrow, narrow))
    pair = np.dtype(f"c{2 * wide.itemsize}")
    compute = runtime.Executable.compute

    def rounded(x):
        dtype = getattr(x, "dtype", None)
        if dtype == wide:
            return x.astype(narrow).astype(wide)
        if dtype == pair:
            return np.asarray(rounded(x.real) + 1j * rounded(x.imag)).astype(pair)
        return x

    def rounding(self, primitive, operands, params):
        if operands_too:
            operands = [rounded(x) for x in operands]
        results = compute(self, primitive, operands, params)
        if results is NotImplemented and primitive.has_rule("reference"):
            results = primitive.reference(*operands, **params)
        if operands_too or results is NotImplemented:
            return results
        if primitive.multiple_results:
            return [rounded(np.asarray(r)) for r in results]
        return rounded(np.asarray(results))

    runtime.Executable.compute = rounding

@hookimpl
def dovetail_make_client(platform, options):
    import numpy as np
    from dovetail.extend import primitives
    from dovetail_backend_numpy import rules, runtime

    def spoiled(x):
        x = np.asarray(x)
        return ~x if x.dtype == bool else x + np.ones((), x.dtype)

    def broken(name):
        def rule(*operands, **params):
            primitive = primitives()[name]
            results = primitive.reference(*operands, **params)
            several = primitive.multiple_results
            return [spoiled(r) for r in results] if several else spoiled(results)
        return rule

    for name in FAULTS:
        rules.RULES[name] = broken(name)
    if "any option" in FAULTS:
        options = {}
    if "silent callbacks" in FAULTS:
        def silent(*operands, callback, result_avals, **params):
            try:
                return list(primitives()["pure_callback"].reference(
                    *operands, callback=callback, result_avals=result_avals, **params))
            except Exception:
                return [np.zeros(a.shape, a.dtype) for a in result_avals]
        rules.RULES["pure_callback"] = silent
    if "text for bits" in FAULTS:
        put = runtime.Client.put
        def rounded(self, value, device):
            value = np.asarray(value)
            return put(self, value + 0 if value.dtype.kind == "f" else value, device)
        runtime.Client.put = rounded
    if "shares memory" in FAULTS:
        def keeps(self, value, device):
            buffer = runtime.Buffer(np.zeros(0))
            buffer.value = value
            return buffer
        runtime.Client.put = keeps
    if "strict" in FAULTS:
        refuse_what_is_not_declared(runtime)
    for fault in FAULTS:
        wide, rounded_to, narrow = fault.partition(" rounded to ")
        if rounded_to:
            lose_bits(runtime, wide.split()[0], narrow, "operands" in wide)
    client = runtime.Client({k: v for k, v in options.items() if k != "num_devices"})
    if "devices" in FAULTS:
        second = runtime.Device(0, client)
        client._devices.append(second)
    return client
"""

CPU = """
import os
from dovetail.extend import BackendInfo, HostFunction, LoweringTable, hookimpl, primitives
from dovetail_cpu import plugin as original

FAULTS = os.environ["FAULTS"].split(",")

@hookimpl
def dovetail_backend_info():
    info = original.dovetail_backend_info()
    capabilities = info.capabilities - {"float64"} if "float32" in FAULTS else info.capabilities
    return BackendInfo("broken", (1, 0), -5, (), "broken", capabilities)

@hookimpl
def dovetail_make_client(platform, options, processes):
    return original.dovetail_make_client(platform, {**options, "num_devices": 2}, processes)

def spoiled(context, x, aval):
    if aval.dtype == bool:
        return context.op("not", (x,), aval)
    return context.op("add", (x, context.constant(1, aval)), aval)

def broken(name, own):
    def rule(context, *values, **params):
        outs = NotImplemented if own is None else own(context, *values, **params)
        if outs is NotImplemented:
            outs = primitives()[name].lower(context, *values, **params)
        avals = context.avals_out
        if isinstance(outs, (list, tuple)):
            return [spoiled(context, x, a) for x, a in zip(outs, avals)]
        return spoiled(context, outs, avals[0])
    return rule

@hookimpl
def dovetail_lowerings(platform):
    table = dict(original.dovetail_lowerings("cpu"))
    if "unknown primitive" in FAULTS:
        table["cosinus"] = table["cos"]
    for name in FAULTS:
        if name in primitives():
            table[name] = broken(name, table.get(name))
    return table

kept = []

@hookimpl
def dovetail_host_functions(platform):
    import ctypes

    def negated(operands, numbers, result, count):
        numbers = (ctypes.c_float * count).from_address(operands[0])
        written = [-number for number in numbers] + [0] * (32 if "beyond" in FAULTS else 0)
        (ctypes.c_float * len(written)).from_address(result)[:] = written

    arrays = [ctypes.POINTER(ctypes.c_void_p)] * 2
    kept.append(ctypes.CFUNCTYPE(None, *arrays, ctypes.c_void_p, ctypes.c_ssize_t)(negated))
    address = ctypes.cast(kept[-1], ctypes.c_void_p).value
    return {("neg", "float32"): HostFunction(address, 0, lambda params, avals, out: (0,))}

@hookimpl
def dovetail_compile(request):
    if "collectives" in FAULTS and isinstance(request.module, str):
        text = request.module.replace("stablehlo.add", "stablehlo.multiply")
        return request.client.compile_and_load(text, request.devices, request.options)
"""

SOURCES = {"cpu": CPU, "numpy": NUMPY}


@pytest.fixture
def kit(tmp_path: Path) -> Any:
    """Runs suites on a backend with faults; gives the outcomes by test."""

    def run(base: str, faults: str, *words: str, ok: bool = False) -> dict[str, str]:
        site = tmp_path / "site"
        metadata = site / "broken_backend-1.0.dist-info"
        metadata.mkdir(parents=True)
        (site / "broken_backend.py").write_text(SOURCES[base])
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-backend\n")
        entry = "[dovetail.backends]\nbroken = broken_backend\n"
        (metadata / "entry_points.txt").write_text(entry)
        report = tmp_path / "report.json"
        # The repository's own tests lie elsewhere: neither its options nor its fixtures count.
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs"]
        options = ["--dovetail-platform=broken", f"--dovetail-report={report}"]
        path = os.pathsep.join([str(site), str(EXAMPLE), os.environ.get("PYTHONPATH", "")])
        answer = subprocess.run(
            [*command, *words, *options],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path, "FAULTS": faults},
        )
        assert answer.returncode == (0 if ok else 1), answer.stdout[-5000:] + answer.stderr
        return {r["test"]: r["outcome"] for r in json.loads(report.read_text())["results"]}

    return run


def failed(outcomes: dict[str, str]) -> set[str]:
    return {test for test, outcome in outcomes.items() if outcome == "failed"}


def suite(name: str) -> str:
    return f"dovetail.testing.suites.test_{name}"


@pytest.mark.parametrize(
    ("base", "broken"),
    [
        ("numpy", "sin"),
        ("numpy", "concatenate,lt,dot_general,tanh,iota"),
        # What no other primitive of the level is lowered by.
        ("cpu", "reduce_sum,dot_general,transpose"),
    ],
)
def test_a_broken_lowering_fails_its_own_test(kit: Any, base: str, broken: str) -> None:
    outcomes = kit(base, broken, suite("primitives"), "--dovetail-level=essential", "-k=lowering")
    assert len(outcomes) == 25
    assert failed(outcomes) == {f"test_rules_agree[{n}-lowering_agrees]" for n in broken.split(",")}


def test_a_broken_lowering_among_all(kit: Any) -> None:
    """All primitives; a few broken at once, of every kind: each fails its own test alone."""
    broken = "sort,cumsum,erf,gather,fft,lu,argmax,is_finite,population_count,cond"
    outcomes = kit("numpy", broken, suite("primitives"), "-k=lowering_agrees")
    assert len(outcomes) > 150
    assert failed(outcomes) == {f"test_rules_agree[{n}-lowering_agrees]" for n in broken.split(",")}


def test_a_contract_that_is_kept(kit: Any) -> None:
    outcomes = kit("numpy", "private", suite("contract"), ok=True)
    assert set(outcomes.values()) == {"passed"}


def test_a_contract_that_is_broken(kit: Any) -> None:
    """Each fault fails the test that is about it, and no other."""
    tests = {
        "imports": "test_importing_the_plugin_imports_little",
        "writes": "test_importing_the_plugin_does_nothing_else",
        "capability": "test_capabilities_are_known",
        "changing": "test_description_is_pure",
        "program": "test_probe_is_pure",
        "any option": "test_unknown_options_are_refused",
        "devices": "test_devices_are_numbered",
    }
    assert failed(kit("numpy", ",".join(tests), suite("contract"))) == set(tests.values())


#: By the backend that is copied and the faults: the suite, and patterns of tests that fail.
FAULTS = {
    ("cpu", "unknown primitive"): ("contract", ["test_lowerings_name_primitives"]),
    ("numpy", "environment"): ("contract", ["test_description_is_pure"]),
    ("cpu", "beyond"): ("contract", ["test_host_functions_compute_their_primitives"]),
    ("numpy", "text for bits,rev"): (
        "device",
        ["test_transfers_keep_every_bit?float*", "test_programs_pass_every_bit_on*"],
    ),
    ("numpy", "while,cond,scan"): (
        "control_flow",
        ["test_while_loop*", "test_cond*", "test_switch*", "test_scan?*", "test_map"],
    ),
    ("numpy", "tanh"): ("transformations", ["test_transformed_programs?network*"]),
    ("numpy", "float32 operands rounded to bfloat16"): (
        "device",
        ["test_products_of_any_precision?dot?", "test_products_of_any_precision?conv?"],
    ),
    ("numpy", "silent callbacks"): (
        "callbacks",
        ["test_exceptions_arrive_as_they_are?pure?", "test_wrong_results"],
    ),
    ("cpu", "collectives"): ("collectives", ["test_all_reduce?add*", "test_reduce_scatter"]),
}


#: Primitives with results in a dtype whose samples cannot show that bits are lost, and why.
NOT_SHOWN = {
    ("iota", "float64"): "the first number that float32 does not hold is the 2**24th",
}


def computing_in(dtype: str) -> set[str]:
    """The primitives that have a sample with results in a dtype, or in pairs of it."""
    kinds = {np.dtype(dtype), np.dtype(f"c{2 * np.dtype(dtype).itemsize}")}
    found = set()
    for name, samples in all_samples().items():
        primitive = defined_primitives()[name]
        for sample in samples:
            if sample.raises is None and (name, dtype) not in NOT_SHOWN:
                with enable_x64(True):
                    avals = map(aval_of_sample, sample.arrays())
                    out = primitive.abstract(*avals, **sample.params)
                outs = out if primitive.multiple_results else [out]
                found |= {name} if kinds & {o.dtype for o in outs} else set()
    return found


@pytest.mark.parametrize(("wide", "narrow"), [("float32", "bfloat16"), ("float64", "float32")])
def test_lost_bits_of_results_are_found(kit: Any, wide: str, narrow: str) -> None:
    """Where each result is rounded to fewer bits, each primitive that has such results fails."""
    faults = f"{wide} results rounded to {narrow}"
    outcomes = kit("numpy", faults, suite("primitives"), "-k=lowering_agrees")
    tests = {f"test_rules_agree[{name}-lowering_agrees]" for name in computing_in(wide)}
    assert tests - failed(outcomes) == set()


def test_lost_bits_of_operands_are_found(kit: Any) -> None:
    """Products in bfloat16 are not the highest precision, and comparisons look at every bit."""
    faults = "float32 operands rounded to bfloat16"
    outcomes = kit("numpy", faults, suite("primitives"), "-k=lowering_agrees")
    single = np.dtype(np.float32)
    names = {
        name
        for name, samples in mantissas.SAMPLES.items()
        if any(array.dtype == single for s in samples for array in s.arrays())
    }
    tests = {f"test_rules_agree[{name}-lowering_agrees]" for name in names}
    assert tests - failed(outcomes) == set()


def test_what_is_not_declared_is_not_asked_for(kit: Any) -> None:
    """A backend that refuses numbers of 64 bits and complex ones passes the essential level."""
    suites = [suite(n) for n in ("primitives", "transformations", "control_flow", "device")]
    outcomes = kit("numpy", "strict", *suites, "--dovetail-level=essential", ok=True)
    assert sum(outcome == "passed" for outcome in outcomes.values()) > 300
    assert outcomes["test_rules_agree[dot_general-derivatives_agree]"] == "passed"


def test_floats_of_32_bits_are_enough(kit: Any) -> None:
    """The bounds of the suites leave room for the rounding of a real compiler's float32."""
    suites = [suite(n) for n in ("transformations", "control_flow")]
    outcomes = kit("cpu", "float32", *suites, "--dovetail-level=essential", ok=True)
    assert outcomes["test_transformed_programs[network-grad]"] == "passed"


@pytest.mark.parametrize("program", ["mixed_precision", "factorizations", "special"])
def test_bounds_of_programs_can_be_missed(kit: Any, program: str) -> None:
    """Also a program that may be off by much is found where bfloat16 stands in for float32."""
    faults = "strict,float32 operands rounded to bfloat16"
    outcomes = kit("numpy", faults, suite("transformations"), f"-k=transformed and {program}")
    tests = {f"test_transformed_programs[{program}-{n}]" for n in ("nothing", "grad", "vmap")}
    assert tests - failed(outcomes) == set()


@pytest.mark.parametrize(("base", "faults"), FAULTS)
def test_faults_are_found(kit: Any, base: str, faults: str) -> None:
    name, patterns = FAULTS[base, faults]
    outcomes = kit(base, faults, suite(name), "--dovetail-level=essential")
    found = failed(outcomes)
    for pattern in patterns:
        assert fnmatch.filter(found, pattern), f"{pattern} does not fail, but {sorted(found)}"
