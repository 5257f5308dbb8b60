"""A quick run (`-m "not long"`) imports no vendor SDK: one SDK takes longer to import than most files take to run."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import LONG

ROOT = Path(__file__).parents[2]
SDKS = {"anthropic", "google", "mistralai", "openai"}


def test_no_test_file_of_a_quick_run_imports_an_sdk() -> None:
    tests = ROOT / "tests"
    quick = [path for path in tests.rglob("test_*.py") if path.relative_to(tests).as_posix() not in LONG]
    assert len(quick) > 300
    known = dict[Path, set[str]]()
    assert {str(path): sdks for path in quick if (sdks := SDKS & _packages(path, known))} == {}


def _packages(path: Path, known: dict[Path, set[str]]) -> set[str]:
    """Return the packages that an import of a file imports, directly or through other test files."""
    packages, seen, waiting = set[str](), {path}, [path]
    while waiting:
        file = waiting.pop()
        if file not in known:
            known[file] = set(_names(ast.parse(file.read_text(encoding="utf-8"))))
        for name in known[file]:
            packages.add(name.partition(".")[0])
            files = set(_test_files(name)) - seen
            seen |= files
            waiting += files
    return packages


def _test_files(name: str) -> Iterator[Path]:
    """Yield the test files that an import of `name` runs."""
    package, *parts = name.split(".")
    for end in range(len(parts) + 1) if package == "tests" else ():
        place = ROOT.joinpath(package, *parts[:end])
        yield from (file for file in (place.with_suffix(".py"), place / "__init__.py") if file.exists())


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the modules, and names of modules, that are imported outside functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (each.name for each in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module is not None:
            yield from (f"{child.module}.{each.name}" for each in child.names)
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _names(child)
