"""Play one case, and compare the answers that clients received with the logs and with the requests to the model."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
from httpx2 import AsyncClient, Limits
from msgspec import Struct

from actors import Runtime
from actors.core.log.events import RequestSent, TurnEnded
from actors.strict.rules.base import Json
from actors.testing import OpenAIServer, Turn, serve
from tests.commands.failover_matrix.site import Site, site
from tests.commands.hosts_matrix.cases import CASES, Hosts
from tests.commands.hosts_matrix.load import Load
from tests.commands.hosts_matrix.processes import LEASE, HostProcess, running
from tests.hosts.support import answer, asked, open_storage
from tests.journal.postgres import temporary_server


class Size(Struct, frozen=True):
    """The size of a case.

    Args:
        hosts: The number of hosts.
        sessions: The number of sessions that are asked at the same time.
        asks: The number of asks of the cases that send a number of asks.
    """

    hosts: int = 3
    sessions: int = 12
    asks: int = 1000


class Model:
    """A model server that counts the requests of each session."""

    def __init__(self) -> None:
        self.requests = Counter[str]()
        self.server = OpenAIServer(self._answer)

    def _answer(self, request: Json) -> Turn:
        turn = answer(request)
        assert isinstance(request, dict)
        messages = request["messages"]
        assert isinstance(messages, list)
        self.requests[str(messages[-1]["content"]).partition(" ")[0]] += 1
        return turn


class Journal(Struct, frozen=True):
    """A journal: a file or `postgresql://...`, and the servers of a journal with a standby."""

    url: str
    site: Site | None = None


async def run_case(name: str, journal: Journal, size: Size) -> str:
    """Play one case, and return a line with its figures.

    Raises:
        AssertionError: A request was not answered, or an ask has not exactly one turn in its log.
    """
    case, model = CASES[name], Model()
    limits = Limits(max_keepalive_connections=None)
    async with (
        serve(model.server),
        AsyncClient(timeout=60, limits=limits) as client,
        anyio.create_task_group() as tasks,
    ):
        base_url = model.server.base_url
        environ = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": base_url, "JOURNAL": journal.url}
        processes = [HostProcess(environ) for _ in range(size.hosts)]
        async with running(processes, tasks):
            sessions = [f"{name}-{number}" for number in range(size.sessions)]
            load = Load(client, processes, case.traffic, sessions)
            hosts = Hosts(tasks, environ, load, processes, size.asks, journal.site)
            async with anyio.create_task_group() as talks:
                for session in sessions:
                    talks.start_soon(load.talk, session)
                await hosts.wait_for_asks()
                figures = await case.play(hosts)
                await hosts.wait_for_asks()
                load.is_ending = True
        logs = [host.log for host in processes]
    await check_logs(journal.url, load, model)
    assert model.server.refusals == []
    assert not [log for log in logs if "Traceback" in log], logs
    slowest = max(each.seconds for each in load.records)
    return f"{name:8} {load.count:6} asks, each once, no error; slowest {slowest:.2f} s; {figures}"


async def check_logs(journal: str, load: Load, model: Model) -> None:
    """Check that each ask is in the log of its session once, in order, with one complete turn.

    The model must not have received a request that is not in the log.
    """
    async with Runtime(journal=open_storage(journal, LEASE)) as runtime:
        for session, texts in load.asked.items():
            assert asked(runtime, session) == texts
            events = runtime._storage.read(session)
            complete = [
                event for event in events if isinstance(event, TurnEnded) and event.status == "complete"
            ]
            assert len(complete) == len(texts)
            assert model.requests[session] <= sum(isinstance(event, RequestSent) for event in events)


@contextmanager
def temporary_journal(*, postgres: bool, standby: bool = False) -> Iterator[Journal]:
    """Yield a journal that is removed at the end of the block: a file, or a Postgres server, or one with a standby."""
    if standby:
        with site() as servers:
            servers.replicate("synchronous")
            yield Journal(servers.url(servers.primary.schema()), servers)
    elif postgres:
        with temporary_server() as server:
            server.start()
            yield Journal(server.url(server.schema()))
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield Journal(str(Path(folder) / "sessions.db"))
