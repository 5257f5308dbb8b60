"""Define the render state of a lane, the interface of the wire writers, and the mapping of call ids and tool names.

`RenderState` is everything that `actors.core.render` must remember between two requests, except the sent bytes. A
`Writer` writes wire fragments directly from the fields of a history and a ledger; adapters implement a writer for each
wire family.

Canonical call ids and tool names are mapped to ids and names that a provider accepts. Within a lane, the mapping is
injective and stable: two calls never share an id, and an id never changes, in any epoch. An id depends only on the
canonical id and on the calls that appeared earlier in the lane. In Kimi's format, it also depends on the tool name and
on the index of the call. A lane never reuses an index.

A native id is sent back to the binding that minted it, if the dialect allows this and the id is still free in the lane.
Newer models must receive their own ids, because their reasoning is bound to all preceding bytes, ids included.
REQ-915-018 and -019 govern minted ids.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol, TypeAlias

from actors.core.data.jsonio import Json
from actors.core.data.persistent import NOTHING, PersistentMap
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.log.events import EpochReason
from actors.core.models.rules import Role
from actors.core.schemas.property_keys import rename_keys
from actors.core.values.content import Media, Text, Thinking, ToolCall
from actors.core.values.identity import Binding, CallId, content_digest

DigestStyle: TypeAlias = Literal["openai", "anthropic", "mistral", "bedrock"]
"""Id styles in which an id is a digest of the canonical id."""
_FORMATS: Mapping[DigestStyle, tuple[str, int]] = {
    "openai": ("call_", 24),
    "anthropic": ("toolu_", 24),
    "bedrock": ("tooluse_", 22),
    "mistral": ("", 9),
}
"""The prefix and the number of digest characters of an id, by style."""
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PAIRS = [low + high for high in _BASE62 for low in _BASE62]
_RANGE = 62**24


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
        items: Ids of the items that an epoch may send only once: reasoning items (`ReasoningRules.id_once`) and calls
            of server tools.
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
        refused: Digests (`media_name`) of the attachments that the provider refused; all later epochs omit them.
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


TitledMedia: TypeAlias = tuple[Media, str]
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
        """Write an attachment of a user message. `title` is its name, as in `TitledMedia`."""

    def write_call(self, call_id: str, name: str, call: ToolCall) -> None:
        """Write a tool call with the id and the tool name that the provider sees."""

    def write_result(
        self, call_id: str, name: str, json: Json, failed: bool, media: Sequence[TitledMedia]
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


class Projection:
    """Maps the call ids and tool names of one lane during a render. Calls from `target` keep their native ids."""

    def __init__(self, state: RenderState, dialect: Dialect, target: Binding | None) -> None:
        self._calls = state.calls
        self._used = state.used
        self._has_given = len(state.calls) > 0
        self._index = state.index
        self._dialect = dialect
        # behind a gateway, each model has its own provider, so ids belong to a model
        self._models = dialect.reasoning.binding == "upstream"
        self._home = None if target is None else self._provider_key(target)
        self._is_id = re.compile(dialect.ids.pattern).fullmatch
        self._new: dict[CallId, str] = {}
        self._taken: dict[str, CallId] = {}
        self._names: dict[str, str] = {}
        self._origin: Binding | None = None  # the binding that produced the last call with a native id
        self._is_own = False  # True if the ids of calls from `_origin` belong to the target's provider

    def id_and_name(self, call: ToolCall) -> tuple[str, str]:
        """Return the id of `call` in this lane and its tool name. The id is assigned when the call first appears."""
        name = self._names.get(call.name)
        if name is None:
            name = self._names[call.name] = tool_name(call.name, self._dialect.ids.tool_name_pattern)
        known = self._new.get(call.id)
        if known is None and self._has_given:
            known = self._calls.get(call.id)
        if known is not None:
            return known, name
        emitted = self._own_id(call) or self._mint_id(call.id, name)
        self._new[call.id] = emitted
        if emitted:
            self._taken[emitted] = call.id
        self._index += 1
        return emitted, name

    def _own_id(self, call: ToolCall) -> str:
        """Return the native id of `call` if it is sent back, else ""."""
        seal = call.native
        if seal is None:
            return ""
        if seal.maker is not self._origin:  # successive calls mostly share their origin
            self._origin = seal.origin
            self._is_own = (
                self._dialect.ids.native_passthrough and self._provider_key(seal.origin) == self._home
            )
        native = call.native_id if self._is_own else ""
        if not native or not self._is_id(native) or not self._is_free(native):
            return ""
        if ":" in native and (ordinal := _ORDINAL.search(native)):
            self._index = max(self._index, int(ordinal[1]))
        return native

    def with_native_keys(self, call: ToolCall) -> ToolCall:
        """Return a call with its original argument keys if the call is sent back to its provider (ANT-57)."""
        seal = call.native
        if seal is None or seal.kind != "call" or self._provider_key(seal.origin) != self._home:
            return call
        return replace(call, json=rename_keys(call.json, call.native_keys))

    def with_names(self, names: frozenset[str]) -> frozenset[str]:
        """Return `names` with the tool names of this render added, or `names` itself if no name is new."""
        return names if names.issuperset(self._names.values()) else _intern(names.union(self._names.values()))

    def new_state(self) -> tuple[PersistentMap[CallId, str], PersistentMap[str, CallId], int]:
        """Return the lane's updated id tables (`RenderState.calls` and `used`), and the index of the next call."""
        return self._calls.update(self._new), self._used.update(self._taken), self._index

    def _is_free(self, emitted: str) -> bool:
        return emitted not in self._taken and not (self._has_given and emitted in self._used)

    def _provider_key(self, binding: Binding) -> tuple[str, str, str]:
        """Return a key that is equal for bindings whose call ids come from the same provider."""
        return (binding.dialect, binding.endpoint, binding.model if self._models else "")

    def _mint_id(self, call_id: CallId, name: str) -> str:
        style = self._dialect.ids.style
        if style == "none":
            return ""
        if style == "kimi":
            return f"functions.{name}:{self._index}"  # the index is never reused, so the id is free
        probe = 0
        while not self._is_free(emitted := mint(style, call_id, probe)):
            probe += 1
        return emitted


REASONING_ID = re.compile(r"rs_[A-Za-z0-9_-]{1,61}")
"""Matches the id of a reasoning item that a request may send back (OAR-06)."""
ITEM_ID = re.compile(rb'"(?:msg|fc|ctc)_[A-Za-z0-9_-]{1,60}"')
"""Matches the id of an item that follows reasoning, as a JSON literal."""
_ORDINAL = re.compile(r":(\d{1,9})\Z")
"""Matches the index at the end of an id in Kimi's format (REQ-915-020)."""


@lru_cache(
    maxsize=8192
)  # all sessions number their calls from 1, so they share canonical ids and cache entries
def mint(style: DigestStyle, call_id: CallId, probe: int = 0) -> str:
    """Return an id in a provider's format for another provider's call. `probe` is the number of collisions so far."""
    opening, length = _FORMATS[style]
    return opening + _digest(f"{call_id}#{probe}" if probe else call_id)[:length]


def _digest(text: str) -> str:
    number = int(content_digest(text), 16) % _RANGE
    digits: list[str] = []
    for _ in range(12):
        number, pair = divmod(number, len(_PAIRS))
        digits.append(_PAIRS[pair])
    return "".join(digits)


def flat_name(namespace: str, name: str) -> str:
    """Return a namespaced tool's full name, `namespace__name`, for dialects without namespaces."""
    return f"{namespace}__{name}" if namespace else name


def local_name(name: str, namespace: str) -> str:
    """Return a tool's name within its namespace. This is the inverse of `flat_name`."""
    return name.removeprefix(f"{namespace}__") if namespace else name


MAX_INTERNED = 64
"""Maximum size of a set of tool names that is shared between lanes. Models may invent any number of names."""


def _intern(names: frozenset[str]) -> frozenset[str]:
    """Return the same object for equal small sets, because the lanes of many sessions use the same tools."""
    return _interned(names) if len(names) <= MAX_INTERNED else names


@lru_cache(maxsize=128)
def _interned(names: frozenset[str]) -> frozenset[str]:
    return names


@lru_cache(maxsize=4096)
def tool_name(name: str, pattern: str) -> str:
    """Return `name` if it matches the dialect's pattern, else a matching name derived from `name`.

    A model may call a tool under an invalid name (`functions.read`, or an empty name). The call stays in the history,
    and providers validate the history's names like the tool list. Distinct names stay distinct, because a derived name
    ends in a digest of the original.
    """
    if re.fullmatch(pattern, name):
        return name
    stem = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:40].lstrip("-0123456789_") or "tool"
    return f"{stem}_{_digest(name)[:8]}"
