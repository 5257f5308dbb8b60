"""Host sessions in Ray actors with names, and send each ask to the actor that owns its session.

    hosts = RayHosts(("a", "b", "c"), make_runtime, open_session)
    result = await hosts.ask("session-1", "Hello.")

The address of a host is the name of its Ray actor. Ray restarts an actor whose process or machine has ended, under the
same name, and the new runtime can claim the sessions of the earlier one at once.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar
from uuid import uuid4

from actors.core.stream_events.ask_events import AskResult, DurableEvent
from actors.core.stream_events.events import SessionEvent
from actors.errors import ActorsError, ConfigError, HostUnavailable, JournalError, JournalUnavailable
from actors.hosts.attempts import ensure_answered
from actors.hosts.directory import HostDirectory, HostSearch
from actors.hosts.membership import REBALANCE_PERIOD, import_turn_modules, start_rebalancing
from actors.hosts.race import Interrupted, run_unless
from actors.hosts.routing import Rejection, RouterLimits, RoutingTable, rejection_of
from actors.journal.storage.directory import Host, Movement
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime

MakeRuntime: TypeAlias = Callable[[str], Runtime]
"""Returns a runtime with the given address. The runtime must not be entered yet."""
OpenSession: TypeAlias = Callable[[Runtime, str], Awaitable[Session]]
"""Opens the session with the given id by awaiting `Runtime.claim`, or `Runtime.open` with `resume=True`.

The actor releases the session after each call."""
Arguments: TypeAlias = Mapping[str, Any]  # Any: the arguments of `Session.ask`
RayObject: TypeAlias = Any  # Any: Ray is not installed where types are checked

T = TypeVar("T")

MAX_CALLS = 10_000
"""Maximum number of calls of one actor at the same time. Each ask and each stream of events is a call."""
MAX_BUFFERED = 64
"""Maximum number of events that an actor sends before the reader has received them."""
LIST_TIMEOUT = 5.0
"""Maximum number of seconds to wait for the list of hosts from one actor."""

LOSS_WINDOW = 10.0
"""If an actor ends within this number of seconds after a stream was repeated there, the stream counts as the cause."""
RESTART_DELAY = 0.1
"""Seconds between two attempts to reach an actor that Ray restarts."""
RETRY_DELAY = 1.0
"""Seconds between two attempts to enter the runtime of an actor, while its journal cannot be used."""


class HostActor:
    """A Ray actor that hosts sessions. Ray calls each method in a new task, all on one asyncio event loop.

    Args:
        name: The name of the actor.
        make_runtime: As for `RayHosts`.
        open_session: As for `RayHosts`.
    """

    def __init__(self, name: str, make_runtime: MakeRuntime, open_session: OpenSession) -> None:
        import_turn_modules()
        self._open = open_session
        self._loop = asyncio.get_running_loop()
        self._runtime: asyncio.Future[Runtime] = self._loop.create_future()
        self._leaving = asyncio.Event()
        self._run_task = self._loop.create_task(self._run(partial(make_runtime, name)))

    async def _run(self, make_runtime: Callable[[], Runtime]) -> None:
        """Enter and leave the runtime in one task. Try again while the journal cannot be used."""
        while True:
            try:
                await self._run_until_leaving(make_runtime())
            except Exception as error:
                if self._runtime.done():
                    raise
                self._runtime.set_exception(error)
                self._runtime.exception()  # so that asyncio does not log the error, which the next call raises
                if not isinstance(error, JournalError):
                    return
            else:
                return
            await asyncio.sleep(RETRY_DELAY)
            self._runtime = self._loop.create_future()

    async def _run_until_leaving(self, runtime: Runtime) -> None:
        """Run the runtime until `leave` is called."""
        async with runtime:
            start_rebalancing(runtime, REBALANCE_PERIOD)
            self._runtime.set_result(runtime)
            await self._leaving.wait()

    async def ask(self, session: str, arguments: Arguments) -> AskResult | Rejection:
        """Ask a session, and return the result or the rejection."""
        try:
            async with self._use_session(session) as opened:
                return ensure_answered(opened, await opened.ask(**arguments))
        except ActorsError as error:
            if (rejection := rejection_of(error)) is None:
                raise
            return rejection

    async def events(self, session: str, after: int) -> AsyncGenerator[SessionEvent | Rejection, None]:
        """Yield the events of a session, as `Session.events` does. The last item may be a rejection."""
        try:
            async with self._use_session(session) as opened:
                async for event in opened.events(after=after):
                    yield event
        except ActorsError as error:
            if (rejection := rejection_of(error)) is None:
                raise
            yield rejection

    async def hosts(self, count_sessions: bool) -> Sequence[Host]:
        """Return the live hosts of the journal. Health checks call this method."""
        return await (await self._wait_runtime()).journal.hosts(count_sessions=count_sessions)

    async def ping(self) -> None:
        """Return at once, to show the caller that the actor answers calls."""

    async def leave(self, rate: float, timeout: float) -> Movement:
        """Move all sessions to other hosts, and leave the runtime."""
        runtime = await self._wait_runtime()
        movement = Movement()
        with suppress(ActorsError):
            movement = await runtime.drain(rate=rate, timeout=timeout)
        self._leaving.set()
        await self._run_task
        return movement

    @asynccontextmanager
    async def _use_session(self, session: str) -> AsyncGenerator[Session, None]:
        """Open a session for one call. After the call, the session can be released to make room for other sessions."""
        opened = await self._open(await self._wait_runtime(), session)
        try:
            yield opened
        finally:
            await opened._lifecycle.give_back()

    async def _wait_runtime(self) -> Runtime:
        """Wait until the runtime has been entered, and return it."""
        return await asyncio.shield(self._runtime)


class RayHosts:
    """Ray actors that run one runtime each, and a router that sends each ask to the actor that owns its session.

    Several programs can use the same actors: an actor that exists is not created again. All runtimes must use the same
    journal. Call the methods on asyncio.

    Args:
        names: The names of the actors.
        make_runtime: Returns the runtime of an actor. The argument is the actor's name, which must be the `address` of
            the runtime.
        open_session: Opens a session, with its tools, and resumes it if it exists. The arguments are the runtime and
            the id of the session.
        limits: The limits of the router.
        options: Options for the actors, such as `num_cpus`, `namespace` or `lifetime`, which are passed to the method
            `options` of the Ray actor class.

    Raises:
        ConfigError: `names` is empty.
    """

    def __init__(
        self,
        names: Sequence[str],
        make_runtime: MakeRuntime,
        open_session: OpenSession,
        *,
        limits: RouterLimits | None = None,
        options: Mapping[str, Any] = MappingProxyType({}),  # Any: the values of Ray's options differ
    ) -> None:
        if not names:
            raise ConfigError("RayHosts(names=) takes the name of at least one actor")
        self._ray: RayObject = import_module("ray")
        fixed = {"max_concurrency": MAX_CALLS, "max_restarts": -1, "get_if_exists": True}
        kind = self._ray.remote(HostActor)
        self._actors: dict[str, RayObject] = {  # None: the actor has ended, and is looked up by its name
            name: kind.options(**fixed, **options, name=name).remote(name, make_runtime, open_session)
            for name in names
        }
        self._created = {**self._actors}
        """The actors that `close` ends. Ray ends an actor without `lifetime` once its first handle is dropped."""
        self._namespace: str | None = options.get("namespace")
        self._first = names[0]
        self._table = RoutingTable(limits or RouterLimits())
        self._directory = HostDirectory(partial(self.hosts, count_sessions=False))

    async def wait_started(self) -> None:
        """Wait until all runtimes have been entered, so that new sessions are placed on all actors.

        Raises:
            Exception: A runtime cannot be entered, or an actor cannot be started.
        """
        await asyncio.gather(*map(self._wait_started, self._created.values()))

    async def _wait_started(self, actor: RayObject) -> None:
        """Wait until the runtime of one actor has been entered, even if Ray restarts the actor meanwhile."""
        errors = self._ray.exceptions
        while True:
            try:
                await actor.hosts.remote(False)
            except errors.ActorUnavailableError:
                await asyncio.sleep(RESTART_DELAY)
            except errors.RayTaskError as error:
                raise error.cause from None
            else:
                return

    async def ask(
        self,
        session: str,
        message: str | None = None,
        *,
        key: str | None = None,
        **arguments: Any,  # Any: the arguments of `Session.ask`
    ) -> AskResult:
        """Ask a session at its owner. If the owner ends, the ask continues at another host.

        Args:
            session: Id of the session.
            message: The message of the user.
            key: The key with which the ask is sent, and repeated at other hosts. By default, a new key.
            arguments: Further arguments of `Session.ask`.

        Raises:
            ActorsError: Raised by `Session.ask`, or the error of the last host if the limits were reached.
        """
        if message is not None:
            arguments = {**arguments, "message": message, "key": key or uuid4().hex}
        search, ask = self._search(session), self._ask
        while True:
            address = await search.next_address()
            result = await ask(address, session, arguments)
            if not isinstance(result, Rejection):
                search.accept()
                return result
            search.reject(result)
            ask = self._ask_again

    async def events(self, session: str, after: int = 0) -> AsyncGenerator[SessionEvent, None]:
        """Yield the events of a session, as `Session.events` does. If its owner ends, another host continues.

        If another host continues, deltas may be missing, and events that share a sequence number may be repeated.

        Raises:
            ActorsError: Raised by `Session.events`, or the error of the last host if the limits were reached.
        """
        search, stream = self._search(session), self._stream
        while True:
            rejection: Rejection | None = None
            address = await search.next_address()
            async with aclosing(stream(address, session, after)) as items:
                async for item in items:
                    if isinstance(item, Rejection):
                        rejection = item
                        break
                    search.accept()
                    if isinstance(item, DurableEvent) and not getattr(item, "more", False):
                        # the stream has made progress, so the limits of the next attempt start anew
                        after, stream = item.seq, self._stream
                        search = self._search(session)
                        search.address = address
                    yield item
            if rejection is None:
                return
            search.reject(rejection)
            stream = self._stream_again

    async def hosts(self, *, count_sessions: bool = True) -> Sequence[Host]:
        """Return the live hosts of the journal.

        Args:
            count_sessions: Count the sessions of each host. Otherwise, `Host.sessions` is 0.

        Raises:
            JournalUnavailable: No actor returned the list.
        """
        for name in [*self._actors]:
            with suppress(TimeoutError, ActorsError, ValueError, self._ray.exceptions.RayError):
                async with asyncio.timeout(LIST_TIMEOUT), self._forget_if_ended(name):
                    found: Sequence[Host] = await self._actor(name).hosts.remote(count_sessions)
                    return found
            self._actors[name] = self._actors.pop(name)  # ask this actor last in the future
        raise JournalUnavailable("No Ray actor returned the list of hosts; see the logs of the actors")

    async def close(self, *, rate: float = 100.0, timeout: float = 10.0) -> None:
        """Drain the actors of `names` one after another, and end them. Call this method before you end the Ray cluster.

        Args:
            rate: Maximum number of sessions that leave an actor per second, as for `Runtime.drain`.
            timeout: Seconds to wait for the turns in flight, and again for all sessions of an actor to leave.
        """
        for name in self._created:
            with suppress(ValueError):  # no actor has this name any more
                actor = self._actor(name)
                with suppress(TimeoutError, ActorsError, self._ray.exceptions.RayError):
                    async with asyncio.timeout(2 * timeout + LIST_TIMEOUT):
                        await actor.leave.remote(rate, timeout)
                self._ray.kill(actor)

    def _search(self, session: str) -> HostSearch:
        return HostSearch(session, self._first, self._table, self._directory)

    async def _ask(self, address: str, session: str, arguments: Arguments) -> AskResult | Rejection:
        async def read_result() -> AskResult | Rejection:
            result: AskResult | Rejection = await self._actor(address).ask.remote(session, arguments)
            return result

        return await self._wait_for_answer(address, session, read_result)

    async def _ask_again(self, address: str, session: str, arguments: Arguments) -> AskResult | Rejection:
        """Check that an actor answers calls, and repeat an ask there. If the actor then ends, it has lost the ask."""
        if (rejection := await self._ping(address, session)) is not None:
            return rejection
        result = await self._ask(address, session, arguments)
        return _as_lost(result) if isinstance(result, Rejection) else result

    async def _ping(self, address: str, session: str) -> Rejection | None:
        """Return a rejection if an actor does not answer calls."""

        async def read_answer() -> None:
            await self._actor(address).ping.remote()

        return await self._wait_for_answer(address, session, read_answer)

    async def _stream_again(
        self, address: str, session: str, after: int
    ) -> AsyncGenerator[SessionEvent | Rejection, None]:
        """Check that an actor answers calls, and repeat `_stream` there. If the actor ends soon, the call is lost."""
        clock = asyncio.get_running_loop().time
        began = clock()
        if (rejection := await self._ping(address, session)) is not None:
            yield rejection
            return
        async with aclosing(self._stream(address, session, after)) as items:
            async for item in items:
                is_early = clock() - began < LOSS_WINDOW
                yield _as_lost(item) if is_early and isinstance(item, Rejection) else item

    async def _stream(
        self, address: str, session: str, after: int
    ) -> AsyncGenerator[SessionEvent | Rejection, None]:
        """Yield the events that one actor sends. The last item may be a rejection."""
        method = self._actor(address).events.options(_generator_backpressure_num_objects=MAX_BUFFERED)
        references = method.remote(session, after)

        async def next_item() -> SessionEvent | Rejection | None:
            try:
                item: SessionEvent | Rejection = await (await anext(references))
            except StopAsyncIteration:
                return None
            return item

        try:
            while (item := await self._wait_for_answer(address, session, next_item)) is not None:
                yield item
                if isinstance(item, Rejection):
                    return
        finally:
            self._ray.cancel(references)

    def _actor(self, address: str) -> RayObject:
        """Return the actor with this name, which another program may have created."""
        if (actor := self._actors.get(address)) is None:
            actor = self._actors[address] = self._ray.get_actor(address, namespace=self._namespace)
        return actor

    @asynccontextmanager
    async def _forget_if_ended(self, address: str) -> AsyncGenerator[None, None]:
        """If the block finds that an actor has ended, forget its handle: another program may create the actor again."""
        try:
            yield
        except self._ray.exceptions.ActorDiedError:
            self._actors[address] = None
            raise

    async def _wait_for_answer(
        self, address: str, session: str, read_answer: Callable[[], Awaitable[T | Rejection]]
    ) -> T | Rejection:
        """Wait for an answer of one actor. Return a rejection if the actor has ended or its lease has expired.

        Raises:
            Exception: Raised by the method of the actor.
        """
        errors = self._ray.exceptions
        try:
            async with self._forget_if_ended(address):
                return await run_unless(partial(self._directory.wait_gone, address), read_answer)
        except errors.RayTaskError as error:
            raise error.cause from None
        except (errors.RayError, ValueError) as error:  # `get_actor` raises ValueError for an unknown name
            reason = str(error).partition("\n")[0]
        except Interrupted:
            reason = "its lease has expired"
        text = f"No answer from the Ray actor {address!r} for session {session!r}: {reason}"
        return Rejection("unreachable", HostUnavailable(text))


def _as_lost(rejection: Rejection) -> Rejection:
    """Return the rejection by an actor that had answered a ping. If the actor has ended since, it has lost the call."""
    return Rejection("lost", rejection.error) if rejection.kind == "unreachable" else rejection
