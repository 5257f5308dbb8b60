"""`actors sessions`: what is kept: listed, shown, exported, imported, forked, forgotten."""

import argparse
import json
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from datetime import datetime

import anyio
from msgspec import to_builtins

from actors.cli.exits import Exit
from actors.cli.journal import kept
from actors.cli.logs import show_logs
from actors.cli.screen import complain, safe
from actors.config import load
from actors.core.durations import duration
from actors.core.event_json import event_json
from actors.core.exported import imported
from actors.core.feed import CompleteEvent, ErrorEvent, SessionEvent, StatusEvent, ToolCallEvent
from actors.core.publishing import Publisher
from actors.errors import ConfigError, SessionElsewhere, SessionUnknown
from actors.runtime import Runtime
from actors.storage.clock import LEAP, SLACK
from actors.storage.directory import Page, StoredSession
from actors.wall import wall

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
    show_logs(debug=options.debug)
    return anyio.run(_done, options)


_TAKES: Mapping[str, frozenset[str]] = {
    "list": frozenset({"limit", "all", "after", "tenant", "json"}),
    "show": frozenset({"id", "json"}),
    "export": frozenset({"id", "out"}),
    "import": frozenset({"id", "to"}),
    "fork": frozenset({"id", "at", "to"}),
    "forget": frozenset({"id", "tenant", "older_than", "export"}),
}


def _misuse(options: argparse.Namespace) -> str:
    """Return what the command takes, where it was given something else: what it would not heed, it must not get."""
    given = {
        name
        for name in frozenset[str]().union(*_TAKES.values())
        if getattr(options, name) not in (None, False)
    }
    if beyond := sorted(given - _TAKES[options.what]):
        return "no id" if beyond[0] == "id" else f"no --{beyond[0].replace('_', '-')}"
    several = given & {"tenant", "older_than"}
    if options.what == "forget" and ("id" in given) == bool(several):
        return "an id, or --tenant and --older-than"
    if options.what == "forget" and options.tenant == "":
        return "the name of a tenant, and this one is empty"
    if "id" in _TAKES[options.what] and not given & {"id", "tenant", "older_than"}:
        return "a file" if options.what == "import" else "an id"
    return ""


async def _done(options: argparse.Namespace) -> Exit:
    config = load(options.config, os.environ)
    async with Runtime(config, journal=kept(options, config, makes=options.what == "import")) as runtime:
        await _DEEDS[options.what](runtime, options)
    return Exit.OK


async def _list(runtime: Runtime, options: argparse.Namespace) -> None:
    last, count, limit = "", 0, options.limit or LISTED
    page = None if options.after is None else (await _named(runtime, options)).page
    async with aclosing(_stored(runtime, options.tenant, page)) as sessions:
        async for each in sessions:
            if count == limit and not options.all:
                complain(f"there are more: --all lists them, --after {last} goes on behind these")
                break
            count, last = count + 1, each.id
            print(json.dumps(to_builtins(each)) if options.json else safe(_row(each)))
    if not count and not options.json:
        complain("no session is kept here; `actors chat` keeps each conversation")


async def _stored(
    runtime: Runtime, tenant: str | None, page: Page | None = None
) -> AsyncGenerator[StoredSession]:
    """Give the sessions that are kept, page by page."""
    while found := await runtime.stored(tenant=tenant, after=page):
        for each in found:
            yield each
        page = found[-1].page


async def _named(runtime: Runtime, options: argparse.Namespace) -> StoredSession:
    async with aclosing(_stored(runtime, options.tenant)) as sessions:
        async for each in sessions:
            if each.id == options.after:
                return each
    raise SessionUnknown(f"No session {options.after[:80]!r} is kept here; --after takes one that is listed")


def _row(each: StoredSession) -> str:
    used = datetime.fromtimestamp(each.used).astimezone().strftime("%Y-%m-%d %H:%M")
    return f"{each.id:<24} {each.state:<8} {each.events:>6} events  {used}  {each.target}"


async def _show(runtime: Runtime, options: argparse.Namespace) -> None:
    publisher = Publisher()
    for event in imported(await runtime.export(options.id))[0]:
        for told in publisher.published(event):
            if options.json:
                print(json.dumps(event_json(told)))
            elif words := _words(told):
                print(safe(words))


def _words(event: SessionEvent) -> str:
    """Return a line of a conversation as it is read; nothing for what is no part of it."""
    match event:
        case StatusEvent(status="submitted", message=message) if message is not None:
            return f"[{event.seq}] user: {message.text}"
        case StatusEvent(status="message", message=message) if message is not None and message.text:
            return f"[{event.seq}] {message.origin.backend if message.origin else 'model'}: {message.text}"
        case ToolCallEvent():
            return f"[{event.seq}] calls {event.name} {json.dumps(event.arguments)}"
        case StatusEvent(status="tool_results"):
            return f"[{event.seq}] results: {', '.join(f'{call} {how}' for call, how in event.results)}"
        case StatusEvent(status="switch_applied" | "awaiting" | "compacted" as status):
            return f"[{event.seq}] {status} {event.detail}".rstrip()
        case CompleteEvent(result=result) | ErrorEvent(result=result) if result.status != "complete":
            return f"[{event.seq}] {result.status}: {result.why}"
        case _:
            return ""


async def _export(runtime: Runtime, options: argparse.Namespace) -> None:
    file = await runtime.export(options.id)
    if options.out is None:
        sys.stdout.write(file.decode())
    else:
        await anyio.Path(options.out).write_bytes(file)


async def _import(runtime: Runtime, options: argparse.Namespace) -> None:
    file = sys.stdin.read() if options.id == "-" else await anyio.Path(options.id).read_bytes()
    print(await runtime.import_session(file, id=options.to))


async def _fork(runtime: Runtime, options: argparse.Namespace) -> None:
    print(await runtime.fork(options.id, options.at, id=options.to))


async def _forget(runtime: Runtime, options: argparse.Namespace) -> None:
    """Erase one session or many, each exported first if that is wanted; and see that no byte is left."""
    left: list[SessionElsewhere] = []
    if options.id is not None:
        await _forget_one(runtime, options.id, options.export)
    else:
        before = await _before(runtime, options)
        page = None if before is None else (-before, "~")
        async with aclosing(_stored(runtime, options.tenant, page)) as sessions:
            async for each in sessions:
                try:
                    await _forget_one(runtime, each.id, options.export)
                except SessionUnknown:
                    pass  # it was below another
                except SessionElsewhere as error:
                    left.append(error)
                else:
                    print(each.id)
    await runtime.purge()
    if left:
        raise left[0]


async def _forget_one(runtime: Runtime, name: str, folder: str | None) -> None:
    file = await runtime.export(name)  # so that a wrong id is told
    if folder is not None:
        path = anyio.Path(folder)
        await path.mkdir(parents=True, exist_ok=True, mode=0o700)
        await path.joinpath(f"{name}.jsonl").write_bytes(file)
    await runtime.forget(name)


async def _before(runtime: Runtime, options: argparse.Namespace) -> float | None:
    """Return when what is to be erased was used last, at the latest: told as a date, or as an age by the clock.

    Raises:
        ConfigError: It is neither; or the clock is far from what the journal has seen.
    """
    if (given := options.older_than) is None:
        return None
    with suppress(ValueError):
        return datetime.fromisoformat(given).astimezone().timestamp()
    try:
        age = duration(given)
    except ValueError as error:
        raise ConfigError(f"--older-than {given!r} {error}, or a date, as 2026-01-31") from None
    now, newest = wall(), await runtime.stored(limit=1)
    if newest and not newest[0].used - SLACK <= now <= newest[0].used + LEAP:
        raise ConfigError(
            f"The clock says {_date(now)}, and the last session was used {_date(newest[0].used)}: if the clock is "
            f"right, name a date instead of an age, as --older-than {_date(now - age)}"
        )
    return now - age


def _date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d}"


_DEEDS: Mapping[str, Callable[[Runtime, argparse.Namespace], Awaitable[None]]] = {
    "list": _list,
    "show": _show,
    "export": _export,
    "import": _import,
    "fork": _fork,
    "forget": _forget,
}
