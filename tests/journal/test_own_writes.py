"""Read your writes: a caller's next read of the journal contains every event acknowledged to it."""

from collections.abc import Iterator
from contextlib import closing

import anyio
import pytest

from actors import Runtime
from actors.core.stream_events.ask_events import CompleteEvent
from actors.errors import JournalUnavailable
from actors.journal.storage import Entry, Storage
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.postgres.connection import Connection
from actors.testing import OpenAIServer, Say, Turn
from tests.journal.postgres import Server
from tests.journal.postgres_replicas import copy_server, replicate
from tests.journal.storages import STORAGES, begin, open_storage, to
from tests.runtime_support import runtime_with

ASKS, SESSIONS = 4, 3


@pytest.fixture(params=STORAGES)
def storage(request: pytest.FixtureRequest) -> Iterator[Storage]:
    with closing(open_storage(request.param, request)) as storage:
        yield storage


async def assert_answers_are_listed(runtime: Runtime, name: str) -> None:
    """Ask a session, and compare each answer with the journal directly afterwards."""
    session = await runtime.open("a", id=name, tenant=name)
    for number in range(1, ASKS + 1):
        await session.ask("Well?")
        found = await runtime.journal.get(name)
        (listed,) = await runtime.journal.list(tenant=name)
        events = [event async for event in session.events(follow=False)]
        assert found == listed
        assert found.state == "idle"
        assert found.events == getattr(events[-1], "seq", None)
        assert sum(isinstance(event, CompleteEvent) for event in events) == number


@pytest.mark.alternating
@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-6")
async def test_acknowledged_events_are_readable_and_listed_at_once(storage: Storage) -> None:
    server = OpenAIServer(lambda _: Turn(Say("Well.")))
    async with runtime_with(a=server, storage=storage) as runtime, anyio.create_task_group() as tasks:
        for number in range(SESSIONS):
            tasks.start_soon(assert_answers_are_listed, runtime, f"s{number}")


def backend_pid(connection: Connection) -> int:
    return connection.info.backend_pid


def test_a_reader_follows_its_writer_to_a_new_connection(postgres: Server) -> None:
    """The writer may have moved to a server that took over from the one that the reader still uses."""
    with closing(PostgresStorage(postgres.url(postgres.schema()))) as storage:
        storage.open()
        fence = begin(storage, "one").fence
        before = storage._writer.run(backend_pid), storage._reader.run(backend_pid)
        with postgres.connect() as connection:
            connection.execute("SELECT pg_terminate_backend(%s, 10000)", (before[0],))
        storage.append([Entry("one", fence, (to("b"),))])
        assert len(storage.read("one")) == 2
        after = storage._writer.run(backend_pid), storage._reader.run(backend_pid)
    assert not set(before) & set(after)


def test_a_standby_server_is_never_read(postgres: Server) -> None:
    with closing(PostgresStorage(postgres.url(postgres.schema()), patience=0.1)) as storage:
        storage.open()
        begin(storage, "one")
        with copy_server(postgres, follows=True) as standby:
            standby.start()
            replicate(postgres, standby, synchronous=False)
            storage._reader._parameters = {**storage._reader._parameters, "host": str(standby.folder)}
            storage._reader.renew()
            with pytest.raises(JournalUnavailable, match="this server is a standby, which may lag"):
                storage.find("one")
            storage._reader._parameters = {**storage._reader._parameters, "host": str(postgres.folder)}
            assert storage.find("one") is not None
