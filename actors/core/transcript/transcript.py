"""What a lane remembers of what one provider was sent, and how a wire family writes.

`RenderState` is the state of a lane's rendering between two requests: all that `actors.core.render` must remember of
what was sent, and nothing of its bytes. A `Writer` puts wire pieces straight down from the fields of a history and a
ledger; adapters implement one for each wire family.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from actors.core.data.jsonio import Json
from actors.core.data.table import NOTHING, PersistentMap
from actors.core.log.events import EpochReason
from actors.core.models.concerns import Role
from actors.core.values.content import Media, Text, Thinking, ToolCall
from actors.core.values.identity import CallId


class TranscriptFacts(NamedTuple):
    """What a transcript shows that the request around it must know.

    The tools called in it, by the names that the provider sees (BED-03); how many bytes of the lane the request before
    it sent; and the lane's name, for hosts that route by it (`actors.core.dialects.dialect.lane_key`).
    """

    tools: frozenset[str] = frozenset()
    before: int = 0
    lane: str = ""


NO_FACTS = TranscriptFacts()


class Loop(NamedTuple):
    """The tool loop a transcript stands in, as far as manual thinking asks (ANT-40).

    A tool loop is a run of assistant messages with calls and user messages with nothing but their results. With manual
    thinking a provider demands that its first message begins with thinking; one that another provider opened does not.
    """

    thinks: bool | None = None  # the message that opened it begins with thinking; None before the first
    answered: bool = False  # the last user message holds results
    mixed: bool = False  # and something else

    def after(self, role: Role, last: Role | None, thinks: bool, results: bool) -> "Loop":
        """Return the loop once a message of `role` has begun behind one of `last`."""
        opened, answered, mixed = self
        if role == "user":
            if (answered or not results) and (mixed or results):
                return self
            return Loop(opened, answered or results, mixed or not results)
        if last == "assistant":  # the message goes on
            return self
        return _LOOPS[opened if answered and not mixed and opened is not None else thinks]


_LOOPS = {True: Loop(True), False: Loop(False)}


class EpochUsage(NamedTuple):
    """What a lane's epoch has used up of what a request may hold so often and no more.

    `large` counts the images that a request with many of them may not hold (`ModelFacts.many_images_side`). `titles`
    says how many documents have a name, which numbers tell apart; `items` are the ids of what goes out once: reasoning
    items (`ReasoningRules.once`), calls of a provider's own tools.
    """

    media: int = 0  # images and documents
    documents: int = 0
    large: int = 0
    titles: PersistentMap[str, int] = NOTHING
    items: PersistentMap[str, None] = NOTHING


class RenderState(NamedTuple):
    """Where a lane's rendering stands. Every request makes one, and a tuple of so many fields is made in no time.

    Args:
        epoch_start: History length when the epoch began; provider state older than that is not replayed.
        plain: Whether this epoch renders conservatively: no thinking, tool groups as labelled text.
        cursor: How many messages of the history have been rendered.
        calls, used: Every call emitted, by canonical id, and every id emitted, to the canonical id that has it. Both
            survive epochs, so that ids stay.
        index: What the next call is numbered where ids count calls. Never falls, so no number is given twice.
        tools: Names of the tools called in this epoch, as the provider sees them.
        missing: Calls that a synthetic result answers in this epoch, each with whether a real one may still be told.
        carried: Texts that wait for the next human message, and the media of the results they tell.
        without_ids: Whether items go out without ids, because reasoning was refused in this lane (OAR-05).
        told: How many of the ledger's late results this epoch has taken up.
        upstream: Behind a gateway, whose reasoning this epoch replays; None before the first.
        loop: The tool loop it stands in; followed only where the dialect has manual thinking.
        outdated: Why the next request begins an epoch: what its reasoning is bound to has changed, or the history was
            made shorter; None where it goes on.
        refused: Names (`content_name`) of attachments that the provider refused, which stay left out in all epochs.
    """

    epoch: int = 0
    epoch_start: int = 0
    plain: bool = False
    cursor: int = 0
    calls: PersistentMap[CallId, str] = NOTHING
    used: PersistentMap[str, CallId] = NOTHING
    index: int = 0  # type: ignore[assignment]  # hides a tuple's method, which nobody calls here
    tools: frozenset[str] = frozenset()
    missing: PersistentMap[CallId, bool] = NOTHING
    carried: tuple[Text | Media, ...] = ()
    told: int = 0
    without_ids: bool = False
    upstream: str | None = None
    last_role: Role | None = None
    loop: Loop = Loop()
    usage: EpochUsage = EpochUsage()
    outdated: EpochReason | None = None
    refused: frozenset[str] = frozenset()


Titled: TypeAlias = tuple[Media, str]
"""An attachment, and the name of a document where each has one (`MediaRules.named_documents`); else `""`."""


class Writer(Protocol):
    """Writes what is appended to the `messages` array of a request body, piece by piece.

    The renderer has settled who speaks, what is shown, ids, names and order. A writer decides nothing; a transcript
    that looks wrong in one is a bug there.
    """

    def begin(self, role: Role) -> None:
        """Let what follows be said in this role: a message of its own, but where the family merges neighbours."""

    def text(self, json: Json) -> None:
        """Write a text, given as a JSON string literal."""

    def thinking(self, block: Thinking) -> None:
        """Write reasoning: sealed for who reads it, or a placeholder without a seal."""

    def native(self, part: bytes) -> None:
        """Write a provider's own part as it came, where the family has such (`Encoder.natives`)."""

    def media(self, media: Media, title: str) -> None:
        """Write an attachment of a user message."""

    def call(self, call_id: str, name: str, call: ToolCall) -> None:
        """Write a tool call under the id and the name it has here."""

    def result(self, call_id: str, name: str, json: Json, failed: bool, media: Sequence[Titled]) -> None:
        """Write the result of a call; `json` is its text as a literal, `""` where it holds media alone."""

    def taken(self) -> list[bytes]:
        """Return the pieces written since this was asked last; of a long literal, the one that was given.

        The last message may be open; it is between two blocks.
        """


class Encoder(NamedTuple):
    """How a dialect writes.

    `writer` makes one that goes on behind a message of a role, None before the first. `closing` closes the message that
    the last piece left open; a lane does not keep it, because the next piece may go on inside that message. `natives`:
    a provider's own parts can be written.
    """

    writer: Callable[[Role | None], Writer]
    closing: bytes = b""
    natives: bool = False
