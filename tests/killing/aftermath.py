"""What another process makes of what a killed one left: it goes on, and what was promised is judged.

Nothing that a client saw is lost. No call whose end was recorded runs again, and one that may run once does not. Every
call is closed, the ones that nobody knows the outcome of as that, and the model is told of them.
"""

import json
from collections import Counter
from contextlib import closing
from pathlib import Path

from actors import Runtime
from actors.core.events import Event, Failed, Returned, Started
from actors.storage.sqlite import SqliteStorage
from actors.testing import OpenAIServer, Say, Turn, serve
from tests.killing.scenarios import SESSION, brought, tools
from tests.runtime_support import assert_paired, synthetic


async def judged(folder: Path) -> Counter[str]:
    """Go on with what is in a folder, and return what was found, to be counted."""
    before = _left(folder)
    seen = [int(line) for line in _lines(folder / "seen")]
    assert max(seen, default=0) <= len(before)
    if not before:
        return Counter(["nothing was there yet"])
    ran = Counter(line.split()[0] for line in _lines(folder / "ran"))
    server = OpenAIServer([Turn(Say("I see."))] * 4)
    async with serve(server):
        environ = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.base_url}
        async with Runtime(environ=environ, journal=folder / "sessions.db") as runtime:
            session = await runtime.resume(SESSION, tools=tools(folder))
            await brought(session)
            assert (await session.ask("Where were we?")).status == "complete"
            ledger = await session.ledger()
    assert server.refusals == []
    known = {item.call_id: item for item in ledger.interactions()}
    assert all(item.status != "pending" for item in known.values())
    assert list(_left(folder)[: len(before)]) == before
    body = json.loads(server.requests[-1].body)
    assert_paired(body)
    unknown = [item.call_id for item in known.values() if item.reason in ("outcome_unknown", "never_started")]
    assert len(synthetic(body)) == len(unknown)
    _assert_run_once(folder, before, ran)
    return Counter(str(item.reason or "done") for item in known.values())


def _assert_run_once(folder: Path, before: list[Event], ran: Counter[str]) -> None:
    """No call with a recorded end ran again, nor one that may run once; each has one idempotency key."""
    after = Counter(line.split()[0] for line in _lines(folder / "ran"))
    keys = {tuple(line.split()) for line in _lines(folder / "ran")}
    assert len(keys) == len(after)
    ended = {event.call_id for event in before if isinstance(event, Returned | Failed)}
    once = {event.call_id for event in before if isinstance(event, Started) and event.effects == "once"}
    for call_id in ended | once:
        assert after[call_id] == ran[call_id] <= 1, call_id


def _left(folder: Path) -> list[Event]:
    with closing(SqliteStorage(folder / "sessions.db")) as storage:
        return storage.read(SESSION)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
