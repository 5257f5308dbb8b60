"""Durable events survive `kill -9`, and calls that ran are not repeated."""

import signal
from pathlib import Path

import anyio
import pytest

from actors import Runtime, tool
from actors.core.log.call_events import Returned, Scheduled
from actors.core.session.state import SessionState
from actors.kernel import Command
from actors.testing import Call, OpenAIServer, Say, Turn, serve
from tests.cli.command import python
from tests.journal.file_storage import FileStorage
from tests.runtime.durability_child import SESSION


class UnknownCommand(Command, frozen=True):
    """A command that no actor handles."""


CROSSINGS = (2, 4, 6, 8, 10, 12, 14, 16, 18, 20)


def _run(folder: Path, backend: str, crossing: int) -> tuple[int, list[int]]:
    """Run a child until it ends or dies at a crossing; return its exit status and the durable events that it saw."""
    child = f"from tests.runtime.durability_child import live; live({str(folder)!r}, {backend!r}, {crossing})"
    done = python(child)
    assert done.code in (0, -signal.SIGKILL), done.err
    seen = (folder / f"{crossing}.seen").read_text().split()
    return done.code, [int(number) for number in seen]


@pytest.mark.requirement("PROMISE-6")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_durable_event_survives_kill_9_at_any_step_of_a_write(tmp_path: Path, backend: str) -> None:
    died = 0
    for crossing in CROSSINGS[backend == "trio" :: 2]:
        status, seen = _run(tmp_path, backend, crossing)
        died += status == -signal.SIGKILL
        events = FileStorage(tmp_path / f"{crossing}.log").read(SESSION)
        assert max(seen, default=0) <= len(events)
        state = SessionState()
        for event in events:
            state = state.apply(event)  # the log is intact: every event can be applied
    assert died >= 4


@pytest.mark.requirement("PROMISE-6")
def test_the_log_of_a_process_that_is_not_killed_is_complete(tmp_path: Path) -> None:
    status, seen = _run(tmp_path, "asyncio", 0)
    events = FileStorage(tmp_path / "0.log").read(SESSION)
    assert status == 0
    assert seen[-1] == len(events)
    assert len([event for event in events if isinstance(event, Returned)]) == 2


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-7")
async def test_tool_calls_are_not_repeated_after_a_crash() -> None:
    runs: list[str] = []
    running = anyio.Event()

    @tool
    async def quick(name: str) -> str:
        """Return at once."""
        runs.append(name)
        return name

    @tool
    async def slow(name: str) -> str:
        """Never return."""
        runs.append(name)
        running.set()
        await anyio.sleep_forever()
        return name

    server = OpenAIServer(
        [
            Turn(Call("quick", {"name": "one"})),
            Turn(Call("slow", {"name": "two"})),
            Turn(Say("I do not know whether the second took effect.")),
        ]
    )
    with anyio.fail_after(60):
        async with serve(server), Runtime(environ={"OPENAI_BASE_URL": server.base_url}) as runtime:
            session = await runtime.open("openai:gpt-5.2", tools=[quick, slow], id="crashing")
            async with session.stream("Do both.") as events:
                await running.wait()
                await session._session.send(UnknownCommand())  # type: ignore[arg-type]  # crashes the actor
                async for _ in events:
                    pass
            answer = await session.ask("What happened?")
            ledger = await session.ledger()
    assert answer.status == "complete"
    assert runs == ["one", "two"]
    first, second = ledger.interactions()
    assert (first.status, first.reason) == ("complete", None)
    assert (second.status, second.reason) == ("unknown", "outcome_unknown")
    log = runtime._storage.read("crashing")
    assert len([event for event in log if isinstance(event, Scheduled)]) == 2
    assert server.refusals == []
