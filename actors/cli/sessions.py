"""`actors sessions`: what is kept: listed, shown, exported, imported, forked, forgotten."""

import argparse
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime

import anyio
from msgspec import to_builtins

from actors.cli.exits import Exit
from actors.cli.journal import kept
from actors.cli.screen import complain, safe
from actors.config import load
from actors.core.event_json import event_json
from actors.core.exported import imported
from actors.core.feed import CompleteEvent, ErrorEvent, SessionEvent, StatusEvent, ToolCallEvent
from actors.core.publishing import Publisher
from actors.runtime import Runtime
from actors.storage.directory import StoredSession


def main(options: argparse.Namespace) -> Exit:
    """Do one thing with what is kept.

    Raises:
        SessionError: There is no such session, or an id is taken.
        TranscriptError: A file is no exported session.
        JournalError: The journal cannot be used.
    """
    if options.id is None and options.what not in ("list",):
        complain(
            f"`actors sessions {options.what}` takes {'a file' if options.what == 'import' else 'an id'}"
        )
        return Exit.USAGE
    return anyio.run(_done, options)


async def _done(options: argparse.Namespace) -> Exit:
    config = load(options.config, os.environ)
    async with Runtime(config, journal=kept(options, config)) as runtime:
        await _DEEDS[options.what](runtime, options)
    return Exit.OK


async def _list(runtime: Runtime, options: argparse.Namespace) -> None:
    found = await runtime.stored(tenant=options.tenant, limit=options.limit)
    if options.json:
        for each in found:
            print(json.dumps(to_builtins(each)))
        return
    for each in found:
        print(safe(_row(each)))
    if not found:
        complain("no session is kept here; `actors chat` keeps each conversation")


def _row(each: StoredSession) -> str:
    used = datetime.fromtimestamp(each.used).astimezone().strftime("%Y-%m-%d %H:%M")
    return f"{each.id:<24} {each.state:<8} {each.events:>6} events  {used}  {each.target}"


async def _show(runtime: Runtime, options: argparse.Namespace) -> None:
    publisher = Publisher()
    for event in imported(await runtime.export(options.id)):
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
    await runtime.export(options.id)  # so that a wrong id is told
    await runtime.forget(options.id)


_DEEDS: Mapping[str, Callable[[Runtime, argparse.Namespace], Awaitable[None]]] = {
    "list": _list,
    "show": _show,
    "export": _export,
    "import": _import,
    "fork": _fork,
    "forget": _forget,
}
