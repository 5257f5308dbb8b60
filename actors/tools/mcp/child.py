"""Connect to an MCP server in a child process. Each line of its standard streams is one JSON-RPC message.

`actors.mcp.stdio` uses this transport. The SDK's own transport buffers lines of any length and drops standard error.
This transport rejects lines above the limit without buffering them, and keeps the last lines of standard error for
error messages. Secrets are removed from standard error and from URLs before they become part of an error message.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import anyio
import anyio.abc
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.client.stdio import get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, RequestId, jsonrpc_message_adapter

from actors.errors import AnswerTooLarge, ToolsetDown
from actors.telemetry import logger
from actors.tools.mcp.answers import encode_error
from actors.tools.mcp.options import McpLimits
from actors.tools.mcp.streams import OpenRequests, wrap_streams
from actors.tools.toolset_owner import failure_reason

CHUNK = 64 * 1024  # bytes per read
TAIL = 4096  # bytes of standard error to keep
TAIL_LINES, TAIL_CHARS = 10, 800  # maximum lines and characters of standard error in an error message
# Seconds to wait: until the input is flushed, until the process exits, and after each signal.
FLUSH, GRACE, KILL = 0.5, 2.0, 2.0
POLL = 0.01  # seconds between two checks for the exit
# matches the id of a JSON-RPC message, at the start or the end of a long line
_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")')
_LAST_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")\s*(?:,\s*"jsonrpc"\s*:\s*"2.0"\s*)?\}\s*$')
Item = SessionMessage | Exception
_NAMES_A_SECRET = re.compile(r"(?i)(token|key|secret|passw|auth|credential|bearer|cookie)")
_MIN_SECRET = (
    4  # minimum length of a secret in characters; hiding shorter values would make the text unreadable
)
HIDDEN = "***"


class ChildServer:
    """An MCP server in a child process. The context manager `open` starts the process, and stops it on exit.

    Args:
        command, args, env, cwd: As in `actors.mcp.stdio`.
        log: A file to which standard error is appended.
        limits: Size limits for one line.
        name: The server's name in the log.
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
    async def open(self, on_end: Callable[[], None]) -> AsyncGenerator[TransportStreams]:
        """Start the server, and return its streams. `on_end` is called when the server ends the connection.

        Raises:
            OSError: The process cannot be started.
            ToolsetDown: The process exited. The message contains the exit code and the end of standard error.
        """
        process = await self._start()
        tail, requests = StderrTail(), OpenRequests()
        code: int | None = None
        try:
            async with _run_streams(process, self._limits, requests, tail, self._log, self._name) as streams:
                try:
                    yield wrap_streams(streams, requests, on_end, self._name)
                except Exception:
                    code = await _exit_code(process, tail)
                    raise
        except Exception as error:
            if code is None:
                raise
            raise ToolsetDown(f"{failure_reason(error)}; {self._describe_exit(code, tail)}") from error

    async def _start(self) -> Process:
        """Start the process as the leader of a new process group, so that its descendants can be stopped too."""
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

    def _describe_exit(self, code: int, tail: "StderrTail") -> str:
        """Return a description of a process's exit, with its code and the end of its standard error."""
        last = tail.last_lines(find_secrets(self._args, self._env))
        suffix = (
            f", and its standard error ends with: {last}" if last else ", and its standard error is empty"
        )
        return f"the program ended with exit code {code}{suffix}"


@asynccontextmanager
async def _run_streams(
    process: Process,
    limits: McpLimits,
    requests: OpenRequests,
    tail: "StderrTail",
    log: str | Path | None,
    name: str,
) -> AsyncGenerator[TransportStreams]:
    """Connect the SDK's message streams to a process. On exit, stop the process, even if the caller is cancelled."""
    incoming_send, incoming = anyio.create_memory_object_stream[Item](0)
    outgoing_send, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    flushed = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_forward_messages, process, LineParser(limits, requests, name), incoming_send)
        tasks.start_soon(_send_messages, process, outgoing, incoming_send, flushed)
        tasks.start_soon(_read_stderr, process, tail, log)
        try:
            yield incoming, outgoing_send
        finally:
            with anyio.CancelScope(shield=True):
                incoming.close()
                outgoing_send.close()
                with anyio.move_on_after(FLUSH):
                    await flushed.wait()
                await _stop_process(process)
                for stream in (incoming_send, outgoing):
                    stream.close()
            tasks.cancel_scope.cancel()


async def _forward_messages(
    process: Process, lines: "LineParser", incoming_send: MemoryObjectSendStream[Item]
) -> None:
    """Forward the messages of a server to the SDK's session.

    When the session no longer listens, the server's remaining output is read and dropped, so that the server can exit.
    """
    assert process.stdout is not None
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        async with incoming_send:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
                while True:
                    for item in lines.feed(await process.stdout.receive(CHUNK)):
                        await incoming_send.send(item)
        await _drain(process.stdout)


async def _send_messages(
    process: Process,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    incoming_send: MemoryObjectSendStream[Item],
    flushed: anyio.Event,
) -> None:
    """Send the messages of the SDK's session to a server.

    If the server no longer reads its input, close the incoming stream, so that pending requests fail.
    """
    assert process.stdin is not None
    try:
        async with outgoing:
            async for item in outgoing:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(f"{text}\n".encode())
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        incoming_send.close()
    finally:
        flushed.set()


async def _read_stderr(process: Process, tail: "StderrTail", log: str | Path | None) -> None:
    """Read standard error until the stream ends. Keep the last bytes in `tail`, and append all bytes to the log."""
    assert process.stderr is not None
    file: BinaryIO | None = None if log is None else open(log, "ab", buffering=0)  # noqa: ASYNC230, SIM115  short writes to a local file
    try:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError):
            while True:
                data = await process.stderr.receive(CHUNK)
                tail.add(data)
                if file is not None:
                    file.write(data)
    finally:
        tail.ended.set()
        if file is not None:
            file.close()


class StderrTail:
    """The last `TAIL` bytes of a process's standard error. `ended` is set when the stream has ended."""

    def __init__(self) -> None:
        self._data = b""
        self.ended: anyio.Event = anyio.Event()

    def add(self, data: bytes) -> None:
        """Append bytes, and drop all but the last `TAIL`."""
        self._data = (self._data + data)[-TAIL:]

    def last_lines(self, secrets: tuple[str, ...]) -> str:
        """Return the last lines, joined with `|` and without the secrets; "" if there are none."""
        text = redact(self._data.decode("utf-8", "replace"), secrets)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return " | ".join(lines[-TAIL_LINES:])[-TAIL_CHARS:]


class LineParser:
    """A parser of the lines that a server writes. The parser buffers at most one line of the maximum length."""

    def __init__(self, limits: McpLimits, requests: OpenRequests, name: str) -> None:
        self._limits, self._requests, self._name = limits, requests, name
        self._line = bytearray()
        self._dropped = 0  # bytes dropped from the middle of the current line
        self._start = b""

    def feed(self, data: bytes) -> Iterator[Item]:
        """Add received bytes, and yield the messages that are complete."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._add_to_line(end)
            yield from self._end_line()
        self._add_to_line(rest)

    def _add_to_line(self, data: bytes) -> None:
        """Add bytes to the current line. If the line is too long, keep only its start and end."""
        self._line += data
        size = len(self._line)
        if size > self._limits.max_bytes or self._dropped:
            if not self._dropped:
                self._start = bytes(self._line[:1024])
            self._dropped += max(size - 1024, 0)
            del self._line[:-1024]

    def _end_line(self) -> Iterator[Item]:
        """End the current line, and yield its message. If the line exceeds a limit, yield error answers instead."""
        line, size = bytes(self._line), self._dropped + len(self._line)
        start, is_dropped = self._start or line[:1024], self._dropped > 0
        self._line.clear()
        self._dropped, self._start = 0, b""
        problem = self._limits.too_long_error(size) if is_dropped else self._limits.excess_error(line)
        if problem is not None:
            logger.answer_refused(self._name, problem)
            yield from self._error_answers(start, line[-1024:], problem)
        elif line.strip():
            yield self._parse(line)

    def _parse(self, line: bytes) -> Item:
        """Return the message of a line. If the line is an invalid answer to a request, return an error answer."""
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError as error:
            request = _request_id(line[:1024], line[-1024:]) if line.lstrip().startswith(b"{") else None
            if request not in self._requests.ids:  # the line does not answer a request
                return error
            error_ = ErrorData(code=PARSE_ERROR, message="The server sent an answer that is not JSON-RPC")
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=error_))

    def _error_answers(self, start: bytes, end: bytes, problem: AnswerTooLarge) -> Iterator[Item]:
        """Yield the error answer that replaces an oversized answer.

        If it is unknown which request the line answers, yield an error answer for each pending request.
        """
        request = _request_id(start, end)
        waiting: tuple[RequestId, ...] = self._requests.ids
        for each in (request,) if request in waiting else waiting:
            yield SessionMessage(JSONRPCError(jsonrpc="2.0", id=each, error=encode_error(problem)))


def _request_id(start: bytes, end: bytes) -> RequestId | None:
    """Return the id of the request that a line answers, found in the start or the end of the line."""
    found = _ID.search(start.partition(b'"result"')[0]) or _LAST_ID.search(end)
    request: RequestId | None = None if found is None else json.loads(found[1])
    return request


async def _exit_code(process: Process, tail: StderrTail) -> int | None:
    """Return the exit code of a process, or None if it does not exit within `FLUSH` seconds.

    If the process has ended, also wait for the end of its standard error, for the same time.
    """
    if not await _has_ended(process, FLUSH):
        return None
    with anyio.move_on_after(FLUSH):  # a child of the process may keep the pipe open for ever
        await tail.ended.wait()
    return process.returncode


async def _stop_process(process: Process) -> None:
    """Stop a process and its descendants: close its input, and send signals if it does not exit."""
    await _close_stream(process.stdin)
    if not await _has_ended(process, GRACE):
        if sys.platform == "win32":
            process.kill()
        else:
            await terminate_posix_process_tree(process, KILL)
        await _has_ended(process, KILL)
    for stream in (process.stdout, process.stderr):
        await _close_stream(stream)
    # asyncio keeps its transport open while a descendant has a pipe open, and would warn about that later
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:
        with suppress(PermissionError):
            transport.close()


async def _has_ended(process: Process, seconds: float) -> bool:
    """Return True if a process exits within `seconds`.

    `Process.wait` would also wait until the descendants of the process close its pipes.
    """
    with anyio.move_on_after(seconds):
        while process.returncode is None:  # noqa: ASYNC110  anyio's backends offer no event for the exit alone
            await anyio.sleep(POLL)
    return process.returncode is not None


async def _close_stream(stream: anyio.abc.AsyncResource | None) -> None:
    """Close a stream that may be None, and ignore connection errors."""
    if stream is not None:
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await stream.aclose()


async def _drain(stream: ByteReceiveStream) -> None:
    """Read and drop the remaining data of a stream, so that a server that is writing can exit.

    Return when the stream is closed.
    """
    with suppress(anyio.EndOfStream):
        while True:
            await stream.receive(CHUNK)


def public_url(url: str) -> str:
    """Return a URL without its user, password and query. Path segments that may be secrets are hidden."""
    parts = urlsplit(url)
    path = "/".join(HIDDEN if may_be_secret(segment) else segment for segment in parts.path.split("/"))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}"


def may_be_secret(text: str) -> bool:
    """Return True if a string may be a token, a key or a UUID: 8 or more characters, with letters and digits."""
    return len(text) >= 8 and any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def find_secrets(args: Iterable[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values to hide in errors, longest first.

    They are the values of all environment variables, and the arguments that may be secrets.
    """
    found = set(env.values())
    is_named = False
    for arg in args:
        option, sign, value = arg.partition("=")
        if is_named or (may_be_secret(arg) and not os.path.exists(arg)):
            found.add(arg)
        if sign and _NAMES_A_SECRET.search(option):
            found.add(value)
        is_named = not sign and arg.startswith("-") and _NAMES_A_SECRET.search(arg) is not None
    return tuple(sorted((each for each in found if len(each) >= _MIN_SECRET), key=len, reverse=True))


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return a string with each of the secrets replaced by `***`."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text
