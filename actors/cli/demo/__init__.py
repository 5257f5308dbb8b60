"""`actors demo`: hold one conversation across several strict servers, with events that break other libraries.

The servers run in this process, on the loopback interface. The scenes and the models' answers are fixed, so two runs
print the same. The exit code is 0 only if all counts at the end are as expected and no request was refused.
"""

import argparse
import textwrap
from collections.abc import Awaitable, Callable, Iterable, Mapping

import anyio

from actors.cli.arguments import add_backend_option
from actors.cli.demo import script
from actors.cli.demo.show import LEGEND, DemoPrinter, ExchangePrinter
from actors.cli.exits import Exit
from actors.cli.parser import Parser
from actors.cli.screen import screen
from actors.cli.shape import call_number
from actors.core.ledger import Ledger
from actors.core.log.call_events import ToolCallRecord
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.round_events import ToolCallEvent
from actors.core.values.identity import CallId, mint
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.strict.server import LoopbackServer
from actors.testing import serve
from actors.transcripts import from_wire

EXAMPLES = (
    ("actors demo", "continue a broken history with two providers"),
    ("actors demo --all", "continue it through every dialect"),
)
NO_BREAK = "\xa0"
"""A space at which no line is broken."""
_TIMEOUT = 60
"""Seconds after which a hanging demo is ended. A normal run takes about three."""

Counts = dict[str, int]

EXPECTED: Counts = {
    "dialects": 2,
    "requests": 17,
    "refused": 0,
    "tool calls": 13,
    "real results": 8,
    "synthetic results": 5,
    "late results": 1,
    "switches asked": 4,
    "switches deferred": 1,
    "switches applied": 4,
    "failovers": 1,
}
"""The expected counts of the conversation between two providers."""

EXPECTED_WITH_ALL: Counts = EXPECTED | {
    "dialects": 24,
    "requests": 63,
    "tool calls": 35,
    "real results": 30,
    "switches asked": 28,
    "switches applied": 28,
}
"""The expected counts of the conversation through every dialect."""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="continue through every dialect")
    add_backend_option(parser)


def run(options: argparse.Namespace) -> Exit:
    """Run the demo and print it. The exit code is 1 if a count is not as expected."""
    printer = DemoPrinter(screen(color=options.color))
    expected = EXPECTED_WITH_ALL if options.all else EXPECTED
    counts = anyio.run(_run_demo, printer, options.all, backend=options.backend)
    counts = {name: counts.get(name, 0) for name in expected}
    _print_summary(printer, counts, expected)
    return Exit.OK if counts == expected else Exit.FAILED


async def _run_demo(printer: DemoPrinter, all_dialects: bool) -> Counts:
    gates = script.Gates()
    servers = script.servers(gates, all_dialects=all_dialects)
    _print_introduction(printer, len(servers))
    _show_refusals(printer, servers)
    with anyio.fail_after(_TIMEOUT):
        async with serve(*servers.values()):
            exchange_printer = ExchangePrinter(servers, printer)
            async with Runtime(script.config(servers), seed=1, gc="tuned") as runtime:
                history, _ = from_wire(script.BROKEN, "openai")
                session = await runtime.open(
                    "gpt", tools=script.tools(gates), system="You plan trips.", messages=history
                )
                try:
                    play = _DemoConversation(session, gates, exchange_printer, history.report.notes)
                    await play.play_scenes()
                    if all_dialects:
                        await play.visit_all()
                finally:  # release the tool that cannot be stopped; leaving the runtime would wait for it
                    gates.excelsior.set()
                return _final_counts(exchange_printer, await session.ledger())


Act = Callable[[SessionEvent], Awaitable[None]]


class _DemoConversation:
    """The conversation of the demo, scene by scene."""

    def __init__(
        self, session: Session, gates: script.Gates, exchange_printer: ExchangePrinter, notes: Iterable[str]
    ) -> None:
        self._session = session
        self._notes = notes
        self._gates = gates
        self._exchanges = exchange_printer
        self._printer = exchange_printer.printer

    async def play_scenes(self) -> None:
        scene = self._printer.start_scene
        scene("The same history through actors; then two tools run at once (gpt)")
        for note in self._notes:
            self._printer.print_note("import", note)
        await self._ask("Weather in Oslo and in Rome?")
        scene("Malformed arguments are corrected; gpt restarts its call ids each time", is_compact=True)
        await self._ask("And in Bergen?")
        scene("A switch; five calls, one answers, and the turn is cancelled (claude)")
        await self._switch("claude")
        await self._ask("Rome then. Price five hotels there.", self._cancel_after_first_price)
        scene("The conversation continues: one real result, and four that give a reason")
        await self._ask("Go on with what you have.")
        await self._release_late_result()
        scene("A late result is reported; a switch during a turn waits for its end")
        await self._ask("Book that one.", self._switch_while_booking)
        scene("The other provider continues a turn that it has never seen (gpt)")
        await self._ask("What did you book?")
        scene("Round robin; then gpt fails twice, and claude continues the same ask", is_compact=True)
        await self._switch("by-turns")
        for words in ("What shall I wear?", "Do you agree?", "Is anything missing?"):
            await self._ask(words)
        await self._switch("either")
        with self._gates.failing():
            await self._ask("Goodbye!")

    async def visit_all(self) -> None:
        """Make one call in every other dialect, then return to the first two providers."""
        scene = self._printer.start_scene
        scene(
            f"Around the world: a call and its result in {len(script.STOPS)} more dialects",
            is_compact=True,
            name_width=17,
        )
        for stop in script.STOPS:
            await self._switch(stop.dialect)
            await self._ask(f"And in {stop.city}?")
        scene("Back again: gpt and claude continue their lanes")
        await self._switch("gpt")
        await self._ask("Where was it warmest?")
        await self._switch("claude")
        await self._ask("What do we have?")

    async def _ask(self, message: str, on_event: Act | None = None) -> None:
        self._printer.print_user_message(message)
        async with self._session.stream(message) as events:
            async for event in events:
                self._exchanges.print_event(event)
                if on_event is not None:
                    await on_event(event)

    async def _switch(self, target: str) -> None:
        self._exchanges.count("switches asked")
        outcome = await self._session.switch(target)
        if outcome.status == "queued":
            self._exchanges.count("switches deferred")
            self._printer.print_note("switch", f"requested during the turn: {target}; deferred to its end")
        else:
            self._exchanges.count("switches applied")

    async def _cancel_after_first_price(self, event: SessionEvent) -> None:
        """Cancel the turn when the last of its five price calls has started and the first has returned."""
        if _is_call(event, "price", script.UNSTOPPABLE):
            first = mint(_number_of_call(event) - len(script.HOTELS) + 1)
            await self._wait_for_call(first, lambda known: known.completion is not None)
            self._printer.print_note("you", "(cancel; one of five calls has returned)")
            await self._session.cancel()

    async def _switch_while_booking(self, event: SessionEvent) -> None:
        if _is_call(event, "book", "Astoria"):
            await self._switch("gpt")
            self._gates.booking.set()

    async def _release_late_result(self) -> None:
        """Let the tool that ignored its cancellation return, and wait until its result is recorded as late."""
        self._gates.excelsior.set()
        calls = [item.call_id for item in (await self._session.ledger()).interactions()]
        await self._wait_for_call(calls[-1], lambda known: known.late is not None)
        self._printer.print_note("tools", f"c{call_number(calls[-1])} returned after its call was closed")

    async def _wait_for_call(self, call_id: CallId, is_reached: Callable[[ToolCallRecord], bool]) -> None:
        known = None
        while known is None or not is_reached(known):  # poll, because the ledger sends no events
            await anyio.sleep(0.005)
            known = (await self._session.ledger()).get(call_id)


def _is_call(event: SessionEvent, tool: str, hotel: str) -> bool:
    return isinstance(event, ToolCallEvent) and event.name == tool and event.arguments == {"hotel": hotel}


def _number_of_call(event: SessionEvent) -> int:
    assert isinstance(event, ToolCallEvent)
    return int(call_number(event.call_id))


def _final_counts(exchange_printer: ExchangePrinter, ledger: Ledger) -> Counts:
    """Return the counts for the summary, from the servers' exchanges and the calls in the ledger."""
    exchanges = [exchange for server in exchange_printer.servers.values() for exchange in server.requests]
    known = ledger.interactions()
    return {
        "dialects": len({server.dialect for server in exchange_printer.servers.values() if server.received}),
        "requests": len(exchanges),
        "refused": sum(400 <= exchange.status < 500 for exchange in exchanges),
        "tool calls": len(known),
        "real results": sum(item.completion is not None for item in known),
        "synthetic results": sum(item.sealed is not None for item in known),
        "late results": sum(item.late is not None for item in known),
        **exchange_printer.counts,
    }


def _show_refusals(printer: DemoPrinter, servers: Mapping[str, LoopbackServer]) -> None:
    """Send the broken history to each server unchanged, and print the error with which the server refuses it."""
    printer.start_scene("A history that another program left broken, sent unchanged")
    for name, request in script.unrepaired_requests().items():
        refusal = servers[name].judge(request)
        why = "accepted" if refusal is None else f"{refusal.status} {refusal.message.partition('. ')[0]}"
        printer.print_note(name, why)


def _print_introduction(printer: DemoPrinter, servers: int) -> None:
    line = printer.screen.write_line
    others = f", and {servers - 2} more speak one dialect each" if servers > 2 else ""
    about = (
        "Strict servers run on this machine: gpt speaks OpenAI Chat Completions, claude Anthropic Messages"
        f"{others}. They refuse the same requests as the real ones."
    )
    line(printer.screen.style("One conversation, several providers, no refusal", "bold"))
    for paragraph in (about, LEGEND):
        for text in textwrap.wrap(paragraph, printer.screen.width):
            line(text)


def _print_summary(printer: DemoPrinter, counts: Counts, expected: Counts) -> None:
    line, styled = printer.screen.write_line, printer.screen.style
    line()
    text = ", ".join(
        f"{name.replace(' ', NO_BREAK)}{NO_BREAK}{count}"
        + ("" if count == expected[name] else f" (expected {expected[name]})")
        for name, count in counts.items()
    )
    for part in textwrap.wrap(text, printer.screen.width):
        line(part.replace(NO_BREAK, " "))
    if counts == expected:
        line(styled("No request was refused, and every call has one result.", "green"))
    else:
        line(styled("The counts are not as expected.", "red"))
