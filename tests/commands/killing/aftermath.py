"""What another process makes of what a killed one left: it goes on, and what was promised is judged.

Nothing that a client saw is lost. No call whose end was recorded runs again, and one that may run once does not; one
that may run again does, under the same idempotency key. Every call is closed, the ones that nobody knows the outcome of
as that, and the model is told of them. Lanes are rebuilt byte for byte, and `actors sessions fsck` finds nothing.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from actors import Runtime
from actors.core.ledger import Ledger
from actors.core.log.events import Cancelled, Compacted, Denied, Failed, LogEvent, Refused, Returned, Started
from actors.core.values.identity import CallId
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite.check import JournalFile
from actors.testing import OpenAIServer, serve
from tests.commands.killing.host import JOURNAL, line
from tests.commands.killing.scenarios import COMPACTION, resolve_waiting, spoken, tools
from tests.runtime_support import assert_paired, assert_rebuilds, synthetic

EMPTY = "nothing was there yet"
AGAIN = "ran again"
ENDS = Returned | Failed | Denied | Refused | Cancelled


async def judged(folder: Path) -> Counter[str]:
    """Go on with what is in a folder, and return what was found, to be counted."""
    seen, ran = _seen(folder), _ran(folder)
    before = _logs(folder)
    assert seen.keys() <= before.keys()
    server, found = OpenAIServer(spoken), Counter[str]()
    async with serve(server):
        environ = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.base_url}
        journal = SqliteStorage(folder / JOURNAL, durability="process")
        async with Runtime(environ=environ, journal=journal, compaction=COMPACTION) as runtime:
            for name, log in before.items():
                found += await _went_on(runtime, server, folder, name, log, seen[name])
    assert server.refusals == []
    after = _logs(folder)
    assert all(list(after[name][: len(log)]) == log for name, log in before.items())
    return found + _run_as_often_as_they_may(before, ran, _ran(folder)) or Counter([EMPTY])


async def _went_on(
    runtime: Runtime,
    server: OpenAIServer,
    folder: Path,
    name: str,
    log: Sequence[LogEvent],
    seen: Sequence[bytes],
) -> Counter[str]:
    """Go on with one session."""
    session = await runtime.resume(name, tools=tools(folder))
    await resolve_waiting(session)
    assert (await session.ask("Where were we?")).status == "complete"
    assert {*seen} <= {line(event) async for event in session.events(follow=False)}
    ledger = await session.ledger()
    body = json.loads(server.requests[-1].body)
    assert_paired(body)
    known = ledger.interactions()
    assert all(item.status != "pending" for item in known)
    if not any(isinstance(event, Compacted) for event in runtime._storage.read(name)):
        assert len(synthetic(body)) == sum(item.reason is not None for item in known)
    _assert_outcomes(log, ledger)
    await assert_rebuilds(runtime, session)
    return Counter(str(item.reason or "done") for item in known)


def _assert_outcomes(log: Sequence[LogEvent], ledger: Ledger) -> None:
    """What had begun and had no end is outcome unknown, unless it might run again."""
    for call_id, effects in _cut_off(log).items():
        known = ledger.get(call_id)
        assert known is not None
        if known.tool == "look":  # its result is passed, if somebody had been told to
            continue
        assert known.reason == ("outcome_unknown" if effects == "once" else None), known


def _cut_off(log: Sequence[LogEvent]) -> dict[CallId, str]:
    """Return the calls that had begun and had no end, with what their tools do to the world."""
    ended = {event.call_id for event in log if isinstance(event, ENDS)}
    return {
        event.call_id: event.effects
        for event in log
        if isinstance(event, Started) and event.call_id not in ended
    }


def _run_as_often_as_they_may(
    logs: Mapping[str, Sequence[LogEvent]], before: Counter[str], after: Counter[str]
) -> Counter[str]:
    """No call with a recorded end ran again, nor one that may run once; return how many others did."""
    assert len({call.rsplit(" ", 1)[0] for call in after}) == len(after)  # one idempotency key each
    runs, ran = _by_call(after), _by_call(before)
    again = 0
    for name, log in logs.items():
        cut_off = _cut_off(log)
        for event in log:
            if not isinstance(event, Started):
                continue
            call = f"{name} {event.call_id}"
            if cut_off.get(event.call_id, "once") == "once":
                assert runs[call] == ran[call] <= 1, call
            elif runs[call]:
                assert runs[call] == ran[call] + 1 <= 2, call
                again += 1
    return Counter({AGAIN: again} if again else ())


def _by_call(ran: Counter[str]) -> Counter[str]:
    """Return how often each call ran, by session and call."""
    return Counter({call.rsplit(" ", 1)[0]: times for call, times in ran.items()})


def _logs(folder: Path) -> dict[str, list[LogEvent]]:
    path = folder / JOURNAL
    with closing(SqliteStorage(path, durability="process")) as storage:
        logs = {stored.id: storage.read(stored.id) for stored in storage.sessions()}
        with closing(JournalFile(path)) as file:
            assert list(file.damage()) == []
        return logs


def _seen(folder: Path) -> Mapping[str, list[bytes]]:
    """Return the lines that the client saw, by session; without one that broke off."""
    seen = defaultdict[str, list[bytes]](list)
    for each in (folder / "seen").read_bytes().splitlines(keepends=True):
        if each.endswith(b"\n"):
            name, told = each.split(b" ", 1)
            seen[name.decode()].append(told)
    return seen


def _ran(folder: Path) -> Counter[str]:
    path = folder / "ran"
    return Counter(path.read_text().splitlines() if path.exists() else ())
