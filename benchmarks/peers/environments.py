"""Create a virtual environment per library in the folder of this module.

An environment contains the pinned requirements and nothing of this package. It is created once and reused.
"""

import subprocess
import sys
from pathlib import Path

from benchmarks.figures import NotMeasured
from benchmarks.peers.pins import PinnedLibrary

FOLDER = Path(__file__).parent
SECONDS = 900.0
"""Timeout of an installation, in seconds."""


def python_of(pinned: PinnedLibrary) -> Path:
    """Return the path of the Python interpreter in a library's environment."""
    return _environment(pinned) / "bin" / "python"


def install(pinned: PinnedLibrary) -> None:
    """Install a library, unless its environment has the pinned requirements already.

    Raises:
        NotMeasured: The installation failed.
    """
    written = _environment(pinned) / "requirements.txt"
    wanted = "\n".join(pinned.requirements) + "\n"
    if written.exists() and written.read_text() == wanted:
        return
    pip = (python_of(pinned), "-m", "pip", "install", "-q", "--disable-pip-version-check")
    try:
        _run_command(sys.executable, "-m", "venv", "--clear", _environment(pinned))
        _run_command(*pip, *pinned.requirements)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout or "nothing").strip().splitlines()[-1]
        raise NotMeasured(f"could not be installed: {said[:200]}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotMeasured(f"could not be installed: {error}") from error
    written.write_text(wanted)


def installation_size(pinned: PinnedLibrary) -> tuple[int, float]:
    """Return the number of installed distributions except pip and setuptools, and their megabytes except .pyc files."""
    (packages,) = (_environment(pinned) / "lib").glob("python*/site-packages")
    found = [each for each in packages.glob("*.dist-info") if not _is_venv_package(each)]
    files = (
        file
        for top in packages.iterdir()
        if not _is_venv_package(top)
        for file in (top.rglob("*") if top.is_dir() else (top,))
    )
    return len(found), sum(
        file.stat().st_size for file in files if file.suffix != ".pyc" and file.is_file()
    ) / 1e6


def _is_venv_package(path: Path) -> bool:
    return path.name.partition("-")[0] in {"pip", "setuptools", "pkg_resources", "_distutils_hack"}


def _environment(pinned: PinnedLibrary) -> Path:
    return FOLDER / f".venv-{pinned.name}"


def _run_command(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS)
