"""Nothing here tells anybody to install `dovetail`: the distribution of that name is a stranger's.

Ours are `dovetail-core`, `dovetail-numpy` and so on; `dovetail` is what is imported.
"""

from __future__ import annotations

import re
import tomllib

import pytest

# Put together here so that this file does not hold what it looks for.
STRANGER = "dove" + "tail"

_COMMAND = re.compile(
    r"\b(?:(?:pip[\d.]*|pipx|uv|conda|mamba) +(?:-\S+ +)*install|(?:uv|poetry) +add)\b"
)
_END = re.compile(r"[`\n;|]|&&| #|<br>")
_EXTRAS = re.compile(rf"(?<![\w./-]){STRANGER}\[ *[a-z0-9]+(?: *, *[a-z0-9]+)* *\](?! *=[^=])")
_VERSION = re.compile(rf"""["'`]{STRANGER} *(?:\[[^\]]*\])? *(?:[<>=~!]=|[<>])""")
_JOINED = re.compile(r"""\\\n\s*|(?<=[\w\]\[,. -])["']\s*\n\s*(?:[rf]+)?["']""")


def told_to_install(text: str) -> list[str]:
    """The places in a text that tell to install the stranger's distribution, or depend on it."""
    joined = _JOINED.sub("", text)
    found = [match[0] for pattern in (_EXTRAS, _VERSION) for match in pattern.finditer(joined)]
    for command in _COMMAND.finditer(joined):
        words = _END.split(joined[command.end() :], maxsplit=1)[0].split()
        names = [re.split(r"[\[<>=~!@,]", word.strip("\"'()\\,"))[0] for word in words]
        found += [f"{command[0]} {name}" for name in names if name.rstrip(".:").lower() == STRANGER]
    return found


@pytest.mark.parametrize(
    "text",
    [
        "pip install NAME",
        "pip install NAME.",
        "pip3 install -U NAME",
        "python -m pip install --quiet NAME numpy",
        "pip install numpy 'NAME'",
        "pip install numpy \\\n    NAME",
        '"pip install " \\\n "NAME"',
        '"to install it: pip install "\n    "NAME"',
        'pip install "NAME[cpu]"',
        "pip install NAME[cpu,testing]==0.1.0",
        "pip install NAME==0.1.0",
        "pip install 'NAME>=0.1' numpy",
        "`uv add NAME`",
        "uv pip install NAME",
        "install `NAME[cuda]`, which",
        'dependencies = ["NAME>=0.1.0", "numpy"]',
    ],
)
def test_what_is_looked_for_is_found(text):
    assert told_to_install(text.replace("NAME", STRANGER))


@pytest.mark.parametrize(
    "text",
    [
        "pip install NAME-core",
        'pip install --find-links dist "NAME-core[cpu,testing]" ./examples/backend-numpy',
        "pip install NAME-numpy; import NAME",
        "`pip install numpy`, then import NAME",
        "pip install -e packages/core # NAME itself",
        "pip install NAME_cpu",
        "import NAME",
        'keywords = ["NAME", "pytest"]',
        "NAME.numpy[...]",
        "pip install ./NAME-backend-acme",
    ],
)
def test_what_is_ours_is_not_found(text):
    assert not told_to_install(text.replace("NAME", STRANGER))


def test_nobody_is_told_to_install_what_is_not_ours(tracked_files, root):
    found = []
    for path in tracked_files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture or another binary file
        found += [f"{path.relative_to(root)}: {place}" for place in told_to_install(text)]
    assert not found, "\n".join(found)


def test_no_distribution_has_the_stranger_s_name_or_needs_it(tracked_files):
    projects = [path for path in tracked_files if path.name == "pyproject.toml"]
    assert len(projects) > 6
    for path in projects:
        project = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {})
        extras = project.get("optional-dependencies", {}).values()
        needed = [*project.get("dependencies", ()), *(text for extra in extras for text in extra)]
        names = [project.get("name", ""), *(re.split(r"[\[<>=~! ]", text)[0] for text in needed)]
        assert STRANGER not in names, path
