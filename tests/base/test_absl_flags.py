"""Options as flags of absl, which these tests stand in for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FLAGS = """
class Flag:
    def __init__(self, boolean):
        self.boolean, self.present, self.value = boolean, 0, None


class UnrecognizedFlagError(Exception):
    pass


class Flags(dict):
    def __call__(self, argv):
        rest = argv[:1]
        for argument in argv[1:]:
            name, _, value = argument.removeprefix("--").partition("=")
            negated = name.startswith("no") and name[2:] in self
            flag = self.get(name[2:] if negated else name)
            if flag is None:
                raise UnrecognizedFlagError(name)
            flag.present += 1
            flag.value = value
            if flag.boolean:
                flag.value = not negated and value.lower() in ("", "true", "1")
        return rest


FLAGS = Flags()


def DEFINE_string(name, default, help, allow_override=False):
    assert name not in FLAGS and default is None and help
    FLAGS[name] = Flag(False)


def DEFINE_boolean(name, default, help, allow_override=False):
    DEFINE_string(name, default, help)
    FLAGS[name].boolean = True
"""
APP = """
import sys
from absl import flags

callbacks = []
call_after_init = callbacks.append


def run(main):
    rest = flags.FLAGS(sys.argv)
    for callback in callbacks:
        callback()
    main(rest)
"""
SHOW = "print(dt.config.enable_x64, dt.config.num_cpu_devices, dt.config.debug_nans)"
PARSE = f"import dovetail as dt; dt.config.parse_flags_with_absl(); {SHOW}"
RUN = f"""
import dovetail as dt
from absl import app
dt.config.config_with_absl()
dt.config.config_with_absl()
app.run(lambda rest: {SHOW})
"""


def start(code: str, folder: Path | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("DOVETAIL_", "JAX_"))}
    if folder is not None:
        environment["PYTHONPATH"] = str(folder)
    else:
        code = "import sys; sys.modules['absl'] = None; " + code
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def absl(tmp_path: Path) -> Path:
    folder = tmp_path / "absl"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "flags.py").write_text(FLAGS)
    (folder / "app.py").write_text(APP)
    return tmp_path


@pytest.mark.parametrize("code", [PARSE, RUN])
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ((), "False -1 False"),
        (("--jax_enable_x64", "--jax_num_cpu_devices=3"), "True 3 False"),
        (("--dovetail_enable_x64=true", "--dovetail_debug_nans"), "True -1 True"),
        (("--nojax_enable_x64", "--jax_use_shardy_partitioner=true"), "False -1 False"),
    ],
)
def test_flags_set_options(code: str, arguments: tuple[str, ...], shown: str, absl: Path) -> None:
    result = start(code, absl, *arguments)
    assert result.stdout.strip() == shown, result.stderr


def test_flags_of_the_program_are_left_to_it(absl: Path) -> None:
    result = start(PARSE, absl, "--epochs=3", "name", "--jax_enable_x64")
    assert result.stdout.strip() == "True -1 False", result.stderr


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--jax_num_cpu_devices=many", "ValueError: the flag --jax_num_cpu_devices is 'many', whi"),
        ("--dovetail_transfer_guard=no", "ValueError: the flag --dovetail_transfer_guard is 'no'"),
        ("--jax_scan3=true", "NotImplementedError: --jax_scan3=true: "),
        ("--jax_enable_x46", "UnrecognizedFlagError: jax_enable_x46"),
    ],
)
def test_wrong_flags_are_errors(argument: str, message: str, absl: Path) -> None:
    result = start(PARSE, absl, argument)
    assert result.returncode != 0
    assert message in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("code", [PARSE, PARSE.replace("parse_flags", "config")])
def test_without_absl_the_error_says_what_to_install(code: str) -> None:
    result = start(code, None)
    assert "ImportError: options are read from flags by absl" in result.stderr
    assert "pip install absl-py" in result.stderr
