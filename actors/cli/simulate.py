"""`actors simulate`: the strict server of any dialect, for clients under test in any language.

One line of JSON on standard output says where it listens; one line on standard error, for each request, whether
it was accepted and which rule it breaks. What its model answers is `actors.testing.standin`.
"""

import argparse
import errno
import json
import signal
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.abc

from actors.cli.exits import Exit
from actors.cli.screen import complain
from actors.core.dialects.profiles import dialect
from actors.errors import ConfigError, TranscriptError
from actors.runtime.collector import TUNING
from actors.strict.faults import read_fault
from actors.strict.script_file import turns
from actors.strict.server import LoopbackServer
from actors.testing import Exchange, Fault, ServerLimits, Turn, strict_server
from actors.testing.standin import model

RECORDINGS = 1000
"""Exchanges that are kept, and reasoning that is known again: it may run for days."""

_WELL = (200, 426)
"""A websocket is not taken, and its client goes on without."""
_REFUSED = {
    401: "refused: wrong key",
    404: "refused: no such path",
    405: "refused: the method is not POST",
    413: "refused: too large",
    426: "accepted: no websocket here",
}


def main(options: argparse.Namespace) -> Exit:
    """Serve until a signal, or for as many requests as were asked for; 1 if any was refused.

    Raises:
        ConfigError: The address cannot be listened on.
        TranscriptError: The script or a fault is none.
        UnknownTarget: There is no such dialect.
    """
    name = dialect(options.dialect).name
    script, faults = _script(options.script) or model(name), _faults(options.fault)
    limits = ServerLimits(recordings=RECORDINGS)
    server = strict_server(name, script, mode=options.mode, faults=faults, limits=limits)
    with TUNING.tuned():
        return anyio.run(_served, server, options, backend=options.backend)


def _script(path: str | None) -> list[Turn] | None:
    """Return what the model is to say, None if nobody said."""
    if path is None:
        return None
    try:
        return turns(Path(path).read_bytes())
    except ValueError as error:
        raise TranscriptError(f"{path} is not a script: {error}") from error


def _faults(given: Sequence[str]) -> dict[int, Fault]:
    try:
        return dict(read_fault(text) for text in given)
    except ValueError as error:
        raise TranscriptError(f"--fault: {error}") from error


async def _served(server: LoopbackServer, options: argparse.Namespace) -> Exit:
    seen = _Seen(options.requests)
    server.on_exchange = seen.exchange
    async with anyio.create_task_group() as tasks:
        await tasks.start(seen.signals)
        await _listen(server, options.port, options.host, tasks)
        told = {"dialect": server.dialect, "base_url": server.base_url, "endpoint": server.endpoint}
        print(json.dumps(told | {"mode": options.mode}), flush=True)
        await seen.enough.wait()
        tasks.cancel_scope.cancel()
    return seen.code()


async def _listen(server: LoopbackServer, port: int, host: str, tasks: anyio.abc.TaskGroup) -> None:
    server.address = host
    try:
        await tasks.start(server.listen, port)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        if error.errno == errno.EADDRINUSE:
            message = f"Cannot listen on port {port}: {why}; give another with --port, or 0 for a free one"
        else:
            message = f"Cannot listen on {host}, port {port}: {why}; --host takes an address of this machine"
        raise ConfigError(message) from error


class _Seen:
    """Reports how each request was answered, and decides when to stop and with which exit code."""

    def __init__(self, most: int | None) -> None:
        self.enough = anyio.Event()
        self._most = most
        self._exchanges = self._refused = 0
        self._interrupted = False

    def exchange(self, exchange: Exchange) -> None:
        """Take up an exchange that is over."""
        if self.enough.is_set():  # what is broken off at the end was not asked for
            return
        self._exchanges += 1
        self._refused += exchange.fault is None and exchange.status not in _WELL
        complain(
            f"#{exchange.order} {exchange.method} {exchange.path} {exchange.status} {_verdict(exchange)}"
        )
        if self._exchanges == self._most:
            self.enough.set()

    async def signals(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Stop at the first signal."""
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for number in signals:
                self._interrupted = number == signal.SIGINT
                self.enough.set()
                return

    def code(self) -> Exit:
        """Return the exit code."""
        if self._interrupted:
            complain("interrupted")
            return Exit.INTERRUPTED
        return Exit.FAILED if self._refused else Exit.OK


def _verdict(exchange: Exchange) -> str:
    if exchange.verdict is not None:
        return f"{exchange.verdict.rule}: {exchange.verdict.message}"
    if exchange.fault is not None:
        return f"fault: {type(exchange.fault).__name__.lower()}"
    return "accepted" if exchange.status == 200 else _REFUSED.get(exchange.status, "refused")
