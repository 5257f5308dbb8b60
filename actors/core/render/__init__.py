"""History and ledger to what one provider will be shown: a pure function, made of passes.

    1 attribute    every block under its own speaker
    2 identify     every call an id of its own
    3 choose       one completion a call: sealed, else real
    4 close        else synthetic, with its reason
    5 place        results directly after their calls, in call order
    6 apart        one call a message, where more are refused
    7 thinking     reasoning only to who made it
    8 tidy         nothing empty, nothing the target cannot hold
    9 project      ids and names
    10 order       reasoning only where its prefix stands
    11 neighbours  roles, fillers, first and last

Passes 1 to 5 know no provider; 6 to 11 read the dialect. Each takes what the one before gives, and none
imports another. They see only the messages past the lane's cursor, and the lane's `Standing`; a full render
is the tail of an empty lane. The conservative render replaces 7 by `plain`.
"""

from typing import cast

from actors.core.content import Block, Code, Media, Message, Thinking, ToolCall, ToolResult
from actors.core.diagnostics import Notes
from actors.core.dialect import Dialect
from actors.core.history import History
from actors.core.identity import CallId
from actors.core.ledger import Ledger
from actors.core.projection import Projection
from actors.core.render.apart import apart
from actors.core.render.attribute import attribute
from actors.core.render.choose import choose
from actors.core.render.close import close
from actors.core.render.identify import identify
from actors.core.render.loop import followed
from actors.core.render.neighbours import neighbours
from actors.core.render.order import order
from actors.core.render.place import place
from actors.core.render.plain import plain
from actors.core.render.thinking import Reader, ThinkingPolicy, thinking, unsealed, upstream
from actors.core.render.tidy import Room, tidy
from actors.core.transcript import Entry, EntryBlock, Standing

__all__ = ["Reader", "ThinkingPolicy", "continued"]


def continued(
    standing: Standing,
    history: History,
    ledger: Ledger,
    dialect: Dialect,
    reader: Reader,
    notes: Notes,
) -> tuple[list[Entry], Standing]:
    """Return the entries that bring a lane from where it stands to the end of `history`.

    Args:
        standing: Where the lane stands. `Standing()` renders everything.
        history, ledger: The canonical state.
        dialect: Whom to please.
        reader: The binding and its thinking policy.
        notes: Receives every decision.

    Returns:
        The entries, never ending on a role the dialect refuses, and the lane's next standing.
    """
    tail = _past(standing, history)
    tail = attribute(tail, notes)
    tail, aliases = identify(tail, standing.shown, standing.aliases, notes)
    tail, standing = choose(tail, ledger, standing, notes)
    tail = close(tail, ledger, notes)
    tail = apart(place(tail), dialect)
    shown = _shown(tail, standing, notes)
    served = upstream(tail, dialect, reader) if standing.upstream is None else standing.upstream
    reader = reader.served_by(served)
    worded = plain(tail, notes) if standing.plain else thinking(tail, dialect, reader, notes)
    projection, room = Projection(standing, dialect, reader.binding), Room(dialect, standing.spent)
    projected = [
        (message, blocks)
        for said, thought in zip(tail, worded, strict=True)
        for message in tidy([thought], room, notes)
        if (blocks := order(said, _projected(message, projection, notes), dialect, notes))
    ]
    entries = neighbours(projected, dialect, standing.last_role)
    calls, used, index, spent = projection.adopted()
    loop = standing.loop
    if dialect.thinking_switch == "anthropic":
        loop = followed(loop, entries, standing.last_role)
    return entries, standing._replace(
        cursor=len(history),
        calls=calls,
        used=used,
        index=index,
        tools=standing.tools | projection.names,
        shown=standing.shown.update(shown),
        aliases=aliases,
        upstream=served,
        last_role=entries[-1].role if entries else standing.last_role,
        loop=loop,
        spent=spent,
    )


def _past(standing: Standing, history: History) -> list[Message]:
    """Return the messages past the cursor; what is older than the epoch has lost its seals."""
    tail = history.since(standing.cursor)
    stale = standing.floor - standing.cursor
    return tail if stale <= 0 else [*map(unsealed, tail[:stale]), *tail[stale:]]


def _shown(tail: list[Message], standing: Standing, notes: Notes) -> dict[CallId, bool]:
    """Return the calls that go out with this tail, each with whether its real result may still come."""
    synthetic = {call_id for call_id, _ in notes.synthetic}
    return {
        result.call_id: result.call_id in synthetic and standing.shown.get(result.call_id) is not False
        for message in tail
        if message.speaker == "tool"
        for result in message.results
    }


_TO_PROJECT = frozenset({ToolCall, ToolResult, Media, Code})


def _projected(message: Message, projection: Projection, notes: Notes) -> tuple[EntryBlock, ...]:
    """Return a message's blocks under the ids and names the provider will see."""
    blocks = message.blocks
    if projection.thinking_once:
        blocks = tuple([block for block in blocks if not _withheld(block, projection, notes)])
    if _TO_PROJECT.isdisjoint(map(type, blocks)):
        return cast(tuple[EntryBlock, ...], blocks)  # texts and thinking go as they are
    return tuple([_block(block, projection, notes) for block in blocks])


def _withheld(block: Block, projection: Projection, notes: Notes) -> bool:
    """Say whether a block is reasoning that stays behind. Something follows it, so its message is not emptied."""
    if type(block) is not Thinking or not projection.withholds(block):
        return False
    notes.lost("thinking")
    return True


def _block(block: Block, projection: Projection, notes: Notes) -> EntryBlock:
    if isinstance(block, ToolResult):
        result = projection.result(block)
        notes.emitted_results.append(result.id)
        return result
    if isinstance(block, ToolCall):
        call = projection.call(block)
        notes.calls.append(block.id)
        notes.emitted_calls.append(call.id)
        return call
    if isinstance(block, Media):
        return projection.media(block)
    assert not isinstance(block, Code)  # `tidy` has made it a text
    return block
