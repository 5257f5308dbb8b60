"""Pass 11, neighbours: give every message its role, and the transcript a first and a last one.

In:  messages with their projected blocks, and the role the lane ends on.
Out: entries in the provider's roles, beginning and ending as the dialect demands.

Where the protocol needs a message and there is none, a constant filler stands in. A filler that was sent
stays: it is part of the lane. Where the dialect merges neighbours of one role, the encoder continues the
message it left open, so merging needs nothing here, with one exception: where native reasoning must open its
message (rulebook ANT-39), it never follows other words of the assistant without a filler between.
"""

from actors.core.content import Message, Text, Thinking
from actors.core.dialect import Dialect, Role
from actors.core.transcript import Entry, EntryBlock

_ROLES: dict[str, Role] = {"human": "user", "model": "assistant", "tool": "tool"}


def neighbours(
    tail: list[tuple[Message, tuple[EntryBlock, ...]]], dialect: Dialect, last_role: Role | None
) -> list[Entry]:
    """Return `tail` as entries.

    Args:
        tail: Tidied messages, each with its projected blocks.
        dialect: Says which roles may come first and last, and what merges.
        last_role: Role of the last entry the lane has sent; None before its first request.
    """
    entries: list[Entry] = []
    leads = dialect.alternation == "merge_same" and dialect.thinking_first
    for message, blocks in tail:
        role = _role(message, dialect)
        if last_role is None and role not in dialect.first_roles:
            entries.append(_filler(dialect.filler_first))
        elif leads and role == "assistant" == last_role and type(blocks[0]) is Thinking:
            entries.append(_filler(dialect.filler_last))
        elif role == "user":
            entries.extend(_between(last_role, dialect))
        elif role == "assistant" == last_role and dialect.alternation == "fill":
            entries.append(_filler(dialect.filler_last))
        entries.append(Entry(role, blocks))
        last_role = role
    if last_role not in dialect.last_roles:
        entries += (*_between(last_role, dialect), _filler(dialect.filler_last))
    return entries


def _between(last_role: Role | None, dialect: Dialect) -> tuple[Entry, ...]:
    """Return what the model must say before the next user message, if anything."""
    if last_role == "tool":
        needed = dialect.user_after_tool == "filler"
    else:
        needed = last_role == "user" and dialect.alternation == "fill"
    return (Entry("assistant", (Text(dialect.filler_between),)),) if needed else ()


def _role(message: Message, dialect: Dialect) -> Role:
    role = _ROLES[message.speaker]
    return "user" if role == "tool" and dialect.result_carrier == "user_block" else role


def _filler(text: str) -> Entry:
    return Entry("user", (Text(text),))
