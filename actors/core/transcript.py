"""What one provider will be shown: entries with its roles, ids and names, ready to be encoded.

Made only by `actors.core.render`. `Standing` is where a lane's rendering stands between two requests: all
that the passes must remember of what was sent, and nothing of its bytes.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

from actors.core.content import Media, Text, Thinking
from actors.core.dialect import Role
from actors.core.identity import CallId
from actors.core.jsonio import Json
from actors.core.table import Table, nothing


class WireCall(NamedTuple):
    """A tool call with the id and name the provider will see. `json` is the arguments as a JSON object."""

    id: str
    name: str
    json: Json


class WireMedia(NamedTuple):
    """An attachment, with the name the provider will see.

    Args:
        mime, data, url: As those of a `Media`.
        name: Of a document, where the dialect asks for one (`Dialect.named_documents`); else `""`.
    """

    mime: str
    data: str = ""
    url: str = ""
    name: str = ""


class WireResult(NamedTuple):
    """A tool result with the id and tool name the provider will see.

    Args:
        id: Of its call.
        json: Its text as a JSON string literal; `""` where it holds media alone.
        error: Whether the tool failed.
        name: Of the tool.
        media: What the dialect's results can hold, and no other.
    """

    id: str
    json: Json
    error: bool = False
    name: str = ""
    media: tuple[WireMedia, ...] = ()


EntryBlock: TypeAlias = Text | Thinking | WireCall | WireResult | WireMedia


class Entry(NamedTuple):
    """A stretch of a transcript in one role. Where the dialect merges neighbours, entries share a message."""

    role: Role
    blocks: tuple[EntryBlock, ...]


class Shown(NamedTuple):
    """What a transcript shows that the request around it must know.

    Args:
        tools: Names of the tools called in it, as the provider sees them (BED-03).
        thought: Whether manual thinking may be asked for (ANT-40).
    """

    tools: frozenset[str] = frozenset()
    thought: bool = True


class Loop(NamedTuple):
    """The tool loop a transcript stands in, as far as manual thinking asks (ANT-40).

    Args:
        thinks: Whether the message that opened it begins with thinking; None before the first message.
        answered: Whether the last user message holds results.
        mixed: Whether it holds something else.
    """

    thinks: bool | None = None
    answered: bool = False
    mixed: bool = False


OUTSIDE = Loop()
"""Where a transcript stands before its first message."""


class Spent(NamedTuple):
    """What a lane's epoch has used up of what a request may hold so often and no more.

    Args:
        media: Attachments shown, images and documents.
        documents: How many of them are documents.
        titles: Names given to documents, each with how many have it, told apart by numbers.
        items: Ids of the reasoning items sent, where each goes out once (`Dialect.thinking_once`).
    """

    media: int = 0
    documents: int = 0
    titles: Table[str, int] = nothing()
    items: Table[str, None] = nothing()


UNSPENT = Spent()
"""What an epoch begins with."""


Orphan: TypeAlias = tuple[CallId, Json | None, Json | None, tuple[Media, ...]]


class Standing(NamedTuple):
    """Where a lane's rendering stands. Every request makes one, and a tuple of so many fields is made in no time.

    Args:
        epoch: Number of the epoch, from 0.
        floor: History length when the epoch began; provider state older than that is not replayed.
        plain: Whether this epoch renders conservatively: no thinking, tool groups as labelled text.
        cursor: How many messages of the history have been rendered.
        calls: Every call emitted in the lane's life, by canonical id. Survives epochs, so that ids stay.
        used: Every id emitted, to the canonical id that has it. Survives epochs.
        index: What the next call is numbered where ids count calls. Never falls, so no number is given twice.
        tools: Names of the tools called in this epoch, as the provider sees them.
        shown: Calls emitted in this epoch, each with whether its real result may still come.
        aliases: For canonical ids that occur more than once, the names that results to come belong to, in order.
        carried: Texts that wait for the next human message, and the media of the results they tell.
        told: How many of the ledger's late results this epoch has taken up.
        orphans: Results without a call that were told in this epoch, as (canonical id, content, error, media).
        upstream: Behind a gateway, whose reasoning this epoch replays; None before the first.
        last_role: Role of the last entry sent, None before the first.
        loop: The tool loop it stands in; followed only where the dialect has manual thinking.
        spent: What this epoch's request has used up of what it may hold.
    """

    epoch: int = 0
    floor: int = 0
    plain: bool = False
    cursor: int = 0
    calls: Table[CallId, str] = nothing()
    used: Table[str, CallId] = nothing()
    index: int = 0  # type: ignore[assignment]  # hides a tuple's method, which nobody calls here
    tools: frozenset[str] = frozenset()
    shown: Table[CallId, bool] = nothing()
    aliases: Table[CallId, tuple[CallId, ...]] = nothing()
    carried: tuple[Text | Media, ...] = ()
    told: int = 0
    orphans: frozenset[Orphan] = frozenset()
    upstream: str | None = None
    last_role: Role | None = None
    loop: Loop = OUTSIDE
    spent: Spent = UNSPENT


class Encoder(Protocol):
    """How a wire family writes entries into the `messages` array of a request body.

    `closing` is what must follow the last fragment to close the message it left open. It is not part of
    what a lane keeps, because the next fragment may go on inside that message.
    """

    closing: bytes

    def fragment(self, entries: Sequence[Entry], last_role: Role | None) -> list[bytes]:
        """Return the bytes that append `entries` after a message of `last_role`, in pieces."""
