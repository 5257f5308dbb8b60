"""A stand-in for the part of Ray that `RayHosts` uses: actors with names, which run in this process.

The tests with real processes are `python -m tests.commands.ray_hosts`.
"""

import asyncio
import inspect
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from types import SimpleNamespace
from typing import Any


class RayError(Exception):
    """The base class of Ray's errors."""


class ActorUnavailableError(RayError):
    """The actor is restarting."""


class RayActorError(RayError):
    """The actor has ended."""


class ActorDiedError(RayActorError):
    """The actor has ended, and is not restarted."""


class RayTaskError(RayError):
    """A method of an actor raised `cause`."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Actor:
    """An actor, which the test can end."""

    def __init__(self, instance: object) -> None:
        self.instance = instance
        self.calls = list[tuple[str, tuple[Any, ...]]]()  # Any: the arguments of a method
        self.lost_answers = Counter[str]()
        """The number of further answers of each method that are lost, as if the actor ended first."""
        self.is_restarting = False
        self.has_ended = asyncio.Event()

    def __getattr__(self, name: str) -> "Method":
        return Method(self, name)

    async def run(self, work: Awaitable[Any]) -> Any:  # Any: the answer of a method
        """Wait for an answer, or raise an error if the actor ends before."""
        answering, ending = asyncio.ensure_future(work), asyncio.create_task(self.has_ended.wait())
        try:
            await asyncio.wait([answering, ending], return_when=asyncio.FIRST_COMPLETED)
            if self.has_ended.is_set():
                raise ActorDiedError("the actor has ended")
            try:
                return answering.result()
            except StopAsyncIteration:
                raise
            except Exception as error:
                raise RayTaskError(error) from None
        finally:
            answering.cancel()
            ending.cancel()


class Method:
    """A method of an actor."""

    def __init__(self, actor: Actor, name: str) -> None:
        self._actor, self._name = actor, name

    def options(self, **_: object) -> "Method":
        return self

    def remote(self, *arguments: Any) -> Any:  # Any: an awaitable or a stream
        """Call the method."""
        self._actor.calls.append((self._name, arguments))
        method = getattr(self._actor.instance, self._name)
        if inspect.isasyncgenfunction(method):
            return self._stream(method(*arguments))
        return self._call(method, arguments)

    async def _call(
        self, method: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...]
    ) -> Any:  # Any: as above
        if self._actor.is_restarting:
            self._actor.is_restarting = False
            raise ActorUnavailableError("restarting")
        answer = await self._actor.run(method(*arguments))
        self._lose_answer()
        return answer

    def _lose_answer(self) -> None:
        if self._actor.lost_answers[self._name] > 0:
            self._actor.lost_answers[self._name] -= 1
            raise RayActorError("the actor ended before its answer arrived")

    async def _stream(self, items: AsyncGenerator[Any, None]) -> AsyncIterator[Any]:  # Any: as above
        while True:
            try:
                item = await self._actor.run(anext(items))
                self._lose_answer()
            except StopAsyncIteration:
                return
            except RayError as error:
                yield _failing(error)
                return
            yield _ready(item)


async def _ready(item: object) -> object:
    return item


async def _failing(error: Exception) -> object:
    raise error


class FakeRay:
    """The functions of Ray."""

    exceptions = SimpleNamespace(
        RayError=RayError,
        RayActorError=RayActorError,
        ActorDiedError=ActorDiedError,
        RayTaskError=RayTaskError,
        ActorUnavailableError=ActorUnavailableError,
    )

    def __init__(self) -> None:
        self.actors = dict[str, Actor]()
        self.namespace: object = None
        """The namespace of all actors."""

    def remote(self, kind: Callable[..., object]) -> SimpleNamespace:
        """Return the class of actors of a class."""

        def options(*, name: str, namespace: object = None, **_: object) -> SimpleNamespace:
            self.namespace = namespace

            def create(*arguments: object) -> Actor:
                return self.actors.setdefault(name, Actor(kind(*arguments)))

            return SimpleNamespace(remote=create)

        return SimpleNamespace(options=options)

    def get_actor(self, name: str, namespace: object = None) -> Actor:
        """Return an actor by its name."""
        if name not in self.actors or namespace != self.namespace:
            raise ValueError(f"no actor {name}")
        return self.actors[name]

    def cancel(self, _: object) -> None:
        """Cancel a call."""

    def kill(self, actor: Actor) -> None:
        """End an actor."""
        actor.has_ended.set()
