"""Parse a tool's docstring, in Google or reST style, into descriptions of the tool and its parameters."""

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Returns|Return|Raises|Yields):\s*$|:(param|returns?|raises)\b"
)
_PARAMETER_SECTION = re.compile(r"(Args|Arguments|Parameters):\s*$")
_GOOGLE = re.compile(r"(\s+)\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_REST = re.compile(r":param\s+(?:[^:]*\s)?(\w+):\s*(.*)$")


def parse_docstring(
    function: Callable[..., Any],
) -> tuple[str, dict[str, str]]:  # Any: tool signatures differ
    """Return the description in a function's docstring, and the descriptions of its parameters by name.

    The description ends at the first section, such as `Args:`.
    """
    lines = (inspect.getdoc(function) or "").splitlines()
    start = next((number for number, line in enumerate(lines) if _SECTION.match(line)), len(lines))
    return "\n".join(lines[:start]).strip(), _parameter_notes(lines[start:])


def _parameter_notes(lines: Iterable[str]) -> dict[str, str]:
    """Return the parameter descriptions in the lines of a docstring, by parameter name."""
    notes: dict[str, str] = {}
    current, indent, is_open = "", 0, False
    for line in lines:
        if found := _REST.match(line):
            current, indent, is_open = found[1], 0, False
            notes[current] = found[2]
        elif line and not line[0].isspace():
            current, is_open = "", bool(_PARAMETER_SECTION.match(line))
            indent = 0
        elif is_open and (found := _GOOGLE.match(line)) and (not indent or len(found[1]) <= indent):
            current, indent = found[2], len(found[1])
            notes[current] = found[3]
        elif current and line.strip():
            notes[current] = f"{notes[current]} {line.strip()}".strip()
    return notes
