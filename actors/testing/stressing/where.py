"""Choose the backends of a stress run: by default, only backends on this machine are allowed."""

from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from urllib.parse import urlsplit

from actors.config import BackendSettings, Config, FileSettings, PoolSettings
from actors.config.providers import kind_of
from actors.core.dialects.profiles import dialect
from actors.errors import ConfigError
from actors.strict.dialects import strict_server
from actors.strict.faults import InjectedFaults
from actors.strict.rules.base import Json
from actors.strict.script import Turn
from actors.strict.server import Exchange, LoopbackServer, ServerLimits, serve
from actors.testing.standin import answer

BUILT_IN = ("openai_chat", "anthropic", "gemini", "mistral")
"""Dialects of the strict servers that form the pool `built-in`, the default target."""
POOL = "built-in"


def check_targets(config: Config, targets: Iterable[str], *, allow_network: bool) -> None:
    """Check that all targets are on this machine.

    Raises:
        ConfigError: A target is on another machine, and the network is not allowed.
    """
    for target in targets:
        for backend in config.resolve(target).members:
            if not allow_network and not _is_here(backend.endpoint):
                raise ConfigError(
                    f"{backend.name!r} is at {urlsplit(backend.endpoint).hostname}, and a stress run may cost money "
                    "there; to send requests anyway, pass --allow-network (allow_network=True)"
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
async def built_in(faults: InjectedFaults | None) -> AsyncGenerator[tuple[Config, Counter[str]]]:
    """Run strict servers during the block; yield a pool of them and a function that counts their refusals.

    Their model calls the tools of a request in turn, with arguments generated from the schemas.
    """
    servers, refused = [_server(name, faults) for name in BUILT_IN], Counter[str]()

    def count_refusal(exchange: Exchange) -> None:
        if exchange.verdict is not None:
            refused[exchange.verdict.rule] += 1

    for server in servers:
        server.on_exchange = count_refusal
    async with serve(*servers):
        backends: dict[str, BackendSettings] = dict(zip(BUILT_IN, map(_backend, servers), strict=True))
        pools = {POOL: PoolSettings(members=BUILT_IN, policy="round_robin")}
        yield Config(FileSettings(backends=backends, pools=pools), {}, "the built-in servers"), refused


def _server(name: str, faults: InjectedFaults | None) -> LoopbackServer:
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
