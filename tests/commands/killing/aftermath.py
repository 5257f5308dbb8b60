"""Continue after a kill in another process, and check the promises.

Every event that a client saw is in the log. A call with a recorded end never runs again, nor does an interrupted call
that may run only once; an interrupted repeatable call runs again, with the same idempotency key. Every call is closed,
with `outcome_unknown` where needed, and the model sees this. Lanes are rebuilt byte for byte, and `actors sessions
fsck` finds no damage.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from actors import Runtime
from actors.core.ledger import Ledger
from actors.core.log.call_events import Cancelled, Denied, Failed, Refused, Returned, Started
from actors.core.log.events import Compacted, LogEvent
from actors.core.values.identity import CallId
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite.check import JournalFile
from actors.testing import OpenAIServer, serve
from tests.commands.killing.host import JOURNAL, line
from tests.commands.killing.scenarios import COMPACTION, answer, resolve_waiting, tools
from tests.runtime_support import assert_paired, assert_rebuilds, synthetic

EMPTY = "no log existed yet"
AGAIN = "ran again"
ENDS = Returned | Failed | Denied | Refused | Cancelled


async def continue_and_judge(folder: Path) -> Counter[str]:
    """Continue the sessions in a folder, and return the counts of findings."""
    seen, ran = _seen_lines(folder), _run_counts(folder)
    before = _logs(folder)
    assert seen.keys() <= before.keys()
    server, found = OpenAIServer(answer), Counter[str]()
    async with serve(server):
        environ = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.base_url}
        journal = SqliteStorage(folder / JOURNAL, durability="process")
        async with Runtime(environ=environ, journal=journal, compaction=COMPACTION) as runtime:
            for name, log in before.items():
                found += await _continue(runtime, server, folder, name, log, seen[name])
    assert server.refusals == []
    after = _logs(folder)
    assert all(list(after[name][: len(log)]) == log for name, log in before.items())
    return found + _assert_run_counts(before, ran, _run_counts(folder)) or Counter([EMPTY])


async def _continue(
    runtime: Runtime,
    server: OpenAIServer,
    folder: Path,
    name: str,
    log: Sequence[LogEvent],
    seen: Sequence[bytes],
) -> Counter[str]:
    """Continue one session."""
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
    """Check that each interrupted call has an unknown outcome, unless it may run again."""
    for call_id, effects in _interrupted_calls(log).items():
        known = ledger.get(call_id)
        assert known is not None
        if known.tool == "look":  # its result is supplied if its call was shown to the client
            continue
        assert known.reason == ("outcome_unknown" if effects == "once" else None), known


def _interrupted_calls(log: Sequence[LogEvent]) -> dict[CallId, str]:
    """Return the calls without a recorded end, with the effects of their tools."""
    ended = {event.call_id for event in log if isinstance(event, ENDS)}
    return {
        event.call_id: event.effects
        for event in log
        if isinstance(event, Started) and event.call_id not in ended
    }


def _assert_run_counts(
    logs: Mapping[str, Sequence[LogEvent]], before: Counter[str], after: Counter[str]
) -> Counter[str]:
    """Check that no completed call and no run-once call ran again; return the number of other repeated calls."""
    assert len({call.rsplit(" ", 1)[0] for call in after}) == len(after)  # one idempotency key each
    runs, ran = _by_call(after), _by_call(before)
    again = 0
    for name, log in logs.items():
        cut_off = _interrupted_calls(log)
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
    """Return the number of runs of each call, by session and call."""
    return Counter({call.rsplit(" ", 1)[0]: times for call, times in ran.items()})


def _logs(folder: Path) -> dict[str, list[LogEvent]]:
    path = folder / JOURNAL
    with closing(SqliteStorage(path, durability="process")) as storage:
        logs = {stored.id: storage.read(stored.id) for stored in storage.sessions()}
        with closing(JournalFile(path)) as file:
            assert list(file.damage()) == []
        return logs


def _seen_lines(folder: Path) -> Mapping[str, list[bytes]]:
    """Return the complete lines that the client saw, by session."""
    seen = defaultdict[str, list[bytes]](list)
    for each in (folder / "seen").read_bytes().splitlines(keepends=True):
        if each.endswith(b"\n"):
            name, told = each.split(b" ", 1)
            seen[name.decode()].append(told)
    return seen


def _run_counts(folder: Path) -> Counter[str]:
    path = folder / "ran"
    return Counter(path.read_text().splitlines() if path.exists() else ())
