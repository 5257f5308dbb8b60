"""Answers cut at every byte, through complete sessions: each ask ends exactly once, and no tool runs on half an answer.

    python -m tests.commands.cut_sessions

This cuts a stream of each wire format at every byte, on both backends: the connection breaks there, or the response
ends normally, as after a relay. `tests/commands/test_cut_sessions.py` cuts at some bytes.
(`tests/adapters/test_decode_cuts.py` and `test_every_dialect_cut.py` cut the streams for the decoders alone.)
"""

import argparse
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, Literal, TypeAlias, get_args

import anyio

from actors.core.stream_events.round_events import TextEvent
from actors.runtime.handle import Session
from actors.strict.loopback import HttpRequest, LoopbackAnswer
from actors.strict.server import LoopbackServer
from actors.testing import Call, Disconnect, Say, Script, Turn, strict_server
from actors.tools import Tool, tool
from tests.runtime_support import gather_events, runtime_with

AnyTool = Tool[..., Any]  # Any: any function

FAMILIES = ("openai_chat", "anthropic", "openai_responses", "gemini", "bedrock")
WORDS = "I look at \u65e5\u672c \U0001f600."
CUT = Turn(Say(WORDS), Call("work", {"name": "a"}), Call("work", {"name": "b"}))
How: TypeAlias = Literal["breaks", "ends"]
BEHIND = 3
"""Cuts after the end marker, where the answer is complete."""

MOST = 20_000
"""A number of bytes that no stream here reaches."""
ENDED_BY_THE_RESPONSE = frozenset({"gemini"})
"""Formats without an end marker: a connection that breaks after the last event may have lost another."""
MOST_OF_A_RESPONSE = 2_000
"""A number of bytes that no stream of a format without an end marker reaches."""


def recording_tool(runs: list[str]) -> AnyTool:
    """Return a tool that records its arguments."""

    async def work(name: str) -> str:
        """Do a piece of work."""
        runs.append(name)
        return f"{name} is done"

    return tool(work)


def _turn(runs: list[str], request: object) -> Turn:
    return Turn(Say("Done.")) if runs else CUT


def _end_normally(server: LoopbackServer) -> LoopbackServer:
    """Make the server end the response normally, without a hint, where it would break a connection."""
    whole = server.answer

    def answer(request: HttpRequest) -> LoopbackAnswer:
        answer = whole(request)
        if answer.ending != "close":
            return answer
        return replace(answer, parts=(b"".join(answer.parts)[: answer.cut],), ending="end")

    server.answer = answer  # type: ignore[method-assign]
    return server


async def cut_answers(name: str, how: How, step: int = 1) -> tuple[Counter[str], list[str]]:
    """Cut answers of new sessions every `step` bytes until they are complete; return the outcomes and problems."""
    server = strict_server(name) if how == "breaks" else _end_normally(strict_server(name))
    ends, problems = Counter[str](), list[str]()
    async with runtime_with(a=server, seconds=3600) as runtime:
        never_whole = how == "breaks" and name in ENDED_BY_THE_RESPONSE
        for place in range(0, MOST_OF_A_RESPONSE if never_whole else MOST, step):
            runs: list[str] = []
            server.script = Script(partial(_turn, runs))
            server.faults = {server.received: Disconnect(after_bytes=place)}
            session = await runtime.open("a", tools=[recording_tool(runs)])
            status, wrong = await ask_once(session, runs)
            ends[status] += 1
            problems += [f"{name} {how} at byte {place}: {line}" for line in wrong]
            await session.close()
            await runtime.journal.delete(session.id)
            if ends["complete"] == BEHIND:
                break
    return ends, problems + [f"{name}: {refusal}" for refusal in server.refusals]


async def ask_once(session: Session, runs: list[str]) -> tuple[str, list[str]]:
    """Ask a session that receives a cut answer; return the outcome and the problems of the ask."""
    events = await gather_events(session, "Do both.")
    terminal = [event for event in events if event.type in ("complete", "error")]
    last = terminal[-1]
    ran, shown = sorted(runs), "".join(event.text for event in events if isinstance(event, TextEvent))
    is_whole = last.result.status == "complete"
    right = {
        "it did not end exactly once, with its last event": terminal == [events[-1]],
        f"it ran {ran}": ran == (["a", "b"] if is_whole else []),
        f"it showed {shown!r}": shown == WORDS + "Done." if is_whole else WORDS.startswith(shown),
        "the next ask was not served": (await session.ask("And now?")).status == "complete",
    }
    return last.result.status, [line for line, is_right in right.items() if not is_right]


def main() -> int:
    """Cut the stream of every format at every byte, on both backends."""
    parser = argparse.ArgumentParser(prog="python -m tests.commands.cut_sessions")
    parser.add_argument("--step", type=int, default=1, help="bytes between two cuts")
    options, failed = parser.parse_args(), 0
    for backend in ("asyncio", "trio"):
        for name, how in product(FAMILIES, get_args(How)):
            ends, problems = anyio.run(partial(cut_answers, name, how, options.step), backend=backend)
            failed += len(problems)
            sys.stdout.write(f"{backend:8}{name:20}{how:8}{dict(ends)}, {len(problems)} wrong\n")
            sys.stdout.writelines(f"  {line}\n" for line in problems[:10])
            sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
