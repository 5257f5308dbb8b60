"""An environment for each library, beside this file: made once, with what is pinned and nothing of ours."""

import subprocess
import sys
from pathlib import Path

from benchmarks.figures import NotMeasured
from benchmarks.peers.pins import Pinned

FOLDER = Path(__file__).parent
SECONDS = 900.0
"""That an installation may take."""


def python_of(pinned: Pinned) -> Path:
    """Return the interpreter of a library's environment."""
    return _environment(pinned) / "bin" / "python"


def install(pinned: Pinned) -> None:
    """Install a library, unless it is there as it is pinned.

    Raises:
        NotMeasured: It cannot be installed here.
    """
    written = _environment(pinned) / "requirements.txt"
    wanted = "\n".join(pinned.requirements) + "\n"
    if written.exists() and written.read_text() == wanted:
        return
    pip = (python_of(pinned), "-m", "pip", "install", "-q", "--disable-pip-version-check")
    try:
        _ran(sys.executable, "-m", "venv", "--clear", _environment(pinned))
        _ran(*pip, *pinned.requirements)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout or "nothing").strip().splitlines()[-1]
        raise NotMeasured(f"could not be installed: {said[:200]}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotMeasured(f"could not be installed: {error}") from error
    written.write_text(wanted)


def size(pinned: Pinned) -> tuple[int, float]:
    """Return the distributions of an environment but for pip's own, and their megabytes without .pyc."""
    (packages,) = (_environment(pinned) / "lib").glob("python*/site-packages")
    found = [each for each in packages.glob("*.dist-info") if not _is_of_the_environment(each)]
    files = (
        file
        for top in packages.iterdir()
        if not _is_of_the_environment(top)
        for file in (top.rglob("*") if top.is_dir() else (top,))
    )
    return len(found), sum(
        file.stat().st_size for file in files if file.suffix != ".pyc" and file.is_file()
    ) / 1e6


def _is_of_the_environment(path: Path) -> bool:
    return path.name.partition("-")[0] in {"pip", "setuptools", "pkg_resources", "_distutils_hack"}


def _environment(pinned: Pinned) -> Path:
    return FOLDER / f".venv-{pinned.name}"


def _ran(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS)
