"""`actors demo`: one conversation carried through strict providers over HTTP, with everything that breaks others.

The servers run in this process on the loopback interface. The scenes are fixed, and so is what the models say, so
two runs print the same. At the end the counts are compared with what they must be: the exit code is 0
only if no request was refused and every count is right.
"""

import argparse
import textwrap
from collections.abc import Awaitable, Callable, Mapping

import anyio

from actors.cli import stage
from actors.cli.exits import Exit
from actors.cli.screen import screen
from actors.cli.shape import number
from actors.cli.show import LEGEND, JsonLines, Printed, Watch
from actors.cli.world import STOPS
from actors.core.ledger import Ledger
from actors.core.log.events import Interaction
from actors.core.stream_events.events import SessionEvent, ToolCallEvent
from actors.core.stream_events.results import Deferred
from actors.core.values.identity import CallId, mint
from actors.core.values.intake import Intake
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.strict.server import LoopbackServer
from actors.testing import serve
from actors.transcripts import from_wire

SECONDS = 60
"""The demo takes about three; this ends one that hangs."""

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
"""What must come out of the conversation between two providers."""

AROUND: Counts = EXPECTED | {
    "dialects": 24,
    "requests": 63,
    "tool calls": 35,
    "real results": 30,
    "switches asked": 28,
    "switches applied": 28,
}
"""And of the one that goes on through every dialect."""


def main(options: argparse.Namespace) -> Exit:
    """Run the demo and return 0 if everything went as it must."""
    out = screen(color=options.color)
    show = JsonLines(out) if options.json else Printed(out)
    expected = AROUND if options.all else EXPECTED
    counts = anyio.run(_perform, show, options.all, backend=options.backend)
    counts = {name: counts.get(name, 0) for name in expected}
    if isinstance(show, JsonLines):
        show.put(type="counts", **counts)
    else:
        _table(show, counts, expected)
    return Exit.OK if counts == expected else Exit.FAILED


async def _perform(show: Printed | JsonLines, everywhere: bool) -> Counts:
    gates = stage.Gates()
    servers = stage.servers(gates, everywhere=everywhere)
    if isinstance(show, Printed):
        _opening(show, len(servers))
    _as_it_is(show, servers)
    with anyio.fail_after(SECONDS):
        async with serve(*servers.values()):
            watch = Watch(servers, show)
            async with Runtime(stage.config(servers), seed=1, gc="tuned") as runtime:
                history, _ = from_wire(stage.BROKEN, "openai")
                session = await runtime.open(
                    "gpt", tools=stage.tools(gates), system="You plan trips.", messages=history
                )
                try:
                    play = _Play(session, gates, watch, history.report)
                    await play.perform()
                    if everywhere:
                        await play.go_around()
                finally:  # or what went wrong would wait for the tool that cannot be stopped
                    gates.excelsior.set()
                return _counts(watch, await session.ledger())


Act = Callable[[SessionEvent], Awaitable[None]]


class _Play:
    """The scenes, in order."""

    def __init__(self, session: Session, gates: stage.Gates, watch: Watch, taken_in: Intake) -> None:
        self._session = session
        self._taken_in = taken_in
        self._gates = gates
        self._watch = watch
        self._show = watch.show

    async def perform(self) -> None:
        scene = self._show.scene
        scene("The same history through actors; then two tools run at once (gpt)")
        for done in self._taken_in.notes:
            self._show.note("read", done)
        await self._ask("Weather in Oslo and in Rome?")
        scene("Malformed arguments are corrected; gpt's call ids begin at 0 each time", compact=True)
        await self._ask("And in Bergen?")
        scene("A switch; five calls, one answers, and the turn is cancelled (claude)")
        await self._switch("claude")
        await self._ask("Rome then. Price five hotels there.", self._cancel_once_priced)
        scene("The conversation goes on: one real result, four that say what is known")
        await self._ask("Go on with what you have.")
        await self._release_the_late_one()
        scene("A late result is told; a switch asked for in mid-turn waits for its end")
        await self._ask("Book that one.", self._switch_while_booking)
        scene("The other provider takes over what it has never seen (gpt)")
        await self._ask("What did you book?")
        scene("By turns; then gpt fails twice, and claude takes up the same ask", compact=True)
        await self._switch("by-turns")
        for words in ("What shall I wear?", "Do you agree?", "Is anything missing?"):
            await self._ask(words)
        await self._switch("either")
        with self._gates.failing():
            await self._ask("Goodbye!")

    async def go_around(self) -> None:
        """Make one call in every other dialect, then go on where the conversation began."""
        scene = self._show.scene
        scene(
            f"Around the world: a call and its result in {len(STOPS)} more dialects", compact=True, names=17
        )
        for stop in STOPS:
            await self._switch(stop.dialect)
            await self._ask(f"And in {stop.city}?")
        scene("Home again: gpt and claude go on where they left off")
        await self._switch("gpt")
        await self._ask("Where was it warmest?")
        await self._switch("claude")
        await self._ask("What do we have?")

    async def _ask(self, words: str, act: Act | None = None) -> None:
        self._show.said(words)
        async with self._session.stream(words) as events:
            async for event in events:
                self._watch.event(event)
                if act is not None:
                    await act(event)

    async def _switch(self, target: str) -> None:
        self._watch.count("switches asked")
        outcome = await self._session.switch(target)
        if isinstance(outcome, Deferred):
            self._watch.count("switches deferred")
            self._show.note("switch", f"asked for in mid-turn: {target}; deferred to the end of the turn")
        else:
            self._watch.count("switches applied")

    async def _cancel_once_priced(self, event: SessionEvent) -> None:
        """Cancel when the last of the five calls is under way and the first has answered."""
        if _calls(event, "price", stage.UNSTOPPABLE):
            first = mint(_number(event) - len(stage.HOTELS) + 1)
            await self._until(first, lambda known: known.completion is not None)
            self._show.note("you", "(cancel, with one of five answered)")
            await self._session.cancel()

    async def _switch_while_booking(self, event: SessionEvent) -> None:
        if _calls(event, "book", "Astoria"):
            await self._switch("gpt")
            self._gates.booking.set()

    async def _release_the_late_one(self) -> None:
        """Let the tool that could not be stopped return, long after its call was closed."""
        self._gates.excelsior.set()
        calls = [item.call_id for item in (await self._session.ledger()).interactions()]
        await self._until(calls[-1], lambda known: known.late is not None)
        self._show.note("tools", f"c{number(calls[-1])} returned after all, too late for its place")

    async def _until(self, call_id: CallId, holds: Callable[[Interaction], bool]) -> None:
        known = None
        while known is None or not holds(known):  # a ledger announces nothing; ask again
            await anyio.sleep(0.005)
            known = (await self._session.ledger()).get(call_id)


def _calls(event: SessionEvent, tool: str, hotel: str) -> bool:
    return isinstance(event, ToolCallEvent) and event.name == tool and event.arguments == {"hotel": hotel}


def _number(event: SessionEvent) -> int:
    assert isinstance(event, ToolCallEvent)
    return int(number(event.call_id))


def _counts(watch: Watch, ledger: Ledger) -> Counts:
    """Count from what the servers received and what the ledger holds."""
    exchanges = [exchange for server in watch.servers.values() for exchange in server.requests]
    known = ledger.interactions()
    return {
        "dialects": len({server.dialect for server in watch.servers.values() if server.received}),
        "requests": len(exchanges),
        "refused": sum(400 <= exchange.status < 500 for exchange in exchanges),
        "tool calls": len(known),
        "real results": sum(item.completion is not None for item in known),
        "synthetic results": sum(item.sealed is not None for item in known),
        "late results": sum(item.late is not None for item in known),
        **watch.counts,
    }


def _as_it_is(show: Printed | JsonLines, servers: Mapping[str, LoopbackServer]) -> None:
    """Show how providers answer the broken history if it is sent as it is."""
    show.scene("A history that another program left broken, sent as it is")
    for name, request in stage.naive().items():
        refusal = servers[name].judge(request)
        why = "accepted" if refusal is None else f"{refusal.status} {refusal.message.partition('. ')[0]}"
        show.note(name, why)


def _opening(show: Printed, servers: int) -> None:
    line = show.screen.line
    others = f", and one for each of {servers - 2} more dialects" if servers > 2 else ""
    about = (
        "Strict servers run on this machine: gpt speaks OpenAI Chat Completions, claude Anthropic Messages"
        f"{others}. They refuse what the real ones refuse."
    )
    line(show.screen.styled("One conversation that changes its provider, and no refusal", "bold"))
    for paragraph in (about, LEGEND):
        for text in textwrap.wrap(paragraph, show.screen.width):
            line(text)


def _table(show: Printed, counts: Counts, expected: Counts) -> None:
    line, styled = show.screen.line, show.screen.styled
    line()
    said = ", ".join(
        f"{count} {name}" + ("" if count == expected[name] else f" (must be {expected[name]})")
        for name, count in counts.items()
    )
    for text in textwrap.wrap(said, show.screen.width):
        line(text)
    if counts == expected:
        line(styled("No request was refused, and every call has one result.", "green"))
    else:
        line(styled("This is not as it must be.", "red"))
