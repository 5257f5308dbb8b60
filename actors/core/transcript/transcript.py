"""Define the state of a lane's rendering and the interface of the wire writers.

`RenderState` is the state between two requests: everything that `actors.core.render` must remember, without the bytes.
A `Writer` writes wire fragments directly from the fields of a history and a ledger; adapters implement one for each
wire family.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from actors.core.data.jsonio import Json
from actors.core.data.persistent_map import NOTHING, PersistentMap
from actors.core.log.events import EpochReason
from actors.core.models.rules import Role
from actors.core.values.content import Media, Text, Thinking, ToolCall
from actors.core.values.identity import CallId


class TranscriptFacts(NamedTuple):
    """Properties of a transcript that the rest of the request depends on.

    Args:
        tools: Names of the tools called in the transcript, as the provider sees them (BED-03).
        before: Bytes of the lane that the previous request sent.
        lane: The lane's name, for servers that route by it (`actors.core.dialects.dialect.lane_key`).
    """

    tools: frozenset[str] = frozenset()
    before: int = 0
    lane: str = ""


NO_FACTS = TranscriptFacts()


class Loop(NamedTuple):
    """The current tool loop of a transcript, as manual thinking defines it (ANT-40).

    A tool loop is a series of assistant messages with calls and user messages that hold only their results. With
    manual thinking, the provider requires thinking at the start of the loop's first message; a message from another
    provider has none.
    """

    thinks: bool | None = None  # the loop's first message begins with thinking; None before the first loop
    answered: bool = False  # the last user message holds results
    mixed: bool = False  # the last user message holds results and other content

    def after(self, role: Role, last: Role | None, thinks: bool, results: bool) -> "Loop":
        """Return the loop after a message of `role` that follows one of `last`."""
        opened, answered, mixed = self
        if role == "user":
            if (answered or not results) and (mixed or results):
                return self
            return Loop(opened, answered or results, mixed or not results)
        if last == "assistant":  # neighbours merge, so this continues the same message
            return self
        return _LOOPS[opened if answered and not mixed and opened is not None else thinks]


_LOOPS = {True: Loop(True), False: Loop(False)}


class EpochUsage(NamedTuple):
    """An epoch's use of limits that apply to a complete request.

    Args:
        media: Images and documents.
        documents: Documents.
        large: Images above the side limit of requests with many images (`ModelFacts.many_images_side`).
        titles: Number of documents with each name; a number is appended to repeated names.
        items: Ids of parts that an epoch sends only once: reasoning items (`ReasoningRules.once`) and calls of server
            tools.
    """

    media: int = 0
    documents: int = 0
    large: int = 0
    titles: PersistentMap[str, int] = NOTHING
    items: PersistentMap[str, None] = NOTHING


class RenderState(NamedTuple):
    """The state of a lane's rendering. A NamedTuple, because every request creates one and structs of this size cost
    more.

    Args:
        epoch: Number of the epoch, from 0.
        epoch_start: History length when the epoch began; older provider state is not replayed.
        plain: True if this epoch renders conservatively: no thinking, tool groups as labelled text.
        cursor: Number of rendered messages of the history.
        calls, used: Emitted id by canonical id, and canonical id by emitted id, for every call. Both survive epochs, so
            ids are stable.
        index: Number of the next call, for ids that count calls. It never decreases, so no number is reused.
        tools: Names of the tools called in this epoch, as the provider sees them.
        missing: Calls with a synthetic result in this epoch, each with True while a late result may still follow.
        carried: Texts and media of late results that wait for the next user message.
        without_ids: True if items are sent without ids, because reasoning was refused in this lane (OAR-05).
        late_count: Number of the ledger's late results that this epoch has rendered.
        upstream: Behind a gateway, the provider whose reasoning this epoch replays; None before the first.
        last_role: Role of the last message; None at the start.
        loop: The current tool loop; tracked only if the dialect has manual thinking.
        usage: The epoch's use of request limits.
        outdated: The reason why the next request must begin an epoch: a change of content that reasoning is bound to,
            or a shortened history. None if the epoch continues.
        refused: Names (`content_name`) of attachments that the provider refused; all later epochs omit them.
    """

    epoch: int = 0
    epoch_start: int = 0
    plain: bool = False
    cursor: int = 0
    calls: PersistentMap[CallId, str] = NOTHING
    used: PersistentMap[str, CallId] = NOTHING
    index: int = 0  # type: ignore[assignment]  # hides tuple.index, which is not used here
    tools: frozenset[str] = frozenset()
    missing: PersistentMap[CallId, bool] = NOTHING
    carried: tuple[Text | Media, ...] = ()
    late_count: int = 0
    without_ids: bool = False
    upstream: str | None = None
    last_role: Role | None = None
    loop: Loop = Loop()
    usage: EpochUsage = EpochUsage()
    outdated: EpochReason | None = None
    refused: frozenset[str] = frozenset()


Titled: TypeAlias = tuple[Media, str]
"""An attachment and its name; `""` unless the dialect names documents (`MediaRules.named_documents`)."""


class Writer(Protocol):
    """Writes fragments of a request's `messages` array, one piece at a time.

    The renderer has already decided roles, content, ids, names and order. A writer makes no decisions; an invalid
    transcript is a bug in the renderer.
    """

    def begin(self, role: Role) -> None:
        """Begin a message of this role, or continue the last one if the family merges neighbours."""

    def write_text(self, json: Json) -> None:
        """Write a text, passed as a JSON string literal."""

    def write_thinking(self, block: Thinking) -> None:
        """Write reasoning: sealed for the target, or a placeholder without a seal."""

    def write_native(self, part: bytes) -> None:
        """Write a provider's own part verbatim, if the family has them (`Encoder.natives`)."""

    def write_media(self, media: Media, title: str) -> None:
        """Write an attachment of a user message."""

    def write_call(self, call_id: str, name: str, call: ToolCall) -> None:
        """Write a tool call under its emitted id and name."""

    def write_result(
        self, call_id: str, name: str, json: Json, failed: bool, media: Sequence[Titled]
    ) -> None:
        """Write the result of a call; `json` is its text as a literal, `""` for a result of media alone."""

    def take_pieces(self) -> list[bytes]:
        """Return the pieces written since the last call of this method, long literals as the objects passed in.

        The last message may be open, but only between two blocks.
        """
        ...


class Encoder(NamedTuple):
    """A dialect's writer.

    Args:
        writer: Creates a writer that continues after a message of the given role; None at the start.
        closing: Bytes that close the last message. A lane does not store them, because the next piece may continue that
            message.
        natives: True if the writer accepts a provider's own parts.
    """

    writer: Callable[[Role | None], Writer]
    closing: bytes = b""
    natives: bool = False
