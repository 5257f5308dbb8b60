"""Published reports of faulty hosts, as JSON in `tests/cases`."""

import json
from pathlib import Path
from typing import Any

CASES = Path(__file__).parents[1] / "cases"


def case(name: str) -> dict[str, Any]:  # Any: each case has its own shape
    """Return a case by the name of its file."""
    read: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text())
    assert read["kind"] == "hosting"
    return read
