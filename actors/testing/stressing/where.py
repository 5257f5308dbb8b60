"""Choose the backends of a stress test. By default, only backends on this machine are allowed."""

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
            if not allow_network and not _is_loopback(backend.endpoint):
                raise ConfigError(
                    f"Backend {backend.name!r} is at {urlsplit(backend.endpoint).hostname}, where a stress test may "
                    "cost money; to use it anyway, pass --allow-network (allow_network=True)"
                )


def _is_loopback(url: str) -> bool:
    """Return True if the host of a URL is this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@asynccontextmanager
async def run_built_in_servers(faults: InjectedFaults | None) -> AsyncGenerator[tuple[Config, Counter[str]]]:
    """Run strict servers until the block ends. Yield a configuration with a pool of these servers, and a counter.

    The counter contains the number of rejected requests for each rule. The model of the servers calls the tools of a
    request in turn, with arguments generated from the schemas.
    """
    servers, refused = [_create_server(name, faults) for name in BUILT_IN], Counter[str]()

    def count_refusal(exchange: Exchange) -> None:
        if exchange.verdict is not None:
            refused[exchange.verdict.rule] += 1

    for server in servers:
        server.on_exchange = count_refusal
    async with serve(*servers):
        backends: dict[str, BackendSettings] = dict(
            zip(BUILT_IN, map(_backend_settings, servers), strict=True)
        )
        pools = {POOL: PoolSettings(members=BUILT_IN, policy="round_robin")}
        yield Config(FileSettings(backends=backends, pools=pools), {}, "the built-in servers"), refused


def _create_server(name: str, faults: InjectedFaults | None) -> LoopbackServer:
    limits, calls = ServerLimits(connections=4096, recordings=1), 0

    def answer_request(request: Json) -> Turn:
        nonlocal calls
        turn = answer(request, tool_index=calls)
        calls += len(turn.calls)
        return turn

    return strict_server(name, answer_request, faults=faults, limits=limits)


def _backend_settings(server: LoopbackServer) -> BackendSettings:
    speaks = {"kind": kind_of(dialect(server.dialect)), "dialect": server.dialect}
    return BackendSettings.model_validate({"model": "model", "base_url": server.endpoint, **speaks})
