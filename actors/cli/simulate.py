"""`actors simulate`: run the strict server of a dialect, to test clients in any language.

The command prints the server's address as a line of JSON on standard output. For each request, a line on standard error
says that the request was accepted, or names the rule that it breaks. `actors.testing.standin` is the server's model.
"""

import argparse
import errno
import json
import signal
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.abc

from actors.cli.arguments import add_backend_option, add_dialect_option, count, port
from actors.cli.exits import Exit
from actors.cli.parser import Parser
from actors.cli.screen import print_notice
from actors.core.dialects.profiles import dialect
from actors.errors import ConfigError, TranscriptError
from actors.runtime.collector import TUNING
from actors.strict.faults import parse_fault
from actors.strict.script import parse_turns
from actors.strict.server import LoopbackServer
from actors.testing import Exchange, InjectedFault, ServerLimits, Turn, strict_server
from actors.testing.standin import model

RECORDINGS = 1000
"""Maximum number of exchanges, and of answers with reasoning, in memory. The server may run for days."""

_ACCEPTED = (200, 426)
"""Statuses that do not count as a refusal. After 426, clients continue without a websocket."""
_REFUSED = {
    401: "refused: wrong key",
    404: "refused: unknown path",
    405: "refused: the method is not POST",
    413: "refused: too large",
    426: "accepted: websockets are not supported",
}


EXAMPLES = (
    ("actors simulate --dialect openai --port 8080", "run a strict server for any client"),
    ("actors simulate --dialect anthropic --fault 0:429=1", "answer the first request with a rate limit"),
)


def add_arguments(parser: Parser) -> None:
    add_dialect_option(parser, "--dialect", required=True, help="the dialect of the server")
    parser.add_argument("--port", type=port, default=0, help="the port; 0, the default, selects a free port")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="the address to listen on; 127.0.0.1 by default",
    )
    parser.add_argument(
        "--script", metavar="FILE", help="a JSON file with the answers of the model, turn by turn"
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="N:FAULT",
        help="let request N (counted from 0) fail, such as 0:429=1, 2:cut=100 or 3:stall; may be repeated",
    )
    parser.add_argument(
        "--mode",
        choices=["strict", "hosted"],
        default="strict",
        help="strict (default) applies all known rules; hosted accepts every request that the provider's host accepts",
    )
    parser.add_argument(
        "--requests", type=count, metavar="N", help="stop after N requests; exit with 1 if any was refused"
    )
    add_backend_option(parser)


def run(options: argparse.Namespace) -> Exit:
    """Serve until a signal or the last request. The exit code is 1 if a request was refused.

    Raises:
        ConfigError: The server cannot listen on the address.
        TranscriptError: The script or a fault is invalid.
        UnknownTarget: The dialect does not exist.
    """
    name = dialect(options.dialect).name
    script, faults = _read_script(options.script) or model(name), _read_faults(options.fault)
    limits = ServerLimits(recordings=RECORDINGS)
    server = strict_server(name, script, mode=options.mode, faults=faults, limits=limits)
    with TUNING.tuning():
        return anyio.run(_serve_until_stopped, server, options, backend=options.backend)


def _read_script(path: str | None) -> list[Turn] | None:
    """Return the answers of the model from a script file, or None if no file is named."""
    if path is None:
        return None
    try:
        return parse_turns(Path(path).read_bytes())
    except ValueError as error:
        raise TranscriptError(f"{path} is not a script: {error}") from error


def _read_faults(options: Sequence[str]) -> dict[int, InjectedFault]:
    try:
        return dict(parse_fault(text) for text in options)
    except ValueError as error:
        raise TranscriptError(f"--fault: {error}") from error


async def _serve_until_stopped(server: LoopbackServer, options: argparse.Namespace) -> Exit:
    report = _RequestLog(options.requests)
    server.on_exchange = report.print_exchange
    async with anyio.create_task_group() as tasks:
        await tasks.start(report.watch_signals)
        await _start_listening(server, options.port, options.host, tasks)
        address = {"dialect": server.dialect, "base_url": server.base_url, "endpoint": server.endpoint}
        print(json.dumps(address | {"mode": options.mode}), flush=True)
        await report.done.wait()
        tasks.cancel_scope.cancel()
    return report.exit_code()


async def _start_listening(server: LoopbackServer, port: int, host: str, tasks: anyio.abc.TaskGroup) -> None:
    server.address = host
    try:
        await tasks.start(server.listen, port)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        if error.errno == errno.EADDRINUSE:
            message = f"Cannot listen on port {port}: {why}; use another --port, or 0 for a free one"
        else:
            message = (
                f"Cannot listen on {host}, port {port}: {why}; --host must be an address of this machine"
            )
        raise ConfigError(message) from error


class _RequestLog:
    """Prints one line for each answered request. The event `done` is set when the server should stop."""

    def __init__(self, limit: int | None) -> None:
        self.done = anyio.Event()
        self._limit = limit
        self._exchanges = self._refused = 0
        self._interrupted = False

    def print_exchange(self, exchange: Exchange) -> None:
        """Print a line for an answered request, and count it."""
        if self.done.is_set():  # the shutdown interrupted this exchange
            return
        self._exchanges += 1
        self._refused += exchange.fault is None and exchange.status not in _ACCEPTED
        print_notice(
            f"#{exchange.order} {exchange.method} {exchange.path} {exchange.status} {_verdict_text(exchange)}"
        )
        if self._exchanges == self._limit:
            self.done.set()

    async def watch_signals(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Set `done` at the first SIGINT or SIGTERM."""
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for number in signals:
                self._interrupted = number == signal.SIGINT
                self.done.set()
                return

    def exit_code(self) -> Exit:
        if self._interrupted:
            print_notice("interrupted")
            return Exit.INTERRUPTED
        return Exit.FAILED if self._refused else Exit.OK


def _verdict_text(exchange: Exchange) -> str:
    if exchange.verdict is not None:
        return f"{exchange.verdict.rule}: {exchange.verdict.message}"
    if exchange.fault is not None:
        return f"fault: {type(exchange.fault).__name__.lower()}"
    return "accepted" if exchange.status == 200 else _REFUSED.get(exchange.status, "refused")
