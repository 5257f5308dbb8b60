"""Whom a stress run may ask: backends on this machine, unless the caller says in so many words that others may be."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from urllib.parse import urlsplit

from actors.config import BackendSettings, Config, FileSettings, PoolSettings
from actors.config.providers import kind_of
from actors.core.dialects.profiles import dialect
from actors.errors import ConfigError
from actors.strict.dialects import strict_server
from actors.strict.faults import Faults
from actors.strict.rules.base import Json
from actors.strict.script import Turn
from actors.strict.server import Exchange, LoopbackServer, ServerLimits, serve
from actors.testing.standin import answer

BUILT_IN = ("openai_chat", "anthropic", "gemini", "mistral")
"""The servers of this project that are asked where no target is named: a pool `built-in` of these."""
POOL = "built-in"


def checked(config: Config, targets: Iterable[str], *, allow_network: bool) -> None:
    """Refuse targets that are not on this machine.

    Raises:
        ConfigError: One is not, and nobody said that it may be asked.
    """
    for target in targets:
        for backend in config.resolve(target).members:
            if not allow_network and not _is_here(backend.endpoint):
                raise ConfigError(
                    f"{backend.name!r} is at {urlsplit(backend.endpoint).hostname}, and stress may cost money there; "
                    "--allow-network (allow_network=True) lets it be asked"
                )


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@asynccontextmanager
async def built_in(faults: Faults | None) -> AsyncIterator[tuple[Config, Counter[str]]]:
    """Have strict servers listen for the time of the block; give a pool of them, and a count of what they refuse.

    Their model calls the tools of a request one after the other, with arguments made from their schemas.
    """
    servers, refused = [_server(name, faults) for name in BUILT_IN], Counter[str]()

    def judged(exchange: Exchange) -> None:
        if exchange.verdict is not None:
            refused[exchange.verdict.rule] += 1

    for server in servers:
        server.on_exchange = judged
    async with serve(*servers):
        backends = dict(zip(BUILT_IN, map(_backend, servers), strict=True))
        pools = {POOL: PoolSettings(members=BUILT_IN, policy="round_robin")}
        yield Config(FileSettings(backends=backends, pools=pools), {}, "the built-in servers"), refused


def _server(name: str, faults: Faults | None) -> LoopbackServer:
    limits, calls = ServerLimits(connections=4096, recordings=1), 0

    def says(request: Json) -> Turn:
        nonlocal calls
        turn = answer(request, number=calls)
        calls += len(turn.calls)
        return turn

    return strict_server(name, says, faults=faults, limits=limits)


def _backend(server: LoopbackServer) -> BackendSettings:
    speaks = {"kind": kind_of(dialect(server.dialect)), "dialect": server.dialect}
    return BackendSettings.model_validate({"model": "model", "base_url": server.endpoint, **speaks})
