"""Add a member of each kind of `tests.plants.kinds` to a copy of the tree, and count the places that report it.

    python -m tests.plants                 all kinds
    python -m tests.plants --only family   kinds with this word
    python -m tests.plants --sound         skip the unchanged tree, after mypy and the tests have just passed

Runs mypy over the files of its places and tests/project/test_totality.py after each. Exits with 0 only if every place
reports its plants. The tree itself is never changed.
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.plants.kinds import PLANTS, Plant
from tests.saying import say
from tests.teeth.__main__ import ROOT, copy_tree

NAMED_TEST = "tests/project/test_totality.py"
_FAILED = re.compile(rf"^(?:FAILED|ERROR) {NAMED_TEST}::\w+\[(.+?)\]", re.MULTILINE)
_ERROR = re.compile(r"^([\w./]+):(\d+): error:", re.MULTILINE)


def main() -> int:
    """Plant the selected kinds and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.plants", description="Which places tell?")
    parser.add_argument("--only", default="", help="a word in the kind")
    parser.add_argument("--sound", action="store_true", help="assume that the unchanged tree passes")
    options = parser.parse_args()
    chosen = [plant for plant in PLANTS if options.only in plant.kind]
    places = silent = 0
    with tempfile.TemporaryDirectory() as place:
        copy = copy_tree(Path(place) / "tree")
        if (ROOT / ".mypy_cache").exists():
            shutil.copytree(ROOT / ".mypy_cache", copy / ".mypy_cache")
        if not options.sound and (told := mypy_places(copy, chosen) | failing_places(copy)):
            say("The unchanged tree does not pass; fix that first.", *sorted(told))
            return 1
        for plant in chosen:
            with plant_in(copy, plant):
                told = mypy_places(copy, [plant]) | failing_places(copy)
            quiet = [name for name in plant.places if name not in told]
            places, silent = places + len(plant.places), silent + len(quiet)
            say(f"{len(plant.places) - len(quiet):2} of {len(plant.places):2} places report: {plant.kind}")
            say(*(f"    silent: {name}" for name in quiet))
    say(f"{places - silent} of {places} places tell")
    return 0 if chosen and not silent else 1


@contextmanager
def plant_in(copy: Path, plant: Plant) -> Iterator[None]:
    """Add a new member in the copy, and remove it at the end."""
    before = {edit.file: (copy / edit.file).read_text(encoding="utf-8") for edit in plant.edits}
    for edit in plant.edits:
        text = (copy / edit.file).read_text(encoding="utf-8")
        (copy / edit.file).write_text(edit.apply(text), encoding="utf-8")
    try:
        yield
    finally:
        for file, text in before.items():
            (copy / file).write_text(text, encoding="utf-8")


def mypy_places(copy: Path, plants: Sequence[Plant]) -> set[str]:
    """Return the places with mypy errors, in the files that contain a place of these plants."""
    files = {name.partition(":")[0] for plant in plants for name in plant.places}
    code = sorted(file for file in files if file.endswith(".py"))
    told = _run(copy, "-m", "mypy", "--no-error-summary", "--hide-error-context", "--no-pretty", *code)
    return {f"{file}:{_scope(copy / file, int(line))}" for file, line in _ERROR.findall(told)}


def failing_places(copy: Path) -> set[str]:
    """Return the places with a failing test."""
    told = _run(copy, "-m", "pytest", "-q", "-n0", "-rfE", "--tb=no", "-p", "no:cacheprovider", NAMED_TEST)
    found = set(_FAILED.findall(told))
    return found if found or " passed" in told else {f"{NAMED_TEST}:cannot be run: {told[-300:]}"}


def _run(copy: Path, *command: str) -> str:
    settings = {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    tables = {"HYPOTHESIS_STORAGE_DIRECTORY": str(ROOT / ".hypothesis")}  # Unicode tables: seconds to compute
    environment = {**os.environ, **settings, **tables}
    done = subprocess.run(
        [sys.executable, *command], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def _scope(file: Path, line: int) -> str:
    """Return the innermost function, class or top-level name that contains a line."""
    found, body = "", ast.parse(file.read_text(encoding="utf-8")).body
    while inside := _statement_at(body, line):
        found = _name_of(inside) or found
        body = (
            inside.body if isinstance(inside, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else []
        )
    return found


def _statement_at(body: Sequence[ast.stmt], line: int) -> ast.stmt | None:
    return next((node for node in body if node.lineno <= line <= (node.end_lineno or node.lineno)), None)


def _name_of(node: ast.stmt) -> str:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case _:
            return ""


if __name__ == "__main__":
    sys.exit(main())
