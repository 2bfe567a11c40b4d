"""Compare what mypy and pyright say of `expectations.py` with the comments in it.

    python tests/typing/check.py PYTHON

PYTHON is an interpreter whose environment has the wheels. The program exits with 1 if a type is
another than its comment says, if an error is missing or unexpected, or if a distribution has no
`py.typed`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

EXPECTATIONS = Path(__file__).with_name("expectations.py")
Findings = tuple[dict[int, str], dict[int, list[str]]]
"""The revealed type of each line, and its errors."""


def expected(path: Path, checker: str) -> Findings:
    """What the comments say; `# expect: Array (mypy: Any)` where a checker cannot tell."""
    types, errors = {}, defaultdict(list)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        code, _, comment = line.partition("  # ")
        if comment.startswith("expect: "):
            wanted = re.fullmatch(r"expect: (.*?)(?: \((\w+): (.*)\))?", comment)
            assert wanted is not None
            types[number] = wanted[3] if wanted[2] == checker else wanted[1]
        elif comment == "error":
            errors[number].append(code)
    return types, errors


def plain(text: str) -> str:
    """A type without what the two checkers write differently: modules and bases."""
    text = re.sub(r"TypedDict\('?([\w.]+)'?, \{.*?\}\)", r"\1", text)
    text = re.sub(r"tuple\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*, fallback=([\w.]+)\]", r"\1", text)
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text)


def run(command: list[str], folder: Path) -> str:
    """The output of a type checker, which exits with 1 when there are errors."""
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if answer.returncode not in (0, 1):
        sys.exit(f"{command[0]} failed:\n{answer.stdout}{answer.stderr}")
    return answer.stdout


def by_mypy(path: Path, python: str) -> Findings:
    """What mypy says, in strict mode."""
    words = ["--strict", "--python-executable", python, "--no-error-summary", "--config-file="]
    words += ["--allow-untyped-calls", "--cache-dir", str(path.parent / "cache")]
    output = run([sys.executable, "-m", "mypy", *words, path.name], path.parent)
    types, errors = {}, defaultdict(list)
    for line in output.splitlines():
        found = re.match(r"([^:]+):(\d+): (\w+): (.*)", line)
        if found is None or found[1] != path.name:
            sys.exit(f"mypy: {line}")
        number, message = int(found[2]), found[4]
        if revealed := re.match(r'Revealed type is "(.*)"', message):
            types[number] = plain(revealed[1])
        elif found[3] == "error":
            errors[number].append(message)
    return types, errors


def by_pyright(path: Path, python: str) -> Findings:
    """What pyright says."""
    # Without a list of its own pyright passes over folders such as `.nox`, where nox has temporary
    # files.
    settings = {
        "include": [path.name],
        "exclude": ["**/node_modules"],
        "typeCheckingMode": "standard",
    }
    (path.parent / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", python]
    types, errors = {}, defaultdict(list)
    for found in json.loads(run(command, path.parent))["generalDiagnostics"]:
        number, message = found["range"]["start"]["line"] + 1, found["message"]
        if revealed := re.match(r'Type of ".*" is "(.*)"', message, re.DOTALL):
            types[number] = plain(revealed[1])
        elif found["severity"] == "error":
            errors[number].append(message)
    return types, errors


def differences(checker: str, wanted: Findings, found: Findings) -> list[str]:
    """A line for each type and each error that is not as expected."""
    texts = []
    for number in sorted({*wanted[0], *found[0]}):
        mine, theirs = wanted[0].get(number, "nothing"), found[0].get(number, "nothing")
        if mine != theirs:
            texts.append(f"{checker}: line {number}: expected {mine}, revealed {theirs}")
    for number in sorted({*wanted[1], *found[1]}):
        if number not in found[1]:
            texts.append(f"{checker}: line {number}: no error in {wanted[1][number][0]}")
        elif number not in wanted[1]:
            texts.append(f"{checker}: line {number}: {found[1][number][0]}")
    return texts


def without_marker(python: str) -> list[str]:
    """A line for each distribution of dovetail without `py.typed`, or if there are none."""
    code = (
        "import json, importlib.metadata as m; print(json.dumps({d.name: [f.name for f in d.files]"
        " for d in m.distributions() if d.name.startswith('dovetail')}))"
    )
    answer = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
    files = json.loads(answer.stdout)
    missing = [f"{name} has no py.typed" for name in files if "py.typed" not in files[name]]
    return missing if files else [f"no distribution of dovetail is installed for {python}"]


def main(python: str) -> int:
    texts = without_marker(python)
    with tempfile.TemporaryDirectory() as folder:
        # Elsewhere, so that neither the settings nor the sources of the repository count.
        path = Path(shutil.copy(EXPECTATIONS, folder))
        for checker, check in (("mypy", by_mypy), ("pyright", by_pyright)):
            wanted = expected(EXPECTATIONS, checker)
            texts += differences(checker, wanted, check(path, python))
    print("\n".join(texts) or f"{len(wanted[0])} types and {len(wanted[1])} errors as expected")
    return bool(texts)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
