"""`actors doctor`: check the environment, and print one line per result, with a suggested fix.

Keys are reported as set or not set, and never shown. Nothing is sent to other machines without `--network`.

A runtime learns from refusals which parameters a model does not support (`runtime.stats().learned`), and forgets them
when it ends. But the logs of sessions record the parameters that requests omitted for this reason. So `doctor` reads
the logs of the most recent sessions and prints `[models]` tables. A process that is configured with these tables avoids
the refusals.
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

from actors.cli.arguments import add_config_option, add_journal_option
from actors.cli.exits import Exit, exit_for_error
from actors.cli.journal import default_journal_path, named_journal, stored_sessions
from actors.cli.parser import Parser
from actors.cli.screen import ColorOption, escape_controls, screen
from actors.config import Backend, Config, load
from actors.config.providers import PROVIDERS
from actors.core.data.persistent import Segments
from actors.core.log.events import LogEvent, RequestSent
from actors.core.values.identity import Binding
from actors.errors import ActorsError
from actors.provider.backend import models_entry
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
"""Names of the distributions that each extra of the package installs."""
SESSIONS = 50
"""Number of recent sessions whose logs are searched for refused parameters."""
_TIMEOUTS = Timeouts(connect=5.0, first_byte=10.0)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A line of the report.

    `sign` is `ok` for a success, `--` for information, and `FAIL` for a fault, for which `code` is the exit code.
    """

    sign: Sign
    text: str
    code: Exit = Exit.OK


EXAMPLES = (
    ("actors doctor --config actors.toml --network", "check the keys, and whether the servers answer"),
)


def add_arguments(parser: Parser) -> None:
    add_config_option(parser)
    parser.add_argument(
        "--network", action="store_true", help="check whether the servers of the backends answer"
    )
    add_journal_option(parser)


def run(options: argparse.Namespace) -> Exit:
    """Print the result of every check, and return the exit code of the first fault, or 0."""
    results = [*_installation_results(), *_terminal_results(options.color)]
    try:
        config: Config | None = load(options.config, os.environ)
    except ActorsError as error:
        config = None
        results.append(CheckResult("FAIL", str(error), exit_for_error(error)))
    if config is not None:
        results += anyio.run(_all_backends, config, options.network)
        results += _refused_parameters(options, config)
    for result in results:
        print(escape_controls(f"{result.sign:<4}  {result.text}"))
    return next((result.code for result in results if result.sign == "FAIL"), Exit.OK)


def _installation_results() -> Iterator[CheckResult]:
    yield CheckResult(
        "ok", f"actors {version('llm-actors')}, Python {platform.python_version()}, {sys.platform}"
    )
    path = default_journal_path(os.environ)
    where = "not stored" if path is None else f"stored in {path} by default"
    yield CheckResult("ok", f"SQLite {sqlite_version}; conversations are {where}")
    for extra, names in EXTRAS.items():
        try:
            yield CheckResult("ok", ", ".join(f"{name} {version(name)}" for name in names))
        except PackageNotFoundError as missing:
            yield CheckResult("--", f"{missing.name} is not installed; pip install 'llm-actors[{extra}]'")


def _terminal_results(color: ColorOption) -> Iterator[CheckResult]:
    if not sys.stdout.isatty():
        yield CheckResult("--", "standard output is not a terminal")
        return
    look, term = screen(color=color), os.environ.get("TERM", "")
    kind = "in colour" if look.color else "without colour"
    yield CheckResult(
        "ok", f"terminal {term or 'unnamed'}, {look.width} columns, {kind}, {sys.stdout.encoding}"
    )


async def _all_backends(config: Config, may_use_network: bool) -> list[CheckResult]:
    return [result async for result in _backend_results(config, may_use_network)]


async def _backend_results(config: Config, may_use_network: bool) -> AsyncIterator[CheckResult]:
    if config.source is None:
        for result in _key_results(config):
            yield result
    else:
        yield CheckResult("ok", f"{config.source}: {len(config.targets)} targets")
    for name in config.settings.backends:
        try:
            backend = config.backend(name)
        except ActorsError as error:
            yield CheckResult("FAIL", str(error), exit_for_error(error))
            continue
        credentials = "its credentials are set" if backend.credential else "it needs no key"
        yield CheckResult("ok", f"backend {name}: {backend.model} at {backend.endpoint}; {credentials}")
        if may_use_network:
            yield await _check_server(backend)


def _refused_parameters(options: argparse.Namespace, config: Config) -> Iterator[CheckResult]:
    """Yield the parameters that recent requests omitted because the provider had refused them.

    Also yield `[models]` tables that make later requests omit these parameters from the start.
    """
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
    """Return True if there is a journal to read. Do not open a missing file, because that would create the file."""
    settings = config.settings.journal
    if named_journal(options) is not None or settings.url is not None:
        return True
    path = default_journal_path(os.environ) if settings.path is None else Path(settings.path)
    return path is not None and path.exists()


def _unsupported_parameters(events: Iterable[LogEvent]) -> dict[Binding, list[str]]:
    """Return the parameters that requests to each binding omitted because the model supports no value of them."""
    found: dict[Binding, list[str]] = {}
    for event in events:
        if isinstance(event, RequestSent):
            names = [omission.name for omission in event.omitted if not omission.only_value]
            if names:
                found[event.binding] = list(dict.fromkeys((*found.get(event.binding, ()), *names)))
    return found


def _key_results(config: Config) -> Iterator[CheckResult]:
    """Yield a line that lists the provider keys that are set.

    A missing key is not a fault, because one key may be enough.
    """
    yield CheckResult("--", "no configuration file; --config FILE names one")
    variables = [provider.key_variable for provider in PROVIDERS.values() if provider.key_variable]
    there = [name for name in dict.fromkeys(variables) if config.environ.get(name)]
    if there:
        yield CheckResult("ok", f"set: {', '.join(there)}")
    else:
        yield CheckResult("--", "no key of a provider is set; actors run --offline needs no key")


async def _check_server(backend: Backend) -> CheckResult:
    """Check whether the server of a backend answers an empty request without a key."""
    transport = HttpTransport()
    try:
        async with transport.send(backend.endpoint, (), Segments(), _TIMEOUTS) as response:
            return CheckResult(
                "ok", f"backend {backend.name}: {backend.endpoint} answers ({response.status})"
            )
    except ActorsError as error:
        return CheckResult("FAIL", f"backend {backend.name}: {error}", exit_for_error(error))
    finally:
        await transport.close()
