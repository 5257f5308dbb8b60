"""Make each mistake of `tests.teeth.mutations` in a copy of the tree and see that its tests turn red.

    python -m tests.teeth                 all of them
    python -m tests.teeth --only ledger   those whose description holds the word
    python -m tests.teeth --workers 4     so many at once, each in a copy of its own; two if not said
    python -m tests.teeth --list          what there is

First the named tests must pass on the unchanged copy (`--unproven` skips that). Then one line for each
mistake: `caught`, or `MISSED` with what the tests did instead. Ends with status 0 only if all were caught. The
tree itself is never changed. `tests.teeth.rewrite` describes how a mistake names its place and its change.
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
"""How long the tests of one mistake may take, on a machine that has other work too."""

_FAILED, _PASSED = 1, 0
_OUTCOMES = {_PASSED: "passed", 2: "were interrupted", 3: "broke down", 4: "were not found", 5: "were none"}


def main() -> int:
    """Run the mutations asked for and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.teeth", description="Do the tests notice mistakes?"
    )
    parser.add_argument("--only", default="", help="a word in the description of the mistakes to make")
    parser.add_argument("--list", action="store_true", help="name the mistakes and stop")
    parser.add_argument(
        "--unproven", action="store_true", help="do not run the tests on the unchanged tree first"
    )
    parser.add_argument("--workers", type=int, default=2, help="how many mistakes are tried at once")
    options = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if options.only in mutation.what]
    if options.list:
        say(*(f"{mutation.what}  ({mutation.place})" for mutation in chosen))
        return 0
    with tempfile.TemporaryDirectory() as place:
        copies = [copied(Path(place) / str(number)) for number in range(options.workers)]
        if not options.unproven and not proven(copies[0], chosen, options.workers):
            return 1
        count = sum(all_caught(copies, chosen))
    say(f"{count} of {len(chosen)} mistakes caught")
    return 0 if count == len(chosen) > 0 else 1


def copied(place: Path) -> Path:
    """Return a copy of the tree, with what Python has compiled of it: that holds for a file until it is written."""
    unwanted = shutil.ignore_patterns(".*", "*.egg-info", "build", "dist", "node_modules")
    return Path(shutil.copytree(ROOT, place, ignore=unwanted))


def all_caught(copies: Sequence[Path], chosen: Sequence[Mutation]) -> list[bool]:
    """Make as many mistakes at once as there are copies; return for each whether it was caught."""
    free: SimpleQueue[Path] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def tried(mutation: Mutation) -> bool:
        copy = free.get()
        try:
            return caught(copy, mutation)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        return list(pool.map(tried, chosen))


def proven(copy: Path, chosen: Sequence[Mutation], workers: int) -> bool:
    """Whether all named tests pass as long as nothing is wrong."""
    named = list(dict.fromkeys(name for mutation in chosen for name in mutation.tests))
    status = tested(copy, ["-n", str(workers), *named], SECONDS * 2)
    if status != _PASSED:
        say("The tests do not pass on the unchanged tree; mend that first.")
    return status == _PASSED


def caught(copy: Path, mutation: Mutation) -> bool:
    """Make one mistake, run its tests, take it back. Prints the line for it."""
    path = copy / mutation.edit.file
    text = path.read_text(encoding="utf-8")
    began = time.perf_counter()
    try:
        mistaken = mutation.edit.apply(text)
    except EditError as error:
        outcome = str(error)
    else:
        path.write_text(mistaken, encoding="utf-8")
        status = tested(copy, mutation.tests, SECONDS)
        path.write_text(text, encoding="utf-8")
        outcome = "" if status == _FAILED else f"the tests {_OUTCOMES.get(status, 'took too long')}"
    seconds = time.perf_counter() - began
    say(
        f"{'caught' if not outcome else 'MISSED'}  {seconds:5.1f} s  {mutation.what}{outcome and ': ' + outcome}"
    )
    return not outcome


def tested(copy: Path, names: Sequence[str], seconds: float) -> int:
    """Run these tests in the copy, up to the first failure. Returns pytest's status, or -1 if time was up."""
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
