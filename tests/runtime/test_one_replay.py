"""Opening or resuming a session reads and folds its log once, and resolves its tools once."""

from dataclasses import dataclass
from typing import Any

import pytest

from actors.core.data.persistent import item_count, up_to
from actors.core.log.call_events import Started
from actors.core.session.lanes import LogReplay
from actors.errors import JournalBehind
from actors.journal.storage import PAGE, LogPage
from actors.journal.storage.memory import MemoryStorage
from actors.provider.resolver import Resolver
from actors.testing import Call, Say, Turn
from tests.runtime.test_rebuild import crash
from tests.runtime.test_resume import cut_off, has_events, running_server
from tests.runtime_support import Gate, openai, runtime_with

pytestmark = pytest.mark.anyio


class CountingStorage(MemoryStorage):
    """Logs in memory that are read in pages like files, with a count of full reads."""

    blocking = True

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def page(self, session: str, after: int = 0, limit: int = PAGE) -> LogPage:
        """Count the page if it is the first one."""
        self.reads += after == 0
        return super().page(session, after, limit)


@dataclass
class Counts:
    """The numbers of created log folds and resolvers."""

    folds: int = 0
    resolvers: int = 0


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    """Count both from now on."""
    counted = Counts()

    class CountedFolding(LogReplay):
        def __init__(self, *args: object) -> None:
            counted.folds += 1
            super().__init__(*args)  # type: ignore[arg-type]  # passes the arguments on

    made = Resolver.__init__

    def create(*args: Any) -> None:  # Any: arguments that are passed on
        counted.resolvers += 1
        made(*args)

    monkeypatch.setattr("actors.journal.log.LogReplay", CountedFolding)
    monkeypatch.setattr("actors.core.session.lanes.LogReplay", CountedFolding)
    monkeypatch.setattr(Resolver, "__init__", create)
    return counted


async def test_resuming_a_session_with_a_truncated_log_reads_and_folds_the_log_once(
    counts: Counts,
) -> None:
    storage, gate = CountingStorage(), Gate()
    async with running_server(openai(Turn(Call("work", {"name": "a"})), Turn(Say("Done.")))) as hosted:
        async with cut_off(hosted, [gate.tool], storage, has_events(Started)):
            pass
        async with hosted(storage) as runtime:
            storage.reads = counts.folds = counts.resolvers = 0
            session = await runtime.resume("trip", tools=[gate.tool])
            [known] = (await session.ledger()).interactions()
            assert known.reason == "outcome_unknown"
            assert (storage.reads, counts.folds, counts.resolvers) == (1, 1, 1)


async def test_the_first_ask_of_a_resumed_session_reads_no_log(counts: Counts) -> None:
    storage = CountingStorage()
    async with running_server(openai(Turn(Say("Here.")), Turn(Say("Still here.")))) as hosted:
        async with hosted(storage) as runtime:
            session = await runtime.open("a", id="trip")
            await session.ask("Hello?")
        async with hosted(storage) as runtime:
            storage.reads = counts.folds = counts.resolvers = 0
            session = await runtime.resume("trip")
            assert (await session.ask("And now?")).text == "Still here."
            assert (storage.reads, counts.folds, counts.resolvers) == (1, 1, 1)


async def test_the_first_ask_of_an_opened_session_reads_no_log(
    counts: Counts,
) -> None:
    storage = CountingStorage()
    async with running_server(openai(Turn(Say("Here.")))) as hosted, hosted(storage) as runtime:
        session = await runtime.open("a", id="trip")
        assert (await session.ask("Hello?")).text == "Here."
        assert (storage.reads, counts.folds, counts.resolvers) == (0, 1, 1)


async def test_the_target_is_read_again_from_a_log_that_lost_its_last_event() -> None:
    async with runtime_with(a=openai(), b=openai()) as runtime:
        session = await runtime.open("a")
        await session.history()  # activates the session
        await session.switch("b")
        assert session.target == "b"
        storage = runtime._storage
        assert isinstance(storage, MemoryStorage)
        written = storage._logs[session.id]
        storage._logs[session.id] = up_to(written, item_count(written) - 1)
        await crash(session, "session")
        with pytest.raises(JournalBehind):
            await session.history()
        await session.history()
        assert session.target == "a"
