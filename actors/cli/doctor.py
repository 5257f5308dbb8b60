"""`actors doctor`: what is here, what is missing, and the way out: one line each.

A key is only ever said to be there or not. Nothing leaves the machine without `--network`.

What refusals have taught a runtime ends with its process (`runtime.stats().learned`). Another process can know it from
a journal alone: requests are logged with the parameters that they leave out because these are not supported. So the
sessions used last are read, and each binding of them is listed with the `[models]` table that would save the next
process the refusal.
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

from actors.cli.exits import Exit, of_error
from actors.cli.journal import default, kept, named
from actors.cli.screen import Wish, safe, screen
from actors.config import Backend, Config, load
from actors.config.providers import PROVIDERS
from actors.core.data.segments import Segments
from actors.core.log.events import Event, RequestSent
from actors.core.policy.learned import models_entry
from actors.core.values.identity import Binding
from actors.errors import ActorsError
from actors.transport import HttpTransport, Timeouts

Sign: TypeAlias = Literal["ok", "--", "FAIL"]

EXTRAS = {
    "trio": ("trio",),
    "chat": ("prompt_toolkit", "rich"),
    "bedrock": ("botocore",),
    "mcp": ("mcp",),
    "otel": ("opentelemetry-api",),
    "postgres": ("psycopg",),
    "prices": ("genai-prices",),
    "prometheus": ("prometheus-client",),
}
"""The distributions of each extra."""
SESSIONS = 50
"""Sessions, those used last, in which the journal is read for what providers refused."""
_TIMEOUTS = Timeouts(connect=5.0, first_byte=10.0)


@dataclass(frozen=True, slots=True)
class Symptom:
    """One line: `--` is worth knowing and no fault, a fault has the exit code it stands for."""

    sign: Sign
    text: str
    code: Exit = Exit.OK


def main(options: argparse.Namespace) -> Exit:
    """Print what was found and return the exit code of the first fault, 0 without one."""
    findings = [*_here(), *_terminal(options.color)]
    try:
        config: Config | None = load(options.config, os.environ)
    except ActorsError as error:
        config = None
        findings.append(Symptom("FAIL", str(error), of_error(error)))
    if config is not None:
        findings += anyio.run(_asked, config, options.network)
        findings += _learned(options, config)
    for finding in findings:
        print(safe(f"{finding.sign:<4}  {finding.text}"))
    return next((finding.code for finding in findings if finding.sign == "FAIL"), Exit.OK)


def _here() -> Iterator[Symptom]:
    yield Symptom("ok", f"actors {version('llm-actors')}, Python {platform.python_version()}, {sys.platform}")
    path = default(os.environ)
    where = "kept nowhere" if path is None else f"kept in {path}, if nothing else is named"
    yield Symptom("ok", f"SQLite {sqlite_version}; conversations are {where}")
    for extra, names in EXTRAS.items():
        try:
            yield Symptom("ok", ", ".join(f"{name} {version(name)}" for name in names))
        except PackageNotFoundError as missing:
            yield Symptom("--", f"{missing.name} is not installed; pip install 'llm-actors[{extra}]'")


def _terminal(color: Wish) -> Iterator[Symptom]:
    if not sys.stdout.isatty():
        yield Symptom("--", "standard output is no terminal; actors chat is plain here")
        return
    look, term = screen(color=color), os.environ.get("TERM", "")
    kind = "in colour" if look.color else "without colour"
    yield Symptom("ok", f"terminal {term or 'unnamed'}, {look.width} columns, {kind}, {sys.stdout.encoding}")


async def _asked(config: Config, network: bool) -> list[Symptom]:
    return [finding async for finding in _backends(config, network)]


async def _backends(config: Config, network: bool) -> AsyncIterator[Symptom]:
    if config.source is None:
        for finding in _environment(config):
            yield finding
    else:
        yield Symptom("ok", f"{config.source}: {len(config.targets)} targets")
    for name in config.settings.backends:
        try:
            backend = config.backend(name)
        except ActorsError as error:
            yield Symptom("FAIL", str(error), of_error(error))
            continue
        held = "its credentials are set" if backend.credential else "it asks for no key"
        yield Symptom("ok", f"backend {name}: {backend.model} at {backend.endpoint}; {held}")
        if network:
            yield await _reached(backend)


def _learned(options: argparse.Namespace, config: Config) -> Iterator[Symptom]:
    """List what the sessions used last left out of requests because providers do not support it."""
    if not _has_journal(options, config):
        return
    try:
        with closing(kept(options, config)) as storage:
            storage.open()
            stored = storage.sessions(limit=SESSIONS)
            unsupported = _unsupported(event for each in stored for event in storage.read(each.id))
    except ActorsError as error:
        yield Symptom("--", f"the journal cannot be read for what providers refused: {error}")
        return
    for binding, names in unsupported.items():
        yield Symptom("--", f"{binding} refused {', '.join(names)}; in actors.toml this saves the refusal:")
        yield from (Symptom("--", f"    {line}") for line in models_entry(binding, names).splitlines())


def _has_journal(options: argparse.Namespace, config: Config) -> bool:
    """Return True if there is a journal to read: to look for one must not make it."""
    settings = config.settings.journal
    if named(options) is not None or settings.url is not None:
        return True
    path = default(os.environ) if settings.path is None else Path(settings.path)
    return path is not None and path.exists()


def _unsupported(events: Iterable[Event]) -> dict[Binding, list[str]]:
    """Return the parameters that requests left out because they are not supported, by binding."""
    found: dict[Binding, list[str]] = {}
    for event in events:
        if isinstance(event, RequestSent):
            names = [omission.name for omission in event.omitted if not omission.is_value]
            if names:
                found[event.binding] = list(dict.fromkeys((*found.get(event.binding, ()), *names)))
    return found


def _environment(config: Config) -> Iterator[Symptom]:
    """Say which providers' keys the environment has. Which one is wanted nobody knows."""
    yield Symptom("--", "no actors.toml was named; --config FILE names one")
    variables = [provider.key_variable for provider in PROVIDERS.values() if provider.key_variable]
    there = [name for name in dict.fromkeys(variables) if config.environ.get(name)]
    if there:
        yield Symptom("ok", f"set: {', '.join(there)}")
    else:
        yield Symptom("--", "no provider's key is set; actors run --offline needs none")


async def _reached(backend: Backend) -> Symptom:
    """Say whether the backend's server answers at all. What it is sent is empty and without a key."""
    transport = HttpTransport()
    try:
        async with transport.send(backend.endpoint, (), Segments(), _TIMEOUTS) as response:
            return Symptom("ok", f"backend {backend.name}: {backend.endpoint} answers ({response.status})")
    except ActorsError as error:
        return Symptom("FAIL", f"backend {backend.name}: {error}", of_error(error))
    finally:
        await transport.close()
