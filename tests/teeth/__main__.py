"""Apply each mutation of `tests.teeth.mutations` to a copy of the tree and check that its tests fail.

    python -m tests.teeth                 all mutations
    python -m tests.teeth --only ledger   mutations with this word in their description
    python -m tests.teeth --workers 4     run this many at once, each in a separate copy; default two
    python -m tests.teeth --list          list the mutations

First the named tests must pass on the unchanged copy (`--unproven` skips this). Then it prints one line per mutation:
`caught`, or `MISSED` with the result of the tests. The exit status is 0 only if all were caught. The tree itself is
never changed. `tests.teeth.rewrite` describes the place and the change of a mutation.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.saying import say
from tests.teeth.mutations import MUTATIONS, Mutation
from tests.teeth.rewrite import EditError

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 900
"""The longest time, in seconds, for the tests of one mutation on a busy machine."""

_FAILED, _PASSED = 1, 0
_OUTCOMES = {_PASSED: "passed", 2: "were interrupted", 3: "broke down", 4: "were not found", 5: "were none"}


def main() -> int:
    """Run the selected mutations and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.teeth", description="Do the tests detect mutations?"
    )
    parser.add_argument("--only", default="", help="a word in the descriptions of mutations")
    parser.add_argument("--list", action="store_true", help="list the mutations and stop")
    parser.add_argument(
        "--unproven", action="store_true", help="do not run the tests on the unchanged tree first"
    )
    parser.add_argument("--workers", type=int, default=2, help="mutations to run at once")
    options = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if options.only in mutation.what]
    if options.list:
        say(*(f"{mutation.what}  ({mutation.place})" for mutation in chosen))
        return 0
    with tempfile.TemporaryDirectory() as place:
        copies = [copy_tree(Path(place) / str(number)) for number in range(options.workers)]
        if not options.unproven and not do_tests_pass(copies[0], chosen, options.workers):
            return 1
        count = sum(run_all(copies, chosen))
    say(f"{count} of {len(chosen)} mutations caught")
    return 0 if count == len(chosen) > 0 else 1


def copy_tree(place: Path) -> Path:
    """Return a copy of the tree with its compiled Python files, which stay valid for unchanged files."""
    unwanted = shutil.ignore_patterns(".*", "*.egg-info", "build", "dist", "node_modules")
    return Path(shutil.copytree(ROOT, place, ignore=unwanted))


def run_all(copies: Sequence[Path], chosen: Sequence[Mutation]) -> list[bool]:
    """Run as many mutations at once as there are copies; return True for each that was caught."""
    free: SimpleQueue[Path] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def run(mutation: Mutation) -> bool:
        copy = free.get()
        try:
            return run_mutation(copy, mutation)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        return list(pool.map(run, chosen))


def do_tests_pass(copy: Path, chosen: Sequence[Mutation], workers: int) -> bool:
    """Return True if all named tests pass on the unchanged copy."""
    named = list(dict.fromkeys(name for mutation in chosen for name in mutation.tests))
    status = run_tests(copy, ["-n", str(workers), *named], SECONDS * 2)
    if status != _PASSED:
        say("The tests do not pass on the unchanged tree; fix that first.")
    return status == _PASSED


def run_mutation(copy: Path, mutation: Mutation) -> bool:
    """Apply one mutation, run its tests, revert it, and print its line. Return True if it was caught."""
    path = copy / mutation.edit.file
    text = path.read_text(encoding="utf-8")
    began = time.perf_counter()
    try:
        mutated = mutation.edit.apply(text)
    except EditError as error:
        outcome = str(error)
    else:
        path.write_text(mutated, encoding="utf-8")
        status = run_tests(copy, mutation.tests, SECONDS)
        path.write_text(text, encoding="utf-8")
        outcome = "" if status == _FAILED else f"the tests {_OUTCOMES.get(status, 'took too long')}"
    seconds = time.perf_counter() - began
    say(
        f"{'caught' if not outcome else 'MISSED'}  {seconds:5.1f} s  {mutation.what}{outcome and ': ' + outcome}"
    )
    return not outcome


def run_tests(copy: Path, names: Sequence[str], seconds: float) -> int:
    """Run these tests in the copy up to the first failure. Return pytest's status, or -1 after a timeout."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", *names]
    try:
        return subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, timeout=seconds, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        return -1


if __name__ == "__main__":
    sys.exit(main())
