"""References are found under any name that a module gives to its imports."""

import ast
from pathlib import Path

import pytest

from tests.project.source import definition, references

RETURNED = "actors.core.log.call_events.Returned"


@pytest.mark.parametrize(
    "source",
    [
        "from actors.core.log.call_events import Returned\nReturned()",
        "from actors.core.log.call_events import Returned as End\nEnd()",
        "from actors.core.log import call_events\ncall_events.Returned()",
        "from actors.core.log import call_events as log\nlog.Returned()",
        "import actors.core.log.call_events\nactors.core.log.call_events.Returned()",
        "import actors.core.log.call_events as log\nlog.Returned()",
        "import actors\nactors.core.log.call_events.Returned()",
        "from actors.scheduler.scheduler_actor import Returned\nReturned()",
        "from actors.core.log.call_events import Returned\nend = Returned\nend()",
        "from actors.core.log import call_events\nend = call_events.Returned\nend()",
        "def end():\n    from actors.core.log.call_events import Returned as End\n    return End()",
    ],
)
def test_a_call_is_found_by_any_name_of_its_function(tmp_path: Path, source: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(source, encoding="utf-8")
    found = [ast.unparse(node) for node, name in references(path) if name == RETURNED]
    call = next(ast.unparse(node.func) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    assert call in found


def test_a_local_name_is_not_a_reference(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("class Returned: ...\nReturned()\nother.events.Returned()", encoding="utf-8")
    assert references(path) == ()


def test_a_reexported_name_resolves_to_its_definition() -> None:
    assert definition("actors.transcripts.Ledger") == "actors.core.ledger.Ledger"
