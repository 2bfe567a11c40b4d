"""Sizes, names and contents of files."""

from __future__ import annotations

import ast
import re

LONGEST = 800

# Public names of the API that people know; the rule is for our own.
UTIL_BY_TRADITION = {
    "chi2.py",
    "flatten_util.py",
    "mesh_utils.py",
    "multihost_utils.py",
    "test_mesh_utils.py",
    "test_util.py",
    "tree_util.py",
}


def test_no_file_over_800_lines(tracked_files, root):
    long = []
    for path in tracked_files:
        if path.suffix == ".py":
            count = len(path.read_text(encoding="utf-8").splitlines())
            if count > LONGEST:
                long.append(f"{path.relative_to(root)}: {count}")
    assert not long, "split by topic:\n" + "\n".join(long)


def test_no_module_is_named_for_having_no_topic(tracked_files, root):
    vague = re.compile(r"(^|_)(util|utils|helper|helpers|common|misc)(_|\.py$)|[a-z]_?2\.py$")
    found = [
        str(path.relative_to(root))
        for path in tracked_files
        if path.suffix == ".py"
        and vague.search(path.name)
        and path.name not in UTIL_BY_TRADITION
        and "as_jax/_modules" not in path.as_posix()  # names of JAX's modules
    ]
    assert found == []


def test_no_machine_path_and_no_registry_host(tracked_files, root):
    # Put together here so that this file does not hold what it looks for.
    machine = ["/" + "work/", "/" + "root/", "/" + "tmp/[a-z]"]
    hosts = ["pypi" + r"\.org", "files" + r"\.pythonhosted", "--index" + "-url"]
    pattern = re.compile("|".join(machine + hosts))
    found = []
    for path in tracked_files:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # a picture or another binary file
        found += [
            f"{path.relative_to(root)}:{number}: {line.strip()[:80]}"
            for number, line in enumerate(lines, 1)
            if pattern.search(line)
        ]
    assert not found, "\n".join(found)


def test_nothing_is_left_for_later(source_tree):
    pattern = re.compile("# *(TO" + "DO|FIX" + "ME|X" + "XX)")
    found = [
        f"{module.label}:{number}"
        for module in source_tree.modules.values()
        for number, line in enumerate(module.lines, 1)
        if pattern.search(line)
    ]
    assert found == []


def test_every_module_and_public_function_has_a_docstring(source_tree):
    bare = []
    for module in source_tree.modules.values():
        if module.lines and ast.get_docstring(module.tree) is None:
            bare.append(f"{module.label}: the module")
        for node in module.tree.body:
            named = isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
            if not named or node.name.startswith("_") or _is_overload(node):
                continue
            if ast.get_docstring(node) is None:
                bare.append(f"{module.label}:{node.lineno}: {node.name}")
    assert not bare, "\n".join(bare)


def _is_overload(node):
    return any("overload" in ast.unparse(decorator) for decorator in node.decorator_list)


def test_public_modules_say_what_they_export(source_tree):
    """Public modules re-export with a literal `__all__`, unless a stub beside them says it."""
    for module in source_tree.modules.values():
        parts = module.name.split(".")
        below = len(parts) == 3 and parts[1] == "lax"
        if parts[0] != "dovetail" or not (len(parts) == 2 or below):
            continue
        if parts[1] == "_core" or parts[-1].startswith("_"):
            continue
        if module.path.with_suffix(".pyi").exists():
            continue
        if not module.lines or module.path.parent.name == "testing":
            continue
        exported = [
            node.value
            for node in module.tree.body
            if isinstance(node, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
        ]
        assert exported, f"{module.label} has no __all__"
        names = ast.literal_eval(exported[0])
        assert len(names) == len(set(names)), f"{module.label}: a name is in __all__ twice"


def test_the_example_of_a_primitive_is_real(root):
    """CONTRIBUTING shows a whole primitive in at most 10 lines, as it stands in the code."""
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(class \w+\(.*?)```", text, re.DOTALL)
    (file,) = re.findall(r"\(from `(ops/[\w/]+\.py)`\)", text)
    source = (root / "packages/core/src/dovetail/_core" / file).read_text(encoding="utf-8")
    name = re.match(r"class (\w+)", example)[1]
    (node,) = [n for n in ast.parse(source).body if getattr(n, "name", None) == name]
    (instance,) = re.findall(rf"^\w+_p: Final = {name}\(\)$", source, re.MULTILINE)
    assert example == f"{ast.get_source_segment(source, node)}\n\n\n{instance}\n"
    assert len([line for line in example.splitlines() if line]) <= 10
