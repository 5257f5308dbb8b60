"""What a person is told of an answer beside its text: why there is none, what it waits for, what is not in it."""

from collections.abc import Iterable, Iterator

from actors.cli.approvals import question
from actors.config import Config
from actors.core.stream_events.results import TurnResult
from actors.core.turn.no_content import NO_CONTENT
from actors.core.values.content import ToolCall
from actors.provider import advice


def no_answer(result: TurnResult, config: Config) -> str:
    """Return one line on why an ask failed, and what to try."""
    return what_is_awaited(result.awaiting) if result.awaiting else advice.no_answer(result, config)


def what_is_awaited(calls: Iterable[ToolCall]) -> str:
    """Return one line on what a turn waits for, and who asks for it."""
    words = ", ".join(map(question, calls))
    return f"the turn waits for what comes from outside: {words}; actors chat --continue asks for it"


def what_is_missing(result: TurnResult) -> Iterator[str]:
    """Give what is to be said of an answer that is not whole, and what it held beside its words."""
    if result.cut in NO_CONTENT:
        if result.status == "complete":  # else the reason of the failure says it
            yield f"no whole answer from {result.served_by}: {NO_CONTENT[result.cut]}"
    elif result.cut is not None:
        yield f"the answer was cut ({result.cut}): {result.served_by} stopped with {result.finish!r}"
    if result.left_out:
        kinds = ", ".join(f"{count} x {kind}" for kind, count in result.left_out)
        yield f"left out of the answer: {kinds}"
    if result.status == "complete" and result.why:
        yield f"{result.why}: the model's last calls were not run"
