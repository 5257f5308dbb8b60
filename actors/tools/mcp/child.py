"""The transport to a server that runs as a child process: JSON-RPC messages, a line each, over its standard streams.

The SDK's own transport collects a line of any length and drops standard error. This one stops at the limit of a line,
without keeping it, and keeps the last lines of standard error, for the error if the server dies.
"""

import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import anyio
import anyio.abc
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.client.stdio import get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, RequestId, jsonrpc_message_adapter

from actors import telemetry
from actors.errors import AnswerTooLarge, ToolsetDown
from actors.tools.mcp.disclosure import redact, secrets_of
from actors.tools.mcp.limits import McpLimits
from actors.tools.mcp.refusals import error_data
from actors.tools.mcp.streams import OpenRequests, watch
from actors.tools.toolsets.owner import reason

CHUNK = 64 * 1024  # bytes that are read at once
TAIL = 4096  # bytes of standard error that are kept
TAIL_LINES, TAIL_CHARS = 10, 800  # of them, in an error
FLUSH, GRACE, KILL = (
    0.5,
    2.0,
    2.0,
)  # seconds for what was said to be sent, for the end of the server, for its death
POLL = 0.01  # seconds between two looks at whether it has ended
_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")')
_LAST_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")\s*(?:,\s*"jsonrpc"\s*:\s*"2.0"\s*)?\}\s*$')

Item = SessionMessage | Exception


class ChildServer:
    """A server as a child process. `open` starts it, and ends it when its block is left.

    Args:
        command, args, env, cwd: How it is started.
        log: A file that its standard error is appended to.
        limits: Of one line.
        name: Names the server in the log.
    """

    def __init__(
        self,
        command: str,
        args: tuple[str, ...],
        env: Mapping[str, str],
        cwd: str | Path | None,
        log: str | Path | None,
        limits: McpLimits,
        name: str,
    ) -> None:
        self._command, self._args, self._env, self._cwd, self._log = command, args, env, cwd, log
        self._limits, self._name = limits, name

    @asynccontextmanager
    async def open(self, ended: Callable[[], None]) -> AsyncIterator[TransportStreams]:
        """Start the server, and give the streams to it.

        Raises:
            OSError: It cannot be started.
            ToolsetDown: It ended by itself. The message has its exit code and the end of its standard error.
        """
        process = await self._start()
        tail, requests = Tail(), OpenRequests()
        code: int | None = None
        try:
            async with _talking(process, self._limits, requests, tail, self._log, self._name) as streams:
                try:
                    yield watch(streams, requests, ended, self._name)
                except Exception:
                    code = await _exit_code(process, tail)
                    raise
        except Exception as error:
            if code is None:
                raise
            raise ToolsetDown(f"{reason(error)}; {self._end(code, tail)}") from error

    async def _start(self) -> Process:
        command = self._command
        if sys.platform == "win32":
            from mcp.os.win32.utilities import get_windows_executable_command

            command = get_windows_executable_command(command)
        return await anyio.open_process(
            [command, *self._args],
            stderr=subprocess.PIPE,
            env=get_default_environment() | dict(self._env),
            cwd=self._cwd,
            start_new_session=True,
        )

    def _end(self, code: int, tail: "Tail") -> str:
        said = tail.lines(secrets_of(self._args, self._env))
        last = f", and its standard error ends with: {said}" if said else ", and its standard error is empty"
        return f"the program ended with exit code {code}{last}"


@asynccontextmanager
async def _talking(
    process: Process,
    limits: McpLimits,
    requests: OpenRequests,
    tail: "Tail",
    log: str | Path | None,
    name: str,
) -> AsyncIterator[TransportStreams]:
    """Give the streams to a process, and stop it in the end, also if the caller is cancelled."""
    hear, heard = anyio.create_memory_object_stream[Item](0)
    say, said = anyio.create_memory_object_stream[SessionMessage](0)
    flushed = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, process, Lines(limits, requests, name), hear)
        tasks.start_soon(_write, process, said, hear, flushed)
        tasks.start_soon(_read_errors, process, tail, log)
        try:
            yield heard, say
        finally:
            with anyio.CancelScope(shield=True):
                heard.close()
                say.close()
                with anyio.move_on_after(FLUSH):
                    await flushed.wait()
                await _stop(process)
                for stream in (hear, said):
                    stream.close()
            tasks.cancel_scope.cancel()


async def _read(process: Process, lines: "Lines", hear: MemoryObjectSendStream[Item]) -> None:
    """Pass on what the server says, line by line; after that, let it go on without anybody listening."""
    assert process.stdout is not None
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        async with hear:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
                while True:
                    for item in lines.feed(await process.stdout.receive(CHUNK)):
                        await hear.send(item)
        await _drain(process.stdout)


async def _write(
    process: Process,
    said: MemoryObjectReceiveStream[SessionMessage],
    hear: MemoryObjectSendStream[Item],
    flushed: anyio.Event,
) -> None:
    """Send what the session says; if that fails, end what it hears, so that no request waits for ever."""
    assert process.stdin is not None
    try:
        async with said:
            async for item in said:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(f"{text}\n".encode())
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        hear.close()
    finally:
        flushed.set()


async def _read_errors(process: Process, tail: "Tail", log: str | Path | None) -> None:
    """Keep the end of standard error, and append all of it to the log."""
    assert process.stderr is not None
    file: BinaryIO | None = None if log is None else open(log, "ab", buffering=0)  # noqa: ASYNC230, SIM115  local
    try:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError):
            while True:
                said = await process.stderr.receive(CHUNK)
                tail.add(said)
                if file is not None:
                    file.write(said)
    finally:
        tail.ended.set()
        if file is not None:
            file.close()


class Tail:
    """The last bytes of a stream of any length."""

    def __init__(self) -> None:
        self._said = b""
        self.ended = anyio.Event()

    def add(self, said: bytes) -> None:
        self._said = (self._said + said)[-TAIL:]

    def lines(self, secrets: tuple[str, ...]) -> str:
        """Return the last lines in one, without these values; "" if there are none."""
        text = redact(self._said.decode("utf-8", "replace"), secrets)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return " | ".join(lines[-TAIL_LINES:])[-TAIL_CHARS:]


class Lines:
    """Messages from the bytes that a server writes, cut anywhere. No more than one line of the limit is kept."""

    def __init__(self, limits: McpLimits, requests: OpenRequests, name: str) -> None:
        self._limits, self._requests, self._name = limits, requests, name
        self._line = bytearray()
        self._dropped = 0  # bytes of a line that is too long, of which only both ends are kept
        self._start = b""

    def feed(self, said: bytes) -> Iterator[Item]:
        """Yield the messages that are complete now."""
        *ends, rest = said.split(b"\n")
        for end in ends:
            self._add(end)
            yield from self._message()
        self._add(rest)

    def _add(self, said: bytes) -> None:
        self._line += said
        size = len(self._line)
        if size > self._limits.max_bytes or self._dropped:
            if not self._dropped:
                self._start = bytes(self._line[:1024])
            self._dropped += max(size - 1024, 0)
            del self._line[:-1024]

    def _message(self) -> Iterator[Item]:
        line, size = bytes(self._line), self._dropped + len(self._line)
        start, is_dropped = self._start or line[:1024], self._dropped > 0
        self._line.clear()
        self._dropped, self._start = 0, b""
        problem = self._limits.too_long(size) if is_dropped else self._limits.excess(line)
        if problem is not None:
            telemetry.answer_refused(self._name, problem)
            yield from self._refusals(start, line[-1024:], problem)
        elif line.strip():
            yield self._parse(line)

    def _parse(self, line: bytes) -> Item:
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError as error:
            request = _request_id(line[:1024], line[-1024:]) if line.lstrip().startswith(b"{") else None
            if request not in self._requests.ids:  # words, and no answer
                return error
            said = ErrorData(code=PARSE_ERROR, message="The server sent an answer that is not JSON-RPC")
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=said))

    def _refusals(self, start: bytes, end: bytes, problem: AnswerTooLarge) -> Iterator[Item]:
        """Yield the error that takes the place of an answer; of all that are awaited, if it is not certain which."""
        request = _request_id(start, end)
        waiting: tuple[RequestId, ...] = self._requests.ids
        for each in (request,) if request in waiting else waiting:
            yield SessionMessage(JSONRPCError(jsonrpc="2.0", id=each, error=error_data(problem)))


def _request_id(start: bytes, end: bytes) -> RequestId | None:
    """Return the id of the request that an answer is for, as far as both ends of its line show it."""
    found = _ID.search(start.partition(b'"result"')[0]) or _LAST_ID.search(end)
    request: RequestId | None = None if found is None else json.loads(found[1])
    return request


async def _exit_code(process: Process, tail: Tail) -> int | None:
    """Return the exit code of a process that has ended by itself, with the end of its standard error read."""
    if not await _has_ended(process, FLUSH):
        return None
    with anyio.move_on_after(FLUSH):  # a child of the process may hold the pipe
        await tail.ended.wait()
    return process.returncode


async def _stop(process: Process) -> None:
    """Stop a process, and all that it started: first by the end of its input, then by signals."""
    await _close(process.stdin)
    if not await _has_ended(process, GRACE):
        if sys.platform == "win32":
            process.kill()
        else:
            await terminate_posix_process_tree(process, KILL)
        await _has_ended(process, KILL)
    for stream in (process.stdout, process.stderr):
        await _close(stream)
    # asyncio keeps its transport open while a descendant holds a pipe, and warns of it later
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:
        with suppress(PermissionError):
            transport.close()


async def _has_ended(process: Process, seconds: float) -> bool:
    """Return whether a process ends within so many seconds. `Process.wait` also waits for pipes that others hold."""
    with anyio.move_on_after(seconds):
        while process.returncode is None:  # noqa: ASYNC110  which of the backends sets without an event
            await anyio.sleep(POLL)
    return process.returncode is not None


async def _close(stream: anyio.abc.AsyncResource | None) -> None:
    if stream is not None:
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await stream.aclose()


async def _drain(stream: ByteReceiveStream) -> None:
    """Read and drop the rest, so that a server that writes can come to its end. It ends when the stream is closed."""
    with suppress(anyio.EndOfStream):
        while True:
            await stream.receive(CHUNK)
