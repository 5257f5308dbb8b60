"""`actors doctor`: check the environment and suggest fixes, one line each.

Keys are reported as set or not, never shown. Nothing leaves the machine without `--network`.

A runtime learns from refusals which parameters a model does not support, and forgets it with its process
(`runtime.stats().learned`). The log records the parameters that each request omitted for that reason, so `doctor` reads
the most recent sessions and prints the `[models]` tables that spare the next process the refusals.
"""

import argparse
import os
import platform
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from sqlite3 import sqlite_version
from typing import Literal, TypeAlias

import anyio

from actors.cli.arguments import add_config, add_journal
from actors.cli.exits import Exit, of_error
from actors.cli.journal import default_path, named_journal, stored_sessions
from actors.cli.parser import Parser
from actors.cli.screen import ColorOption, escape_controls, screen
from actors.config import Backend, Config, load
from actors.config.providers import PROVIDERS
from actors.core.data.segments import Segments
from actors.core.log.events import LogEvent, RequestSent
from actors.core.policy.learned import models_entry
from actors.core.values.identity import Binding
from actors.errors import ActorsError
from actors.transport import HttpTransport, Timeouts

Sign: TypeAlias = Literal["ok", "--", "FAIL"]

EXTRAS = {
    "bedrock": ("botocore",),
    "completion": ("argcomplete",),
    "mcp": ("mcp",),
    "otel": ("opentelemetry-api",),
    "postgres": ("psycopg",),
    "prices": ("genai-prices",),
    "prometheus": ("prometheus-client",),
    "trio": ("trio",),
}
"""The distributions of each extra."""
SESSIONS = 50
"""Recent sessions that are read for refused parameters."""
_TIMEOUTS = Timeouts(connect=5.0, first_byte=10.0)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A line of the report: `--` is information, `FAIL` a fault with its exit code."""

    sign: Sign
    text: str
    code: Exit = Exit.OK


EXAMPLES = (("actors doctor --config actors.toml --network", "checks keys and reaches the servers"),)


def add_arguments(parser: Parser) -> None:
    add_config(parser)
    parser.add_argument(
        "--network", action="store_true", help="check whether the servers of the backends answer"
    )
    add_journal(parser)


def run(options: argparse.Namespace) -> Exit:
    """Print the results and return the exit code of the first fault, or 0."""
    results = [*_installation(), *_terminal(options.color)]
    try:
        config: Config | None = load(options.config, os.environ)
    except ActorsError as error:
        config = None
        results.append(CheckResult("FAIL", str(error), of_error(error)))
    if config is not None:
        results += anyio.run(_all_backends, config, options.network)
        results += _refused_parameters(options, config)
    for result in results:
        print(escape_controls(f"{result.sign:<4}  {result.text}"))
    return next((result.code for result in results if result.sign == "FAIL"), Exit.OK)


def _installation() -> Iterator[CheckResult]:
    yield CheckResult(
        "ok", f"actors {version('llm-actors')}, Python {platform.python_version()}, {sys.platform}"
    )
    path = default_path(os.environ)
    where = "not stored" if path is None else f"stored in {path} by default"
    yield CheckResult("ok", f"SQLite {sqlite_version}; conversations are {where}")
    for extra, names in EXTRAS.items():
        try:
            yield CheckResult("ok", ", ".join(f"{name} {version(name)}" for name in names))
        except PackageNotFoundError as missing:
            yield CheckResult("--", f"{missing.name} is not installed; pip install 'llm-actors[{extra}]'")


def _terminal(color: ColorOption) -> Iterator[CheckResult]:
    if not sys.stdout.isatty():
        yield CheckResult("--", "standard output is not a terminal")
        return
    look, term = screen(color=color), os.environ.get("TERM", "")
    kind = "in colour" if look.color else "without colour"
    yield CheckResult(
        "ok", f"terminal {term or 'unnamed'}, {look.width} columns, {kind}, {sys.stdout.encoding}"
    )


async def _all_backends(config: Config, network: bool) -> list[CheckResult]:
    return [result async for result in _backends(config, network)]


async def _backends(config: Config, network: bool) -> AsyncIterator[CheckResult]:
    if config.source is None:
        for result in _environment(config):
            yield result
    else:
        yield CheckResult("ok", f"{config.source}: {len(config.targets)} targets")
    for name in config.settings.backends:
        try:
            backend = config.backend(name)
        except ActorsError as error:
            yield CheckResult("FAIL", str(error), of_error(error))
            continue
        held = "its credentials are set" if backend.credential else "it needs no key"
        yield CheckResult("ok", f"backend {name}: {backend.model} at {backend.endpoint}; {held}")
        if network:
            yield await _reach(backend)


def _refused_parameters(options: argparse.Namespace, config: Config) -> Iterator[CheckResult]:
    """Yield the parameters that recent requests omitted because the model does not support them."""
    if not _has_journal(options, config):
        return
    try:
        with closing(stored_sessions(options, config)) as storage:
            storage.open()
            stored = storage.sessions(limit=SESSIONS)
            unsupported = _unsupported_parameters(event for each in stored for event in storage.read(each.id))
    except ActorsError as error:
        yield CheckResult("--", f"cannot read the journal for refused parameters: {error}")
        return
    for binding, names in unsupported.items():
        yield CheckResult("--", f"{binding} refused {', '.join(names)}; to omit them, add to actors.toml:")
        yield from (CheckResult("--", f"    {line}") for line in models_entry(binding, names).splitlines())


def _has_journal(options: argparse.Namespace, config: Config) -> bool:
    """Return True if there is a journal to read: opening one would create it."""
    settings = config.settings.journal
    if named_journal(options) is not None or settings.url is not None:
        return True
    path = default_path(os.environ) if settings.path is None else Path(settings.path)
    return path is not None and path.exists()


def _unsupported_parameters(events: Iterable[LogEvent]) -> dict[Binding, list[str]]:
    """Return the unsupported parameters that requests omitted, by binding."""
    found: dict[Binding, list[str]] = {}
    for event in events:
        if isinstance(event, RequestSent):
            names = [omission.name for omission in event.omitted if not omission.only_value]
            if names:
                found[event.binding] = list(dict.fromkeys((*found.get(event.binding, ()), *names)))
    return found


def _environment(config: Config) -> Iterator[CheckResult]:
    """Yield which keys of providers are set. None is a fault: any one may be enough."""
    yield CheckResult("--", "no configuration file; --config FILE names one")
    variables = [provider.key_variable for provider in PROVIDERS.values() if provider.key_variable]
    there = [name for name in dict.fromkeys(variables) if config.environ.get(name)]
    if there:
        yield CheckResult("ok", f"set: {', '.join(there)}")
    else:
        yield CheckResult("--", "no key of a provider is set; actors run --offline needs none")


async def _reach(backend: Backend) -> CheckResult:
    """Check whether the server of a backend answers an empty request without a key."""
    transport = HttpTransport()
    try:
        async with transport.send(backend.endpoint, (), Segments(), _TIMEOUTS) as response:
            return CheckResult(
                "ok", f"backend {backend.name}: {backend.endpoint} answers ({response.status})"
            )
    except ActorsError as error:
        return CheckResult("FAIL", f"backend {backend.name}: {error}", of_error(error))
    finally:
        await transport.close()
