"""Hosts of one journal with a router each, the application that they serve, and a client that knows no owners."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import cycle

import anyio
from anyio.abc import TaskGroup, TaskStatus
from httpx2 import AsyncClient

from actors import Runtime
from actors.config import Config, FileSettings
from actors.core.log.events import AskStarted
from actors.core.values.packed import unpack
from actors.errors import ActorsError
from actors.events import sse_frame
from actors.hosts import (
    Receive,
    RouterLimits,
    Scope,
    Send,
    SessionRouter,
    ensure_answered,
    error_response,
)
from actors.journal.storage import Storage
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.sqlite import SqliteStorage
from actors.strict.rules.base import Json
from actors.testing import OpenAIServer, Say, Turn, serve
from tests.hosts.asgi_server import serve_app
from tests.runtime_support import backend_at

MakeStorage = Callable[[], Storage]
SECONDS = 60.0
"""The longest duration of a test."""
LIMITS = RouterLimits(exclusion_time=0.5)


def open_storage(journal: str, lease: float) -> Storage:
    """Return a storage of a journal, which is a file or `postgresql://...`."""
    if journal.startswith("postgresql://"):
        return PostgresStorage(journal, lease=lease)
    return SqliteStorage(journal, durability="process", lease=lease)


def session_id(scope: Scope) -> str | None:
    """Return the session of a path such as /sessions/one/ask."""
    parts = scope["path"].split("/")
    return parts[2] if parts[1] == "sessions" else None


def answer(request: Json) -> Turn:
    """Answer with the last message."""
    assert isinstance(request, dict)
    messages = request["messages"]
    assert isinstance(messages, list)
    return Turn(Say(f"Answer to {messages[-1]['content']}"))


async def respond(send: Send, status: int, value: object, headers: dict[str, str] | None = None) -> None:
    """Send a response with a JSON body."""
    raw = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": json.dumps(value).encode(), "more_body": False})


def header(scope: Scope, name: str) -> str:
    """Return a header of a request, or an empty string."""
    found = [value.decode() for key, value in scope["headers"] if key == name.encode()]
    assert len(found) < 2, f"{name} is repeated"
    return found[0] if found else ""


async def read_body(receive: Receive) -> bytes:
    """Return the body of a request."""
    body, more = b"", True
    while more:
        event = await receive()
        body += event["body"]
        more = event["more_body"]
    return body


class Application:
    """An application with a route for asks, a route for events, and a route without a session.

    `target`: the target of new sessions. `answers_errors`: whether an error handler answers with `error_response`;
    otherwise errors are raised.
    """

    def __init__(self, target: str = "a", *, answers_errors: bool = False) -> None:
        self.runtime: Runtime
        self._target = target
        self.requests = list[Scope]()
        self.left = anyio.Event()
        """Set when a client has left a stream of events."""
        self._answers_errors = answers_errors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests.append(scope)
        try:
            if scope["path"].endswith("/ask"):
                await self._ask(scope, receive, send)
            elif scope["path"].endswith("/events"):
                await self._events(scope, receive, send)
            else:
                await respond(send, 200, {"host": self.runtime.address})
        except ActorsError as error:
            if not self._answers_errors:
                raise
            response = error_response(error)
            await respond(send, response.status, {"error": str(error)}, {**response.headers})

    async def _ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        text = json.loads(await read_body(receive))["text"]
        session = await self.runtime.open(self._target, id=scope["path"].split("/")[2], resume=True)
        result = ensure_answered(session, await session.ask(text, key=header(scope, "idempotency-key")))
        await respond(send, 200, {"text": result.text, "host": self.runtime.address})

    async def _events(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = await self.runtime.open(self._target, id=scope["path"].split("/")[2], resume=True)
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                self.left.set()
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            async for event in session.events(after=int(header(scope, "last-event-id") or 0)):
                await send({"type": "http.response.body", "body": sse_frame(event), "more_body": True})
            tasks.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class RoutedHost:
    """A host of a cluster, which runs in a task of its own."""

    def __init__(self, runtime: Runtime, app: Application, url: str) -> None:
        self.runtime, self.app, self.url = runtime, app, url
        self.leaving, self.has_left = anyio.Event(), anyio.Event()

    async def leave(self) -> None:
        """Drain the host, leave its runtime and close its server."""
        self.leaving.set()
        await self.has_left.wait()


class RoutedCluster:
    """Hosts with one journal and a router each."""

    def __init__(
        self, tasks: TaskGroup, client: AsyncClient, server: OpenAIServer, journal: MakeStorage
    ) -> None:
        self._tasks, self._journal = tasks, journal
        self.server, self.client = server, client
        self.hosts: list[RoutedHost] = []

    async def start(
        self,
        count: int = 1,
        *,
        answers_errors: bool = False,
        limits: RouterLimits = LIMITS,
        rebalance: float | None = None,
    ) -> list[RoutedHost]:
        """Start hosts, and return all hosts."""
        for _ in range(count):
            self.hosts.append(await self._tasks.start(self._run_host, answers_errors, limits, rebalance))
        return self.hosts

    async def _run_host(
        self,
        answers_errors: bool,
        limits: RouterLimits,
        rebalance: float | None,
        *,
        task_status: TaskStatus[RoutedHost],
    ) -> None:
        app = Application(answers_errors=answers_errors)
        router = SessionRouter(app, session_id, limits=limits)
        async with serve_app(router) as url:
            config = Config(FileSettings(backends={"a": backend_at(self.server)}), {})
            app.runtime = Runtime(config, journal=self._journal(), seed=1, address=url)
            host = RoutedHost(app.runtime, app, url)
            async with app.runtime, router.serve(app.runtime, timeout=5.0, rebalance=rebalance):
                task_status.started(host)
                await host.leaving.wait()
        host.has_left.set()

    async def leave(self) -> None:
        """Let all hosts leave, one after another."""
        for host in self.hosts:
            await host.leave()

    async def ask(self, host: RoutedHost, session: str, text: str, key: str = "") -> dict[str, str]:
        """Ask a session through any host, and return the body of the response."""
        headers = {"idempotency-key": key} if key else {}
        response = await self.client.post(
            f"{host.url}/sessions/{session}/ask", json={"text": text}, headers=headers
        )
        assert response.status_code == 200, response.text
        found: dict[str, str] = response.json()
        assert found["text"] == f"Answer to {text}"
        return found

    async def ask_all(self, hosts: list[RoutedHost], sessions: list[str], texts: list[str]) -> None:
        """Ask each session each text in turn, all sessions at once, through the hosts in turn."""
        turn = cycle(hosts)

        async def talk(session: str) -> None:
            for text in texts:
                await self.ask(next(turn), session, f"{session} {text}")

        async with anyio.create_task_group() as tasks:
            for session in sessions:
                tasks.start_soon(talk, session)


def asked(runtime: Runtime, session: str) -> list[str]:
    """Return the messages of the asks in a session's log."""
    events = runtime._storage.read(session)
    return [unpack(event.message).text for event in events if isinstance(event, AskStarted)]


@asynccontextmanager
async def routed_cluster(journal: MakeStorage) -> AsyncIterator[RoutedCluster]:
    """Run a model server and a client; the test starts the hosts."""
    server = OpenAIServer(answer)
    with anyio.fail_after(SECONDS):
        async with serve(server), AsyncClient(timeout=SECONDS) as client, anyio.create_task_group() as tasks:
            cluster = RoutedCluster(tasks, client, server, journal)
            yield cluster
            await cluster.leave()
