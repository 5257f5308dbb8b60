"""`actors simulate`: the strict server of any dialect, for clients under test in any language.

One line of JSON on standard output says where it listens; one line on standard error, for each request, whether
it was accepted and which rule it breaks. What its model answers is `actors.cli.standin`.
"""

import argparse
import json
import signal

import anyio
import anyio.abc

from actors.cli.exits import Exit
from actors.cli.screen import complain
from actors.cli.standin import answer
from actors.core.profiles import dialect
from actors.errors import ConfigError
from actors.testing import Exchange, Limits, strict_server
from actors.testing.server import LoopbackServer

RECORDINGS = 1000
"""Exchanges that are kept, and reasoning that is known again: it may run for days."""

_REFUSED = {
    401: "refused: wrong key",
    404: "refused: no such path",
    405: "refused: the method is not POST",
    413: "refused: too large",
}


def main(options: argparse.Namespace) -> Exit:
    """Serve until a signal, or for as many requests as were asked for; 1 if any was refused.

    Raises:
        ConfigError: The port cannot be listened on.
        UnknownTarget: There is no such dialect.
    """
    name = dialect(options.dialect).name
    server = strict_server(name, answer, mode=options.mode, limits=Limits(recordings=RECORDINGS))
    return anyio.run(_served, server, options, backend=options.backend)


async def _served(server: LoopbackServer, options: argparse.Namespace) -> Exit:
    seen = _Seen(options.requests)
    server.on_exchange = seen.exchange
    async with anyio.create_task_group() as tasks:
        await tasks.start(seen.signals)
        await _listen(server, options.port, tasks)
        told = {"dialect": server.dialect, "base_url": server.base_url, "endpoint": server.endpoint}
        print(json.dumps(told | {"mode": options.mode}), flush=True)
        await seen.enough.wait()
        tasks.cancel_scope.cancel()
    return seen.code()


async def _listen(server: LoopbackServer, port: int, tasks: anyio.abc.TaskGroup) -> None:
    try:
        await tasks.start(server.listen, port)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        message = f"Cannot listen on port {port}: {why}; give another with --port, or 0 for a free one"
        raise ConfigError(message) from error


class _Seen:
    """Says what became of each request, and knows when to stop and with which exit code."""

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
        self._refused += exchange.status != 200
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
    return "accepted" if exchange.status == 200 else _REFUSED.get(exchange.status, "refused")
