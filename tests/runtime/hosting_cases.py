"""The cases of hosts that behaved badly, as public reports describe them: JSON in `tests/cases`."""

import json
from pathlib import Path
from typing import Any

CASES = Path(__file__).parents[1] / "cases"


def case(name: str) -> dict[str, Any]:  # Any: a case's own form
    """Return a case by the name of its file."""
    read: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text())
    assert read["kind"] == "hosting"
    return read
