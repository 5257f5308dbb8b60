"""`actors sessions`: what is kept: listed, shown, exported, imported, forked, deleted."""

import argparse
import json
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from datetime import datetime, timedelta
from functools import partial

import anyio
from msgspec import to_builtins

from actors.cli.exits import Exit
from actors.cli.journal import kept
from actors.cli.logs import show_logs
from actors.cli.screen import complain, safe
from actors.config import load
from actors.core.session.exported import imported
from actors.core.session.publishing import Publisher
from actors.core.settings.durations import duration
from actors.core.stream_events.event_json import event_json
from actors.core.stream_events.events import (
    AskStartedEvent,
    CompactedEvent,
    CompleteEvent,
    ErrorEvent,
    MessageEvent,
    SessionEvent,
    SwitchAppliedEvent,
    ToolCallEvent,
    ToolResultsEvent,
    TurnPausedEvent,
)
from actors.errors import ActorsError, ConfigError, JournalError, SessionUnknown
from actors.journal.storage.deletion import RemainingData
from actors.journal.storage.directory import Page, StoredSession
from actors.runtime.runtime import Runtime

LISTED = 20
"""Sessions that are listed, unless it is said how many."""


def main(options: argparse.Namespace) -> Exit:
    """Do one thing with what is kept.

    Raises:
        SessionError: There is no such session, or an id is taken.
        TranscriptError: A file is no exported session.
        JournalError: The journal cannot be used.
    """
    if wrong := _misuse(options):
        complain(f"`actors sessions {options.what}` takes {wrong}")
        return Exit.USAGE
    if options.what != "delete":
        options.id = options.id[0] if options.id else None
    show_logs(debug=options.debug)
    return anyio.run(_done, options)


_TAKES: Mapping[str, frozenset[str]] = {
    "list": frozenset({"limit", "all", "after", "tenant", "state", "title", "metadata", "json"}),
    "show": frozenset({"id", "json"}),
    "export": frozenset({"id", "out"}),
    "import": frozenset({"id", "to"}),
    "fork": frozenset({"id", "at", "to"}),
    "delete": frozenset({"id", "tenant", "older_than", "export", "dry_run"}),
    "vacuum": frozenset(),
    "backup": frozenset({"id"}),
}


def _misuse(options: argparse.Namespace) -> str:
    """Return what the command takes, where it was given something else: what it would not heed, it must not get."""
    given = {
        name
        for name in frozenset[str]().union(*_TAKES.values())
        if getattr(options, name) not in (None, False, [])
    }
    if beyond := sorted(given - _TAKES[options.what]):
        return "no id" if beyond[0] == "id" else f"no --{beyond[0].replace('_', '-')}"
    if options.what != "delete" and len(options.id) > 1:
        return "one id"
    several = given & {"tenant", "older_than"}
    if options.what == "delete" and ("id" in given) == bool(several):
        return "ids, or --tenant and --older-than"
    if options.what == "delete" and options.tenant == "":
        return "the name of a tenant, and this one is empty"
    if "id" in _TAKES[options.what] and not given & {"id", "tenant", "older_than"}:
        return "a file" if options.what in ("import", "backup") else "an id"
    return ""


async def _done(options: argparse.Namespace) -> Exit:
    config = load(options.config, os.environ)
    async with Runtime(config, journal=kept(options, config, makes=options.what == "import")) as runtime:
        return await _DEEDS[options.what](runtime, options) or Exit.OK


async def _list(runtime: Runtime, options: argparse.Namespace) -> None:
    last, count, limit = "", 0, options.limit or LISTED
    page = None if options.after is None else (await _named(runtime, options)).page
    async with aclosing(_stored(runtime, options, page)) as sessions:
        async for each in sessions:
            if count == limit and not options.all:
                complain(f"there are more: --all lists them, --after {last} goes on behind these")
                break
            count, last = count + 1, each.id
            print(json.dumps(to_builtins(each)) if options.json else safe(_row(each)))
    if count or options.json:
        return
    if options.tenant is options.state is options.title is options.metadata is None:
        complain("no session is kept here; `actors chat` keeps each conversation")
    else:
        complain("no session that is kept here is one of these")


async def _stored(
    runtime: Runtime, options: argparse.Namespace, page: Page | None = None
) -> AsyncGenerator[StoredSession]:
    """Give the sessions that are kept and meet the conditions, page by page."""
    title, metadata = options.title or "", dict(options.metadata or ())
    listed = partial(
        runtime.journal.list, tenant=options.tenant, state=options.state, title=title, metadata=metadata
    )
    while found := await listed(after=page):
        for each in found:
            yield each
        page = found[-1].page


async def _named(runtime: Runtime, options: argparse.Namespace) -> StoredSession:
    async with aclosing(_stored(runtime, options)) as sessions:
        async for each in sessions:
            if each.id == options.after:
                return each
    raise SessionUnknown(f"No session {options.after[:80]!r} is kept here; --after takes one that is listed")


def _row(each: StoredSession) -> str:
    used = datetime.fromtimestamp(each.used).astimezone().strftime("%Y-%m-%d %H:%M")
    noted = (f"{key}={value}" for key, value in each.metadata.items())
    labels = "  ".join(word for word in (each.target, each.title, *noted) if word)
    return f"{each.id:<24} {each.state:<8} {each.events:>6} events  {used}  {labels}"


async def _show(runtime: Runtime, options: argparse.Namespace) -> None:
    publisher = Publisher()
    for event in imported(await runtime.journal.export(options.id))[0]:
        for told in publisher.published(event):
            if options.json:
                print(json.dumps(event_json(told)))
            elif words := _words(told):
                print(safe(words))


def _words(event: SessionEvent) -> str:
    """Return a line of a conversation as it is read; nothing for what is no part of it."""
    match event:
        case AskStartedEvent(message=message):
            return f"[{event.seq}] user: {message.text}"
        case MessageEvent(message=message) if message.text:
            return f"[{event.seq}] {message.origin.backend if message.origin else 'model'}: {message.text}"
        case ToolCallEvent():
            return f"[{event.seq}] calls {event.name} {json.dumps(event.arguments)}"
        case ToolResultsEvent(results=results):
            return f"[{event.seq}] results: {', '.join(f'{end.call_id} {end.outcome}' for end in results)}"
        case SwitchAppliedEvent(target=target):
            return f"[{event.seq}] switched to {target}"
        case TurnPausedEvent():
            return f"[{event.seq}] awaiting"
        case CompactedEvent(replaced=replaced):
            return f"[{event.seq}] compacted {replaced} messages"
        case CompleteEvent(result=result) | ErrorEvent(result=result) if result.status != "complete":
            return f"[{event.seq}] {result.status}: {result.why}"
        case _:
            return ""


async def _export(runtime: Runtime, options: argparse.Namespace) -> None:
    file = await runtime.journal.export(options.id)
    if options.out is None:
        sys.stdout.write(file.decode())
    else:
        await anyio.Path(options.out).write_bytes(file)


async def _import(runtime: Runtime, options: argparse.Namespace) -> None:
    file = sys.stdin.read() if options.id == "-" else await anyio.Path(options.id).read_bytes()
    print(await runtime.journal.import_session(file, id=options.to))


async def _fork(runtime: Runtime, options: argparse.Namespace) -> None:
    print(await runtime.journal.fork(options.id, options.at, id=options.to))


async def _delete(runtime: Runtime, options: argparse.Namespace) -> Exit:
    """Delete the sessions that are named or meet the conditions, each exported first if that is wanted."""
    journal, conditions = runtime.journal, {"tenant": options.tenant, "older_than": _age(options.older_than)}
    for name in options.id:
        await journal.get(name)  # a wrong id is an error
    found = (await journal.delete(*options.id, **conditions, dry_run=True)).sessions
    if options.export is not None:
        await _export_all(runtime, found, options.export)
    if options.dry_run:
        _print_all(found)
        return Exit.OK
    try:
        deletion = await journal.delete(*options.id, **conditions)
    except ActorsError:
        _print_all([name for name in found if await _is_gone(runtime, name)])
        raise
    _print_all(deletion.sessions)
    return _report(deletion.remaining)


async def _backup(runtime: Runtime, options: argparse.Namespace) -> None:
    await runtime.journal.backup(options.id)


async def _vacuum(runtime: Runtime, _options: argparse.Namespace) -> Exit:
    return _report(await runtime.journal.vacuum())


def _report(remaining: Iterable[RemainingData]) -> Exit:
    """Print where data of deleted sessions is left."""
    code = Exit.OK
    for each in remaining:
        complain(f"data of deleted sessions is left in {each}")
        code = Exit.FAILED
    return code


def _print_all(names: Iterable[str]) -> None:
    for name in names:
        print(name)


async def _export_all(runtime: Runtime, names: Iterable[str], folder: str) -> None:
    path = anyio.Path(folder)
    await path.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in names:
        await path.joinpath(f"{name}.jsonl").write_bytes(await runtime.journal.export(name))


async def _is_gone(runtime: Runtime, name: str) -> bool:
    try:
        await runtime.journal.get(name)
    except SessionUnknown:
        return True
    except JournalError:
        return False
    return False


def _age(given: str | None) -> datetime | timedelta | None:
    """Return a date, or an age.

    Raises:
        ConfigError: It is neither.
    """
    if given is None:
        return None
    with suppress(ValueError):
        return datetime.fromisoformat(given).astimezone()
    try:
        return timedelta(seconds=duration(given))
    except ValueError as error:
        raise ConfigError(f"--older-than {given!r} {error}, or a date, as 2026-01-31") from None


_DEEDS: Mapping[str, Callable[[Runtime, argparse.Namespace], Awaitable[Exit | None]]] = {
    "list": _list,
    "show": _show,
    "export": _export,
    "import": _import,
    "fork": _fork,
    "delete": _delete,
    "vacuum": _vacuum,
    "backup": _backup,
}
