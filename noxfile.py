"""Everything that is done to this repository by command: `nox -l` lists it.

Each session makes its own environment. Words after `--` go to the program that the session runs:
`nox -s tests -- tests/plugins -k doctor`.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.sessions = ["tests", "lint", "typing"]
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = False

ROOT = Path(__file__).parent
DIST = ROOT / "dist"
PYPROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
PACKAGES = (
    *("core", "native-core", "numpy-api", "testing", "exporter-onnx"),
    *("backend-cpu", "backend-cuda", "backend-tpu"),
)
KEPT_KERNELS = {"DOVETAIL_KERNELS_KEPT_IN": str(ROOT / ".nox" / "kernels")}
"""What one session has compiled for the CPU backend, another takes."""
HAS_ZIG = importlib.util.find_spec("ziglang") is not None
ZIG = f"{sys.executable if HAS_ZIG else 'python'} -m ziglang"
"""The compiler of the wheels: of the Python that runs nox, if it is there, or of a session."""
COMPILERS = {"CXX": f"{ZIG} c++", "CC": f"{ZIG} cc"}
OWN_KERNELS = {"DOVETAIL_KERNELS_FOR": "native", **KEPT_KERNELS, **(COMPILERS if HAS_ZIG else {})}
"""For a package that stays on this machine, those for its processor are enough. Where nox has the
compiler of the wheels, it compiles these, too: what is tested is then what the wheels hold."""
PYTHONS = ("3.11", "3.12", "3.13")
"""The Pythons that are supported; of these, what is installed here is tested."""

EVERYTHING = ("-n", "2", "--dist", "worksteal", "--by-folder")
"""Two processes: more would wait for each other's compiler threads."""

ESSENTIAL = (
    *EVERYTHING,
    "--dovetail-samples=1",
    "-m",
    "essential and not coexistence and not aot",
)
"""The inner ring, by the rule in tests/conftest.py; of each primitive one sample."""

CODE = ("packages", "tests", "benchmarks", "examples", "docs", "noxfile.py")


def group(name: str) -> list[str]:
    """The requirements in one dependency group of pyproject.toml."""
    return list(nox.project.dependency_groups(PYPROJECT, name))


def install(session: nox.Session, *requirements: str) -> None:
    """Install the eight distributions in editable mode, in one go so that they find each other.

    They are built here: an environment for the build of each would take longer than all the rest.
    But one for kernels has the headers of the oldest jaxlib, so that they are compiled once for
    sessions with any.
    """
    kernels = "backend-cpu"
    session.install(*group("build"), *compiler(), "editables")
    apart = f"jaxlib=={jaxlib_version(session)}" not in group("release")
    first = [name for name in PACKAGES if name != kernels or not apart]
    editable = [word for name in first for word in ("-e", f"packages/{name}")]
    session.install("--no-build-isolation", *editable, *requirements, env=OWN_KERNELS)
    if apart:
        session.install("-e", f"packages/{kernels}", env=OWN_KERNELS)


def compiler() -> list[str]:
    """A C++ compiler in a wheel, where the system has none, for the kernels of the CPU backend."""
    found = HAS_ZIG or os.environ.get("CXX") or any(map(shutil.which, ("g++", "clang++", "c++")))
    return [] if found else group("compiler")


@functools.cache
def find_python(version: str) -> str | None:
    """The interpreter of a version such as "3.12", where there is one that runs.

    Looked for: the Python that runs nox, `PATH`, and what pyenv and uv have installed. A name on
    `PATH` may be pyenv's stand-in for a Python that is not switched on, so each is tried.
    """
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    uv = Path.home() / ".local" / "share" / "uv" / "python"
    candidates = [sys.executable, shutil.which(name)]
    candidates += sorted(map(str, pyenv.glob(f"{version}*/bin/{name}")))
    candidates += sorted(map(str, uv.glob(f"cpython-{version}*/bin/{name}")))
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    for candidate in candidates:
        if candidate is None:
            continue
        answer = subprocess.run([candidate, "-c", code], capture_output=True, text=True)
        if answer.returncode == 0 and answer.stdout.strip() == version:
            return candidate
    return None


@nox.session
def demo(session: nox.Session) -> None:
    """Train a network on handwritten digits, and show what plug-ins were found."""
    install(session, *group("demo"))
    session.run("python", "-m", "dovetail", "doctor")
    session.run("python", "examples/train_digits.py", *session.posargs)


EXAMPLES = (
    "train_digits",
    "convolutions",
    "gaussian_process",
    "harmonic_oscillator",
    "logistic_regression",
    "transformer",
    "turbulence",
    "sharded_digits",
    "tensor_parallel_transformer",
    "ring_attention",
    "pipeline",
    "train_through_kills",
)

FIGURES_ONLY = (
    "sharded_digits",
    "tensor_parallel_transformer",
    "ring_attention",
    "pipeline",
    "train_through_kills",
)
"""Examples that draw no picture."""


@nox.session
def examples(session: nox.Session) -> None:
    """Run the examples, each under a minute; after `--`: those that it names."""
    install(session, *group("demo"))
    for name in session.posargs or EXAMPLES:
        picture = ("--picture", f"{session.create_tmp()}/{name}.png")
        words = () if name in FIGURES_ONLY else picture
        session.run("python", f"examples/{name}.py", *words)


@nox.session
def tests(session: nox.Session) -> None:
    """Run a part of every kind of test, a few minutes; after `--`: those tests that it names."""
    install(session, *group("tests"))
    session.run("python", "-m", "pytest", *(session.posargs or ESSENTIAL))


@nox.session(name="tests-all")
def tests_all(session: nox.Session) -> None:
    """Run all tests."""
    install(session, *group("tests"))
    session.run("python", "-m", "pytest", *(session.posargs or EVERYTHING))


def _tests_on(name: str, version: str, words: tuple[str, ...], what: str) -> None:
    """Define the session `<name>-<version>`."""

    @nox.session(name=f"{name}-{version}", python=find_python(version) or version)
    def tests_on(session: nox.Session) -> None:
        install(session, *group("tests"))
        session.run("python", "-m", "pytest", *(session.posargs or words))

    tests_on.__doc__ = f"Run {what} on Python {version}."


for _version in PYTHONS:
    _tests_on("tests", _version, ESSENTIAL, "a part of every kind of test")
    _tests_on("tests-all", _version, EVERYTHING, "all tests")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format; `nox -s lint -- --fix` mends what can be mended."""
    session.install(*group("lint"))
    paths = [path for path in CODE if (ROOT / path).exists()]
    fix = "--fix" in session.posargs
    session.run("ruff", "check", *(["--fix"] if fix else []), *paths)
    session.run("ruff", "format", *([] if fix else ["--check"]), *paths)


@nox.session
def typing(session: nox.Session) -> None:
    """Check types, strictly, and what mypy and pyright say of functions of installed wheels."""
    install(session, *group("typing"))
    session.run("mypy", *session.posargs)
    folder = Path(session.create_tmp()).resolve()
    for name in ("wheels", "environment"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in PACKAGES:
        with session.chdir(ROOT / "packages" / name):
            words = ("--target", "wheel", "--directory", str(folder / "wheels"))
            session.run("hatchling", "build", *words, silent=True, env=OWN_KERNELS)
    session.run("python", "-m", "venv", str(folder / "environment"))
    python = str(folder / "environment" / "bin" / "python")
    built = sorted(map(str, (folder / "wheels").glob("*.whl")))
    session.run(python, "-m", "pip", "install", "-q", *built, external=True)
    session.run("python", "tests/typing/check.py", python)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site into dist/docs, check its links, look at it; after `--`: words for Sphinx."""
    install(session, *group("docs"))
    site = DIST / "docs"
    for folder in (site, ROOT / ".nox" / "doctrees"):  # what runs in cells may have changed
        shutil.rmtree(folder, ignore_errors=True)
    words = ("--fail-on-warning", "--keep-going", "-j", "auto", "-d", ".nox/doctrees")
    # A page shows what is written to stderr, and a busy machine compiles slowly.
    quiet = {"DOVETAIL_SLOW_COMPILE_SECS": "0"}
    session.run("sphinx-build", "-q", *words, *session.posargs, "docs", str(site), env=quiet)
    session.run("python", "tests/site/check_links.py", str(site))
    session.run("python", "tests/site/look.py", str(site))


@nox.session
def wheels(session: nox.Session) -> None:
    """Build the eight wheels into dist/; install them in a fresh environment on every Python.

    Kernels are compiled for an old C library and with the headers of the oldest jaxlib; after `--`:
    for which instruction sets, if not for all (`native`). Of `dovetail-native` there is one wheel
    for each Python.
    """
    session.install(*group("build"), *group("release"))
    for old in DIST.glob("dovetail_*.whl"):
        old.unlink()
    words = ("--target", "wheel", "--directory", str(DIST))
    for name in PACKAGES:
        with session.chdir(ROOT / "packages" / name):
            chosen = {"DOVETAIL_KERNELS_FOR": ",".join(session.posargs)} if session.posargs else {}
            session.run("hatchling", "build", *words, env={**COMPILERS, **KEPT_KERNELS, **chosen})
    check_no_shared_file(session, sorted(DIST.glob("dovetail_*.whl")))
    for version in PYTHONS:
        interpreter = find_python(version)
        if interpreter is None:
            session.warn(f"Python {version} is not installed here: wheels not tried on it")
            continue
        environment = Path(session.create_tmp()).resolve() / f"try-{version}"
        shutil.rmtree(environment, ignore_errors=True)
        session.run(interpreter, "-m", "venv", str(environment), external=True)
        python = str(environment / "bin" / "python")
        tag = f"cp{version.replace('.', '')}"
        if not list(DIST.glob(f"dovetail_native-*-{tag}-*.whl")):
            requirements = ("hatchling>=1.26", "numpy>=2.0")
            session.run(python, "-m", "pip", "install", "-q", *requirements, external=True)
            with session.chdir(ROOT / "packages" / "native-core"):
                build = (python, "-m", "hatchling", "build", *words)
                session.run(*build, env=COMPILERS, external=True)
        # README's command, then the exporter, and the backends for hardware that is not here.
        pip = (python, "-m", "pip", "install", "-q", "--find-links", "dist")
        session.run(*pip, "dovetail-core[cpu,native,testing]", external=True)
        session.run(*pip, "dovetail-cuda", "dovetail-onnx", "dovetail-tpu", external=True)
        # -I: neither the repository's folder nor PYTHONPATH may lend a module to the wheels.
        smoke = str(ROOT / "tests" / "packaging" / "smoke.py")
        session.run(python, "-I", "-W", "error", smoke, external=True)
        session.run(python, "-I", "-m", "dovetail", "doctor", external=True)


def check_no_shared_file(session: nox.Session, built: list[Path]) -> None:
    """Fail when two wheels hold the same file: uninstalling one would break the other."""
    if len(built) != len(PACKAGES):
        session.error(f"expected {len(PACKAGES)} wheels, got {[path.name for path in built]}")
    files = Counter(name for path in built for name in zipfile.ZipFile(path).namelist())
    shared = sorted(name for name, count in files.items() if count > 1)
    if shared:
        session.error(f"in more than one wheel: {', '.join(shared)}")


ARRAY_API_TESTS = "https://github.com/data-apis/array-api-tests"
ARRAY_API_COMMIT = "55fcc60179efa2680ddd6cd926ddf17b83530e2b"
EXPECTED_FAILURES = ROOT / "tests" / "conformance" / "array_api_failures.txt"


@nox.session(name="array-api")
def array_api(session: nox.Session) -> None:
    """Run the public tests of the Python array API standard; `-- -k sort` for some of them.

    What fails must be in the file of expected failures, and what is in it must fail, or be marked
    there as random, and is then left out.
    """
    install(session)
    suite = Path(session.create_tmp()).resolve() / "array-api-tests"
    git = ("git", "-C", str(suite))
    if not suite.exists():
        session.run("git", "clone", "-q", ARRAY_API_TESTS, str(suite), external=True)
    session.run(*git, "checkout", "-q", ARRAY_API_COMMIT, external=True)
    session.run(*git, "submodule", "update", "--init", "-q", external=True)
    session.install("-r", str(suite / "requirements.txt"))
    session.chdir(suite)
    environment = {"ARRAY_API_TESTS_MODULE": "dovetail.numpy", "DOVETAIL_ENABLE_X64": "1"}
    pytest = ("python", "-m", "pytest", "-p", "no:cacheprovider", "-q")
    listed = session.run(*pytest, "--collect-only", env=environment, silent=True)
    lines = EXPECTED_FAILURES.read_text(encoding="utf-8").splitlines()
    named = [line for line in lines if line and not line.startswith("#")]
    random = [line.removeprefix("random: ") for line in named if line.startswith("random: ")]
    expected = [line for line in named if not line.startswith("random: ")]
    unknown = {*expected, *random} - set(str(listed).splitlines())
    if unknown:
        session.error(f"expected to fail, and no tests: {', '.join(sorted(unknown))}")
    words = ("--derandomize", "--disable-deadline", "--max-examples", "100")
    failures = suite.with_name("expected_failures.txt")
    failures.write_text("\n".join(expected), encoding="utf-8")
    # In one word, or pytest takes the file's folder for the root of the tests.
    strict = ("-o", "xfail_strict=true", f"--xfails-file={failures}")
    left_out = [f"--deselect={test}" for test in random]
    session.run(*pytest, *words, *strict, *left_out, *session.posargs, env=environment)


@nox.session(python=find_python("3.12") or "3.12")
def clients(session: nox.Session) -> None:
    """Run the test suites of libraries that import jax on dovetail: `-- optax`, `-- --essential`.

    `tests/clients/libraries.toml` says which, and where their tests come from.
    """
    install(session)
    session.install("--no-deps", "-r", "tests/clients/requirements.txt")
    folder = Path(session.create_tmp()).resolve() / "suites"
    words = ("--folder", str(folder), *session.posargs)
    session.run("python", "tests/clients/run_clients.py", *words)


@nox.session(name="third-party")
def third_party(session: nox.Session) -> None:
    """Run the conformance kit on a PJRT plug-in that others made: `-- --dovetail-level=full`.

    The tests of plug-ins in `tests/plugins` use the same wheel.
    """
    install(session, *group("tests"))
    session.install("xla-cpu-pjrt==0.0.1")
    expected = ROOT / "packages" / "testing" / "tests" / "xla_cpu_pjrt_xfails.txt"
    words = ("--dovetail-platform=xla_cpu_pjrt", f"--dovetail-xfails={expected}")
    session.chdir(session.create_tmp())  # the kit is run as the authors of a backend run it
    suites = ("--pyargs", "dovetail.testing.suites")
    session.run("python", "-m", "pytest", "-q", *suites, *words, *session.posargs)


@nox.session(name="aot-tpu")
def aot_tpu(session: nox.Session) -> None:
    """Compile every primitive for TPUs that are not here; `-- -k essential` for 25 of them."""
    install(session, *group("tests"), "-e", "packages/backend-tpu[libtpu]")
    compile_ahead_of_time(session, "tpu", "tests/backends/tpu/test_topologies.py")


@nox.session(name="aot-cuda")
def aot_cuda(session: nox.Session) -> None:
    """Compile every primitive for GPUs that are not here; `-- -k essential` for 25 of them."""
    install(session, *group("tests"))
    # The plug-in's kernels are used by the jaxlib of their own version alone.
    plugin = f"jax-cuda13-plugin=={jaxlib_version(session)}"
    session.install("-e", "packages/backend-cuda[aot]", plugin)
    compile_ahead_of_time(session, "cuda", "tests/backends/cuda/test_ahead_of_time.py")


def compile_ahead_of_time(session: nox.Session, family: str, more: str) -> None:
    """Run the tests that need a compiler for hardware; leave a report for docs/aot.md."""
    report = ROOT / ".nox" / f"aot-{family}.json"
    pytest = ("python", "-m", "pytest")
    session.run(*pytest, more)
    words = ("-m", "aot", f"tests/aot/test_{family}.py", "--durations=10")
    session.run(*pytest, *words, *session.posargs, env={"DOVETAIL_TESTING_AOT_REPORT": str(report)})


@nox.session
def interrupts(session: nox.Session) -> None:
    """Interrupt at many more instructions, lines of imports, and times than the suite does."""
    install(session, *group("tests"))
    counts = {"INTERRUPTS": "1000", "SIGNALS": "2000", "FIRST_USES": "300"}
    environment = {f"DOVETAIL_TESTING_{name}": count for name, count in counts.items()}
    folder = "tests/runtime/interrupts"
    session.run("python", "-m", "pytest", "-q", folder, *session.posargs, env=environment)


@nox.session
def large(session: nox.Session) -> None:
    """Compute with 2**31 + 10 elements; needs 16 GB of memory, some of it 52."""
    install(session, *group("tests"))
    words = ("-q", "--durations=10", "tests/numpy/test_large_values.py", *session.posargs)
    environment = {"DOVETAIL_TESTING_SIZE": str(2**31 + 10)}
    session.run("python", "-m", "pytest", *words, env=environment)


@nox.session
def coexistence(session: nox.Session) -> None:
    """Run the tests with jax in the environment, and in one process with jax, in both orders."""
    install(session, *group("tests"))
    session.install(f"jax=={jaxlib_version(session)}")
    session.run("python", "-m", "pytest", "-m", "coexistence", "tests/coexistence")
    session.run("python", "-m", "pytest", *(session.posargs or EVERYTHING))


def differential(session: nox.Session) -> None:
    """Compare random programs with JAX at the same jaxlib; `-- --programs 20000 --workers 2`."""
    install(session)
    pythons = ("--dovetail", str(Path(session.bin) / "python"), "--jax", install_jax(session))
    session.run("python", "tests/differential/compare_with_jax.py", *pythons, *session.posargs)


nox.session(differential)
for _version in PYTHONS:
    nox.session(
        differential, name=f"differential-{_version}", python=find_python(_version) or _version
    )


@nox.session
def fuzz(session: nox.Session) -> None:
    """Call all public functions with random arguments; `-- --calls 20000 --seed 0 --workers 2`."""
    install(session)
    session.run("python", "tests/fuzz/fuzz.py", *session.posargs)


@nox.session
def soak(session: nox.Session) -> None:
    """Repeat everything for hours, and look for what is left; `-- --iterations 500 --seconds 5`."""
    install(session)
    words = session.posargs or ["--jax", install_jax(session)]
    session.run("python", "tests/soak/soak.py", *words)


@nox.session(python=False)
def weekly(session: nox.Session) -> None:
    """Run, one after another, the sessions that take hours and look for what is rare."""
    for name in ("tests-all", "fuzz", "interrupts", "large", "soak", "differential"):
        session.notify(name)


def against_jax(
    session: nox.Session, program: str, output: str, *words: str, needs: tuple[str, ...] = ()
) -> None:
    """Install both frameworks on the same jaxlib, and run a program of benchmarks/ on them."""
    install(session, *needs)
    own, python = str(Path(session.bin) / "python"), install_jax(session)
    pythons = ("--dovetail", own, "--jax", python)
    given = session.posargs or ("--output", f"benchmarks/{output}", *words)
    session.run(own, f"benchmarks/{program}.py", *pythons, *given)


def bench(session: nox.Session) -> None:
    """Measure against JAX at the same jaxlib, interleaved; `-- --rounds 1` for a first look."""
    against_jax(session, "compare", "results.md", needs=tuple(group("demo")))


nox.session(bench)
for _version in PYTHONS:
    nox.session(bench, name=f"bench-{_version}", python=find_python(_version) or _version)


def bench_operations(session: nox.Session) -> None:
    """Measure workloads against JAX, NumPy and PyTorch, interleaved; `-- --only sort`."""
    install(session)
    pythons = {}
    version = jaxlib_version(session)
    for name, wanted in (
        ("jax", (f"jax=={version}", f"jaxlib=={version}")),
        ("torch", ("torch", "numpy", "scipy")),
    ):
        folder = Path(session.create_tmp()).resolve() / name
        pythons[name] = str(folder / "bin" / "python")
        if not folder.exists():
            session.run("python", "-m", "venv", str(folder), external=True)
        session.run(pythons[name], "-m", "pip", "install", "-q", *wanted, external=True)
    words = session.posargs or ["--output", "benchmarks/operations.md"]
    own = str(Path(session.bin) / "python")
    others = ("--jax", pythons["jax"], "--torch", pythons["torch"])
    session.run(own, "benchmarks/compare_operations.py", "--dovetail", own, *others, *words)


def bench_numpy(session: nox.Session) -> None:
    """Measure calls of the NumPy API and `nn` against JAX at the same jaxlib, interleaved."""
    against_jax(session, "compare_numpy_functions", "numpy_functions.md")


def bench_devices(session: nox.Session) -> None:
    """Measure programs and transfers over eight CPU devices against JAX, interleaved."""
    against_jax(session, "compare_devices", "devices.md")


def bench_processes(session: nox.Session) -> None:
    """Measure training in one and in four processes against JAX, interleaved."""
    against_jax(session, "compare_processes", "devices.md", "--append")


def bench_tools(session: nox.Session) -> None:
    """Measure what the tools cost, switched off and on, beside JAX."""
    against_jax(session, "tools", "tools.md")


nox.session(bench_numpy)
nox.session(bench_operations)
nox.session(bench_tools)
nox.session(bench_processes)
nox.session(bench_devices)
for _version in PYTHONS:
    nox.session(
        bench_numpy, name=f"bench_numpy-{_version}", python=find_python(_version) or _version
    )
    nox.session(
        bench_operations,
        name=f"bench_operations-{_version}",
        python=find_python(_version) or _version,
    )
    nox.session(
        bench_devices, name=f"bench_devices-{_version}", python=find_python(_version) or _version
    )
    nox.session(
        bench_processes,
        name=f"bench_processes-{_version}",
        python=find_python(_version) or _version,
    )
    nox.session(
        bench_tools, name=f"bench_tools-{_version}", python=find_python(_version) or _version
    )


@nox.session(python=find_python("3.12") or "3.12")
def bench_ecosystem(session: nox.Session) -> None:
    """Measure programs that use libraries of the ecosystem against JAX; `-- --rounds 1`."""
    install(session)
    requirements = ("--no-deps", "-r", "tests/clients/requirements.txt")
    session.install(*requirements)
    python = install_jax(session)
    session.run(python, "-m", "pip", "install", "-q", *requirements, external=True)
    words = session.posargs or ["--output", "docs/ecosystem.md"]
    own = str(Path(session.bin) / "python")
    pythons = ("--dovetail", own, "--jax", python)
    session.run(own, "benchmarks/compare_ecosystem.py", *pythons, *words)


@nox.session
def accuracy(session: nox.Session) -> None:
    """Measure the errors of special functions, and JAX's on the same jaxlib, against mpmath."""
    install(session, "mpmath")
    python = install_jax(session)
    words = session.posargs or ["--output", "benchmarks/accuracy.md"]
    own = str(Path(session.bin) / "python")
    session.run(own, "benchmarks/accuracy.py", "--jax", python, *words)


def install_jax(session: nox.Session) -> str:
    """The interpreter of an environment with JAX, on the jaxlib of the session's own."""
    folder = Path(session.create_tmp()).resolve() / "jax"
    python = str(folder / "bin" / "python")
    if not folder.exists():
        session.run("python", "-m", "venv", str(folder), external=True)
    version = jaxlib_version(session)
    wanted = (f"jax=={version}", f"jaxlib=={version}")
    session.run(python, "-m", "pip", "install", "-q", *wanted, external=True)
    return python


def jaxlib_version(session: nox.Session) -> str:
    """The version of jaxlib in a session's environment."""
    code = "import jaxlib.version; print(jaxlib.version.__version__)"
    text = session.run("python", "-c", code, silent=True)
    return str(text).strip()
