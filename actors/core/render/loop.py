"""Whether the tool loop that a request goes on with was opened by a message that begins with thinking.

A tool loop is a run of assistant messages with calls and user messages with nothing but their results. With
manual thinking switched on, a provider demands that its first message begins with thinking (rulebook ANT-40);
one that another provider opened does not, so a request must know before it asks for manual thinking.
"""

from collections.abc import Sequence

from actors.core.content import Thinking
from actors.core.dialect import Role
from actors.core.transcript import Entry, Loop, WireResult


def followed(loop: Loop, entries: Sequence[Entry], last_role: Role | None) -> Loop:
    """Return the loop after `entries`, which follow an entry of `last_role`."""
    for entry in entries:
        loop = (
            _assistant(loop, entry, last_role) if entry.role == "assistant" else _user(loop, entry, last_role)
        )
        last_role = entry.role
    return loop


def _assistant(loop: Loop, entry: Entry, last_role: Role | None) -> Loop:
    if last_role == "assistant":  # the message goes on
        return loop
    opened = loop.thinks if loop.answered and not loop.mixed else None
    thinks = type(entry.blocks[0]) is Thinking if opened is None else opened
    return Loop(thinks)


def _user(loop: Loop, entry: Entry, last_role: Role | None) -> Loop:
    results = [type(block) is WireResult for block in entry.blocks]
    before = loop if last_role != "assistant" else Loop(loop.thinks)
    return Loop(loop.thinks, before.answered or any(results), before.mixed or not all(results))
