"""D: what it takes to begin.

D1   CPU of `import actors`; floor: `import pydantic`, in fresh processes, interleaved; and of `actors --help`
D2   the base install: distributions, megabytes, and memory after import
"""

import os
import resource
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.table import Measure, Options, Row

ROOT = Path(__file__).parent.parent
_RSS = "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmRSS')))"
_LAZY = (
    "import sys; print(sorted(name for name in sys.modules if name.startswith(('h11', 'actors.adapters.'))))"
)
_NOT_THERE = "not there yet"


def child_cpu_ms(command: Sequence[str]) -> float | None:
    """Return the CPU milliseconds of a process of its own, or None if it failed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        return None
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def _output(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _d1(options: Options) -> list[Row]:
    programs = ("import pydantic", "import actors", "from actors import Runtime")
    passes = 3 if options.quick else 9
    samples = [[child_cpu_ms((sys.executable, "-c", program)) for program in programs] for _ in range(passes)]
    floor, plain, runtime = (median(filter(None, column)) for column in zip(*samples, strict=True))
    loaded = _output("import actors; " + _LAZY)
    note = "no provider module loaded" if loaded == "[]" else f"loads {loaded}"
    question = _QUESTIONS["D1"]
    return [
        Row("D1", question, programs[1], "ms", 2.0, plain, floor, f"floor: import pydantic; {note}"),
        Row("D1", question, programs[2], "ms", 2.0, runtime, floor, "all that a host loads before it opens"),
        _help(passes),
    ]


def _help(passes: int) -> Row:
    script = Path(sysconfig.get_path("scripts")) / "actors"
    took = [child_cpu_ms((str(script), "--help")) for _ in range(passes)] if script.exists() else [None]
    known = [value for value in took if value is not None]
    value = median(known) if len(known) == len(took) else None
    note = "" if value is not None else _NOT_THERE
    return Row("D1", _QUESTIONS["D1"], "actors --help", "ms", 300, value, None, note)


def _d2(options: Options) -> list[Row]:
    question = _QUESTIONS["D2"]
    rows = [_resident(program) for program in ("import actors", "from actors import Runtime")]
    if options.skip_install:
        return [Row("D2", question, "install", "", 14, note="not installed, as asked"), *rows]
    with TemporaryDirectory() as folder:
        count, megabytes = installed(Path(folder))
    return [
        Row("D2", question, "install", "distributions", 14, count, note="pip not counted"),
        Row("D2", question, "install", "MB", 26, megabytes, note="without .pyc"),
        *rows,
    ]


def _resident(program: str) -> Row:
    kilobytes = float(_output(f"{program}; {_RSS}"))
    return Row("D2", _QUESTIONS["D2"], program, "MB", 38, kilobytes / 1024, note="resident")


def installed(folder: Path) -> tuple[int, float]:
    """Install the package into a fresh environment; return its distributions and its size in MB."""
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", folder), check=True)
    python = folder / "bin" / "python"
    pip = (
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "-qq",
        "--no-compile",
        str(ROOT),
    )
    subprocess.run(pip, check=True, env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    packages = next((folder / "lib").glob("python*/site-packages"))
    files = [file for file in packages.rglob("*") if file.is_file() and file.suffix != ".pyc"]
    return len(list(packages.glob("*.dist-info"))), sum(file.stat().st_size for file in files) / 1e6


_QUESTIONS = {"D1": "CPU time to import", "D2": "size of the base install"}
MEASURES = (Measure("D1", _QUESTIONS["D1"], _d1), Measure("D2", _QUESTIONS["D2"], _d2))
