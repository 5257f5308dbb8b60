"""Run a program without a key or a network: strict servers on this machine replace the providers.

    SCRIPT = {
        "openai:gpt-5.2": [call("weather", city="Oslo"), say("Oslo has 4 °C.")],
        "anthropic:claude-sonnet-5": [think("4 °C is cold."), say("Take a coat.")],
    }
    async with offline(SCRIPT) as runtime, runtime.open("openai:gpt-5.2", tools=[weather]) as session:
        ...

A script lists the parts of a model's answers in order. An answer ends with a `say`, or with the last of several
adjacent `call`s. To group parts differently, use `answer`. Each target keeps the dialect and the address of its
provider. Only the transport differs: it sends the requests to the servers.

`serve_in_thread` runs servers for programs without an event loop, such as tests and examples of `actors.sync`.
"""

from collections.abc import AsyncGenerator, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, TypeAlias
from urllib.parse import quote

from actors.config import load
from actors.config.backend import Backend
from actors.config.providers import PROVIDERS
from actors.core.data.jsonio import dump, is_array
from actors.core.data.persistent import Segments
from actors.errors import ConfigError
from actors.kernel.loop_thread import LoopThread
from actors.runtime.runtime import Runtime
from actors.strict.dialects import strict_server
from actors.strict.rules.base import Json
from actors.strict.script import Call, Say, Think, Turn
from actors.strict.server import LoopbackServer, serve
from actors.transport import HttpTransport, Response, Timeouts

ScriptPart: TypeAlias = Say | Think | Call | Turn
"""A part of a script for `offline`, as returned by `say`, `think`, `call` and `answer`."""

_KEY = "offline"


def say(text: str) -> ScriptPart:
    """Return a script part in which the model sends `text` and ends its answer."""
    return Say(text)


def think(text: str) -> ScriptPart:
    """Return a script part in which the model reasons. The server signs the reasoning if its dialect has signatures."""
    return Think(text)


def call(name: str, /, **arguments: Json) -> ScriptPart:
    """Return a script part in which the model calls a tool. Adjacent calls form one answer, which ends after them."""
    return Call(name, arguments)


def answer(*parts: ScriptPart) -> ScriptPart:
    """Return a script part in which the model gives one answer that consists of exactly these parts.

    Raises:
        ConfigError: A part is itself an answer.
    """
    inner = [part for part in parts if not isinstance(part, Turn)]
    if len(inner) < len(parts):
        raise ConfigError("answer() accepts say(), think() and call(), but not another answer()")
    return Turn(*inner)


@asynccontextmanager
async def offline(script: Mapping[str, Sequence[ScriptPart]], **options: Any) -> AsyncGenerator[Runtime]:
    """Run a runtime whose targets are strict servers on this machine.

    Args:
        script: The answers of each target (`provider:model`), in order. After its last answer, a target answers `ok`.
        options: Arguments of `Runtime` other than `config`, `environ` and `transport`.

    Raises:
        ConfigError: The script is empty or has an invalid part, or a target's provider has a different address for each
            customer.
        UnknownTarget: The script names an unknown provider.
    """
    config = load(None, _placeholder_keys())
    backends = {target: config.backend(target) for target in script}
    if not backends:
        raise ConfigError("The script is empty; add a target 'provider:model' with its answers")
    servers = {
        target: strict_server(each.dialect, group_answers(_check_script(script[target])))
        for target, each in backends.items()
    }
    routes = [(backend, servers[target]) for target, backend in backends.items()]
    async with (
        serve(*servers.values()),
        Runtime(config, transport=_LoopbackTransport(routes), **options) as runtime,
    ):
        yield runtime


def group_answers(parts: Iterable[ScriptPart]) -> list[Turn]:
    """Group the parts of a script into answers.

    Raises:
        ConfigError: A part is not a `say`, `think`, `call` or `answer`.
    """
    turns: list[Turn] = []
    pending: list[Say | Think | Call] = []

    def end_answer() -> None:
        if pending:
            turns.append(Turn(*pending))
            pending.clear()

    for part in parts:
        if not isinstance(part, Say | Think | Call | Turn):
            raise ConfigError(
                f"A script may contain say(), think(), call() and answer(), but not {part!r:.80}"
            )
        if pending and isinstance(pending[-1], Call) and not isinstance(part, Call):
            end_answer()
        if isinstance(part, Turn):
            end_answer()
            turns.append(part)
        else:
            pending.append(part)
        if isinstance(part, Say):
            end_answer()
    end_answer()
    return turns


def _check_script(script: object) -> Sequence[ScriptPart]:
    """Return the script of one target after checking that it is a list."""
    if not is_array(script):
        raise ConfigError(
            f"The script of a target must be a list of say(), think() and call(), not {script!r:.80}"
        )
    return script


def _placeholder_keys() -> dict[str, str]:
    return {provider.key_variable: _KEY for provider in PROVIDERS.values() if provider.key_variable}


class _LoopbackTransport:
    """A transport that sends each request to the strict server for the request's endpoint and model.

    Args:
        routes: Pairs of a backend and the server that replaces its provider.
    """

    def __init__(self, routes: Sequence[tuple[Backend, LoopbackServer]]) -> None:
        self._routes, self._http = routes, HttpTransport(environ={})

    def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[Response]:
        """Send a request to a strict server; see `Transport.send`.

        Raises:
            ConfigError: The script contains no target with the request's endpoint and model.
        """
        body = b"".join(segments)
        for backend, server in self._routes:
            if url.startswith(backend.endpoint) and _requests_model(backend.model, url, body):
                there = server.endpoint + url.removeprefix(backend.endpoint)
                return self._http.send(there, headers, segments, timeouts)
        raise ConfigError(
            f"offline() has no scripted answers for {url}; add an entry for its target to the script"
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()


def _requests_model(model: str, url: str, body: bytes) -> bool:
    """Return True if a request is for this model. Depending on the dialect, its path or its body contains the model."""
    return f"/{quote(model, safe='')}" in url or f"/{model}" in url or b'"model":%b' % dump(model) in body


@contextmanager
def serve_in_thread(*servers: LoopbackServer) -> Generator[tuple[LoopbackServer, ...]]:
    """Run servers in a separate thread during the block, each on a free loopback port; see `serve`."""
    thread = LoopThread(serve(*servers), name="server")
    try:
        yield servers
    finally:
        thread.close()
