"""Make the text that a package index shows of the README, whose relative links lead nowhere there."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"\[([^\]]+)\]\((?!\w+:)([^)#\s]+)(?:#[^)\s]+)?\)")
"""A link to a file of this project: its text and the file."""


def long_description(readme: str) -> str:
    """Return the README with the name of the file behind the text of each relative link, in place of the link.

    The files are in the source distribution.
    """
    return _LINK.sub(lambda link: link[2] if link[1] == link[2] else f"{link[1]} (`{link[2]}`)", readme)


class LongDescription(MetadataHookInterface):
    """Sets `readme`, which `pyproject.toml` declares as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:  # Any: as hatchling has it
        """Add the text to the metadata."""
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": long_description(readme)}
