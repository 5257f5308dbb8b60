"""Define the render state of a lane and the interface of the wire writers.

`RenderState` is everything that `actors.core.render` must remember between two requests, except the sent bytes. A
`Writer` writes wire fragments directly from the fields of a history and a ledger; adapters implement a writer for each
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
    """Properties of a transcript that the other fields of the request depend on.

    Args:
        tools: Names of the tools called in the transcript, as the provider sees them (BED-03).
        before: Number of the lane's bytes that were sent with the previous request.
        lane: The prompt cache key (`actors.core.dialects.dialect.lane_key`), by which some servers route requests.
    """

    tools: frozenset[str] = frozenset()
    before: int = 0
    lane: str = ""


NO_FACTS = TranscriptFacts()


class ToolLoop(NamedTuple):
    """The current tool loop of a transcript, as defined by the rules for manual thinking (ANT-40).

    A tool loop is a series of assistant messages with calls and user messages that contain only their results. With
    manual thinking, the provider requires thinking at the start of the loop's first message. A message from another
    provider does not begin with thinking.
    """

    thinks: bool | None = (
        None  # whether the loop's first message begins with thinking; None before the first loop
    )
    answered: bool = False  # whether the last user message contains results
    mixed: bool = False  # whether the last user message contains content other than results

    def after_message(
        self, role: Role, previous_role: Role | None, thinks: bool, has_results: bool
    ) -> "ToolLoop":
        """Return the loop after a message.

        Args:
            role: The role of the message.
            previous_role: The role of the previous message; None for the first message.
            thinks: Whether the message begins with thinking.
            has_results: Whether the message contains results.
        """
        opened, answered, mixed = self
        if role == "user":
            if (answered or not has_results) and (mixed or has_results):
                return self
            return ToolLoop(opened, answered or has_results, mixed or not has_results)
        if (
            previous_role == "assistant"
        ):  # messages of one role are merged, so this continues the same message
            return self
        return _LOOPS[opened if answered and not mixed and opened is not None else thinks]


_LOOPS = {True: ToolLoop(True), False: ToolLoop(False)}


class EpochUsage(NamedTuple):
    """The counts of the media and items that an epoch has sent, for the limits that apply to a complete request.

    Args:
        media: Number of images and documents.
        documents: Number of documents.
        large: Number of images that are too large for a request with many images (`ModelFacts.many_images_side`).
        titles: Number of documents with each name; a number is appended to repeated names.
        items: Ids of the items that an epoch may send only once: reasoning items (`ReasoningRules.once`) and calls of
            server tools.
    """

    media: int = 0
    documents: int = 0
    large: int = 0
    titles: PersistentMap[str, int] = NOTHING
    items: PersistentMap[str, None] = NOTHING


class RenderState(NamedTuple):
    """The state of a lane's rendering between two requests.

    It is a NamedTuple, because every request creates a new state, and a struct of this size takes longer to create.

    Args:
        epoch: Number of the epoch, from 0.
        epoch_start: Length of the history when the epoch began. Provider state in earlier messages is not replayed.
        plain: True if this epoch renders conservatively: no thinking, and tool calls with their results as labelled
            text.
        cursor: Number of messages of the history that have been rendered.
        calls, used: The emitted id of every call by its canonical id, and the reverse. Both are kept across epochs, so
            ids are stable.
        index: Index of the next call, for id formats that contain an index. It never decreases, so no index is reused.
        tools: Names of the tools called in this epoch, as the provider sees them.
        missing: Calls with a synthetic result in this epoch. The value is True while a late result may still follow.
        carried: Texts and media of late results that wait for the next user message.
        without_ids: True if items are sent without ids, because the provider refused reasoning in this lane (OAR-05).
        late_count: Number of the ledger's late results that this epoch has rendered.
        upstream: Behind a gateway, the provider whose reasoning this epoch replays; None before the first replay.
        last_role: Role of the last message; None at the start.
        loop: The current tool loop; tracked only if the dialect has manual thinking.
        usage: The counts of the media and items that this epoch has sent.
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
    loop: ToolLoop = ToolLoop()
    usage: EpochUsage = EpochUsage()
    outdated: EpochReason | None = None
    refused: frozenset[str] = frozenset()


Titled: TypeAlias = tuple[Media, str]
"""An attachment and its name. The name is `""` unless the dialect names documents (`MediaRules.named_documents`)."""


class Writer(Protocol):
    """Writes fragments of a request's `messages` array, block by block.

    The renderer has already decided roles, content, ids, names and order. A writer makes no decisions; an invalid
    transcript is a bug in the renderer.
    """

    def begin(self, role: Role) -> None:
        """Begin a message, or continue the last one if the family merges messages with the same role."""

    def write_text(self, text_json: Json) -> None:
        """Write a text block. `text_json` is the text as a JSON string literal."""

    def write_thinking(self, block: Thinking) -> None:
        """Write reasoning: either a block sealed for the target, or a placeholder without a seal."""

    def write_native(self, part: bytes) -> None:
        """Write a provider-specific part verbatim. Called only if the family has such parts (`Encoder.natives`)."""

    def write_media(self, media: Media, title: str) -> None:
        """Write an attachment of a user message."""

    def write_call(self, call_id: str, name: str, call: ToolCall) -> None:
        """Write a tool call with the id and the tool name that the provider sees."""

    def write_result(
        self, call_id: str, name: str, json: Json, failed: bool, media: Sequence[Titled]
    ) -> None:
        """Write the result of a call.

        `json` is the result's text as a JSON string literal; `""` if the result has only media.
        """

    def take_pieces(self) -> list[bytes]:
        """Return the bytes written since the last call of this method, in pieces.

        Long JSON strings are returned as the same objects that were passed in. The last message may be open, but only
        between two blocks.
        """
        ...


class Encoder(NamedTuple):
    """The factory of a dialect's writers, and the facts that the renderer needs about them.

    Args:
        writer: Creates a writer that continues after a message of the given role; None at the start of a transcript.
        closing: Bytes that close the last message. A lane does not store them, because the next fragment may continue
            that message.
        natives: True if the writer accepts provider-specific parts.
    """

    writer: Callable[[Role | None], Writer]
    closing: bytes = b""
    natives: bool = False
