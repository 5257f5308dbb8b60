"""Measure import time and installation size (D1, D2).

D1   CPU time of `import actors`, of a host until its first answer, and of `actors --help` in new processes; baseline:
     `import pydantic`, interleaved. Modules are compiled beforehand, as pip does
D2   the installation without extras: distributions, megabytes, and memory after the import and after a first answer

The first runtime of a process, its first session and its first answer import further modules. So other libraries, which
import the modules that a turn needs, are compared with a host that has received its first answer.
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import Distribution, distribution
from pathlib import Path

from actors.testing import serve_in_thread, strict_server
from benchmarks.figures import Extent, Figure, Measure, require_module
from benchmarks.others import OtherLibraries
from benchmarks.timing import Passes

ROOT = Path(__file__).parents[1]
"""Root of the source tree. Child processes run in this directory, so that they measure the same code."""
_RSS = "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmRSS')))"
_LAZY = (
    "import json, sys;"
    "print(json.dumps([name for name in sys.modules if name.startswith(('h11', 'actors.adapters.'))]))"
)
_HELP = "from actors.cli import main; main(['--help'])"
_IMPORT = "from actors import Runtime"
_FIRST_ANSWER = """
import anyio
from actors import Price, Runtime

async def main():
    environ = {"ANTHROPIC_BASE_URL": "ADDRESS", "ANTHROPIC_API_KEY": "any"}
    prices = {"claude-*": Price(input=1.0, output=1.0, context=200_000)}  # no price list is imported
    async with Runtime(environ=environ, prices=prices) as runtime:
        await (await runtime.open("anthropic:claude-sonnet-5")).ask("Hello")

anyio.run(main)
"""
"""A host that asks once. `ADDRESS` stands for the base URL of a strict server."""


def child_cpu_ms(command: Sequence[str]) -> float:
    """Run a command in a new process and return its CPU milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    quiet = subprocess.DEVNULL
    subprocess.run(command, cwd=ROOT, env=_environ(), stdout=quiet, stderr=quiet, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def _program_output(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=_environ(), capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@contextmanager
def _first_answer() -> Generator[str]:
    """Run a strict server in a thread, and return the program of a host that asks it."""
    with serve_in_thread(strict_server("anthropic")) as (server,):
        yield _FIRST_ANSWER.replace("ADDRESS", server.base_url)


def _measure_d1(options: Extent) -> list[Figure]:
    passes = 3 if options.quick else 9
    modules = json.loads(_program_output(f"import actors; {_LAZY}"))
    others, samples = OtherLibraries(options.libraries), list[list[float]]()
    with _first_answer() as first_answer:
        programs = ("import pydantic", "import actors", _IMPORT, first_answer)
        for program in (first_answer, _HELP):
            _program_output(program)  # compile the imported modules before they are timed
        for _ in range(passes):
            samples.append([child_cpu_ms((sys.executable, "-c", program)) for program in programs])
            others.measure_each(lambda library: library.import_ms())
    taken = Passes.of(samples)
    row = Figure("D1", _QUESTIONS["D1"], programs[1], "ms", 2.0, note="baseline: import pydantic")
    answered = replace(
        row, case=_ANSWERED, limit=None, note="all modules that a turn needs", peers=others.peers()
    )
    loaded = Figure("D1", _LOADED, programs[1], "modules", 0, len(modules), note=", ".join(modules))
    return [
        taken.fill(row, 1, 0),
        loaded,
        taken.fill(replace(row, case=_IMPORT), 2, 0),
        taken.fill(answered, 3, 0),
        _help_row(passes),
    ]


def _help_row(passes: int) -> Figure:
    taken = Passes.of([child_cpu_ms((sys.executable, "-c", _HELP))] for _ in range(passes))
    return taken.fill(Figure("D1", _QUESTIONS["D1"], "actors --help", "ms", 200), 0, None)


def _measure_d2(options: Extent) -> list[Figure]:
    question = _QUESTIONS["D2"]
    found = installed_distributions("llm-actors")
    counts, sizes, resident = (OtherLibraries(options.libraries) for _ in range(3))
    counts.measure_each(lambda library: library.size()[0])
    sizes.measure_each(lambda library: library.size()[1])
    resident.measure_each(lambda library: library.import_mb())
    megabytes = sum(map(_distribution_bytes, found.values())) / 1e6
    with _first_answer() as first_answer:
        answered = _resident_row(first_answer, _ANSWERED)
    return [
        Figure(
            "D2",
            question,
            "install",
            "distributions",
            13,
            len(found),
            note="without extras",
            peers=counts.peers(),
        ),
        Figure("D2", question, "install", "MB", 16, megabytes, note="without .pyc", peers=sizes.peers()),
        _resident_row("import actors", "import actors"),
        _resident_row(_IMPORT, _IMPORT),
        replace(answered, limit=None, peers=resident.peers()),
    ]


def _resident_row(program: str, case: str) -> Figure:
    kilobytes = float(_program_output(f"{program}\n{_RSS}"))
    return Figure("D2", _QUESTIONS["D2"], case, "MB", 25, kilobytes / 1024, note="resident")


def installed_distributions(root: str) -> dict[str, Distribution]:
    """Return a distribution and its transitive requirements without extras, by name."""
    requirements = require_module("packaging.requirements")
    found: dict[str, Distribution] = {}
    wanted = [root]
    while wanted:
        if (name := wanted.pop()) in found:
            continue
        found[name] = distribution(name)
        for text in found[name].requires or ():
            required = requirements.Requirement(text)
            if required.marker is None or required.marker.evaluate({"extra": ""}):
                wanted.append(required.name.lower().replace("_", "-"))
    return found


def _distribution_bytes(installed_distributions: Distribution) -> int:
    """Return the size of a distribution's files in bytes; for an editable install, the size of the source tree."""
    files = [
        Path(str(installed_distributions.locate_file(file))) for file in installed_distributions.files or ()
    ]
    if not any(file.suffix == ".py" for file in files) and installed_distributions.name == "llm-actors":
        files = list((ROOT / "actors").rglob("*"))
    return sum(file.stat().st_size for file in files if file.suffix != ".pyc" and file.is_file())


_ANSWERED = "first answer"
_LOADED = "provider modules loaded before any is requested"
_QUESTIONS = {"D1": "CPU time to import", "D2": "size of the base install"}
MEASURES = (Measure("D1", _QUESTIONS["D1"], _measure_d1), Measure("D2", _QUESTIONS["D2"], _measure_d2))
