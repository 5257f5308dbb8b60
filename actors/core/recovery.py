"""Recovery: a ledger from a history that came without one.

Precedence, for each call in order of appearance: the first result block of its id whose status is not
pending is its completion (REQ-915-048 decides the status: error, else is_complete, else a non-null result,
else pending); a further, different one is kept as a duplicate; a call without any is closed as `lost`: nothing
more will come of it. Blocks whose call does not occur are not guessed into the ledger: the renderer treats
them as orphans. Ids that occur more than once are told apart as the renderer tells them apart.
"""

from collections.abc import Iterable, Iterator

from actors.core.content import Message, ToolCall, ToolResult
from actors.core.diagnostics import Notes
from actors.core.form import Form
from actors.core.history import History
from actors.core.identity import CallId
from actors.core.ledger import Interaction, Ledger
from actors.core.render.attribute import attribute
from actors.core.render.identify import identify
from actors.core.table import Table


def recover(messages: Iterable[Message]) -> Ledger:
    """Return the ledger that a history's own blocks support. It is worked out when it is first asked.

    Args:
        messages: A history, oldest first. Calls and results are found under any speaker.
    """
    return Ledger.of_import(_Recovered(messages if isinstance(messages, History) else History(messages)))


class _Recovered(Form, frozen=True):
    """The interactions of a history, found when they are read: an idle session need not hold them beside it."""

    history: History

    def __iter__(self) -> Iterator[Interaction]:
        calls: dict[CallId, ToolCall] = {}
        results: dict[CallId, list[ToolResult]] = {}
        for message in named(self.history):
            for block in message.blocks:
                if isinstance(block, ToolCall):
                    calls.setdefault(block.id, block)
                elif isinstance(block, ToolResult) and block.status != "pending":
                    kept = results.setdefault(block.call_id, [])
                    if not any(_same(block, other) for other in kept):
                        kept.append(block)
        return (_interaction(call, results.get(call.id, [])) for call in calls.values())


def named(history: History) -> list[Message]:
    """Return a history's messages with every block under its own speaker and every call under an id of its own."""
    notes = Notes()
    messages, _ = identify(attribute(list(history), notes), Table(), Table(), notes)
    return messages


def _interaction(call: ToolCall, results: list[ToolResult]) -> Interaction:
    return Interaction(
        call.id,
        call.name,
        call.json,
        started=bool(results),
        end=results[0] if results else None,
        cancelled=None if results else "lost",
        duplicates=tuple(results[1:]),
    )


def _same(one: ToolResult, other: ToolResult) -> bool:
    """Say whether two blocks hold the same completion, whatever their source said of it besides."""
    return (one.content_json, one.error_json, one.media) == (
        other.content_json,
        other.error_json,
        other.media,
    )
