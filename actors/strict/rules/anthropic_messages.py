"""Check the messages of an Anthropic request: their shapes, ids and names, content and sequence.

Theory of operation. Calls and results are paired between neighbouring turns. The turn after an assistant turn with
calls must begin with the results of all these calls, and must contain no other results. So the sequence is checked turn
by turn, each turn together with the next one. The official host first merges adjacent messages with the same role into
one turn. Strict compatible hosts treat each message as a separate turn, and refuse two successive turns with the same
role. The two kinds of host differ only in this merging (`_merge_turns`).

The provider may pause a turn that uses provider-run tools (`pause_turn`). A request may end with such a turn, and
another assistant message may continue it. A call of a provider tool stays open while the client answers other calls.

A request may create a thread, and a later request may continue it by giving the id of the last answer (`thread`, a
beta). The later request contains only new messages. `expand` adds the stored messages, system prompt and tools, so
rules, scripts and simulated signatures see the complete conversation.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from actors.strict.rules.anthropic_rules import ID, MCP_ID, RULES, SERVER_ID, TOOL_NAME
from actors.strict.rules.anthropic_shapes import (
    BLOCKS,
    IN_RESULT,
    MESSAGE_KEYS,
    SERVER_CALLS,
    SERVER_RESULTS,
    WALK,
    BlockShape,
    check_cache_mark,
)
from actors.strict.rules.base import AnthropicProfile, Json, Mode, is_array, is_object
from actors.strict.rules.reading import key_of_check, unchecked_items
from actors.strict.rules.shapes import ArrayOf, Check, Fields, Maybe, Shape, Tagged, Then

_CREATE_ONLY = ("system", "tools")
_ID = re.compile(ID)
_SERVER_IDS = {
    "server_tool_use": ("ANT-07-server", re.compile(SERVER_ID)),
    "mcp_tool_use": ("ANT-07-mcp", re.compile(MCP_ID)),
}
_NAME = re.compile(TOOL_NAME)
_MAX_NAME = 128
_MAX_MESSAGES = 100_000
_MAX_IMAGE = 5_242_880
_OWN = frozenset({*SERVER_CALLS, *SERVER_RESULTS})
_IDS, _CONTENT = key_of_check("ANT ids"), key_of_check("ANT content")


@dataclass(slots=True)
class _StoredAnswer:
    """An answer in a thread, with its complete request."""

    request: Json
    content: Json
    is_continued: bool = False


class ThreadStore:
    """The stored answers of threads, by id. If there are more than `limit` answers, the oldest is removed."""

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._answers: OrderedDict[str, _StoredAnswer] = OrderedDict()

    def store_answer(self, request: Json, answer_id: str, content: Json) -> None:
        """Store the answer to a request that `expand` has returned. `content` is the list of the answer's blocks."""
        thread = request["thread"]
        if thread["type"] == "continue" and (previous := self._answers.get(thread["previous_message_id"])):
            previous.is_continued = True
        self._answers[answer_id] = _StoredAnswer(request, content)
        while len(self._answers) > self._limit:
            self._answers.popitem(last=False)

    def expand(self, request: Json) -> Json:
        """Add the stored messages and fields to a request that continues a thread. Return any other request unchanged.

        Raises:
            RuleBroken: The thread is not stored, was already continued, or was created with different fields.
        """
        thread = request.get("thread")
        if not is_object(thread) or thread.get("type") != "continue":
            return request
        kept = self._answers.get(str(thread.get("previous_message_id")))
        if kept is None:
            raise RULES["ANT-S21"].refuse()
        if kept.is_continued:
            raise RULES["ANT-S22"].refuse()
        changed = [key for key in _CREATE_ONLY if key in request and request[key] != kept.request.get(key)]
        if changed:
            raise RULES["ANT-S23"].refuse(fields=", ".join(f"`{key}`" for key in changed))
        fields = {key: kept.request[key] for key in _CREATE_ONLY if key in kept.request}
        answer = {"role": "assistant", "content": kept.content}
        return {**request, **fields, "messages": [*kept.request["messages"], answer, *request["messages"]]}


def assume_thread(request: Json) -> Json:
    """Add invented messages before those of a request that continues an unknown thread.

    The added messages end with calls that match the results at the beginning of the request.
    """
    messages: Sequence[Json] = request["messages"]
    content = messages[0].get("content") if messages and is_object(messages[0]) else None
    results = [block for block in content if is_object(block)] if is_array(content) else []
    ids = [block.get("tool_use_id") for block in results if block.get("type") == "tool_result"]
    calls: list[Json] = [
        {"type": "tool_use", "id": call_id, "name": "unknown", "input": {}} for call_id in ids
    ]
    paused: Json = {"type": "server_tool_use", "id": "srvtoolu_unknown", "name": "unknown", "input": {}}
    text = {"type": "text", "text": "unknown"}
    answer = {"role": "assistant", "content": calls or ([text] if messages else [paused])}
    return {**request, "messages": [{"role": "user", "content": "unknown"}, answer, *messages]}


def check(messages: Json, mode: Mode, profile: AnthropicProfile) -> None:
    """Check the messages of one request.

    Raises:
        RuleBroken: At the first broken rule.
    """
    WALK.require_type(messages, list, "messages")
    if not messages:
        raise RULES["ANT-25"].refuse()
    if len(messages) > _MAX_MESSAGES:
        raise RULES["ANT-55"].refuse(most=_MAX_MESSAGES, count=len(messages))
    for at, message in unchecked_items(messages, key_of_check("ANT shape", profile)):
        _check_shape(message, f"messages.{at}", profile)
    for at, message in unchecked_items(messages, _IDS):
        _check_ids(message, at)
    for at, message in unchecked_items(messages[:-1], _CONTENT):
        _check_content(message, at, is_last=False)
    _check_content(messages[-1], len(messages) - 1, is_last=True)
    _check_sequence(messages, mode, profile)


def _check_shape(message: Json, path: str, profile: AnthropicProfile) -> None:
    role = WALK.required_member(WALK.require_type(message, dict, path), "role", str, path)
    if role == "system" and not profile.mid_system:
        raise RULES["ANT-S06"].refuse()
    if role not in ("user", "assistant", "system"):
        raise RULES["ANT-S03"].refuse(path=f"{path}.role", values="'user' or 'assistant'")
    if role != "system":
        WALK.require(message, "content", path)
    WALK.allow_only(message, MESSAGE_KEYS[role], path)
    if not isinstance(message.get("content", ""), str):
        WALK.check(message["content"], _CONTENT_OF_MESSAGE, f"{path}.content", role)


def _check_role(block: dict[str, Json], path: str, role: str) -> None:
    shape = BLOCKS[block["type"]]
    if role not in shape.roles:
        roles = " or ".join(sorted(shape.roles))
        raise RULES["ANT-S05"].refuse(path=path, type=block["type"], role=roles)


def _refuse_cache_mark(mark: Json, path: str, context: object) -> None:
    raise RULES["ANT-34"].refuse(path=path.removesuffix(".cache_control"))


def _check_result(block: dict[str, Json], path: str) -> None:
    WALK.optional_member(block, "is_error", bool, path)
    content = block.get("content")
    if block.get("is_error") and (content is None or (isinstance(content, str) and not content.strip())):
        raise RULES["ANT-53"].refuse(path=path)
    if content is None or isinstance(content, str):
        return
    WALK.check(content, _CONTENT_OF_RESULT, f"{path}.content")
    if block.get("is_error") and any(part["type"] != "text" for part in content):
        raise RULES["ANT-51"].refuse(path=path)


def _check_content_not_empty(content: list[Json], path: str, context: object) -> None:
    if not content:
        raise RULES["ANT-29"].refuse(path=path)


def _check_image(block: dict[str, Json], path: str) -> None:
    source = block["source"]
    if WALK.required_member(source, "type", str, f"{path}.source") != "base64":
        return
    path = f"{path}.source.base64"
    WALK.required_member(source, "media_type", str, path)
    size = len(WALK.required_member(source, "data", str, path))
    if size > _MAX_IMAGE:
        raise RULES["ANT-30"].refuse(path=path, size=size)


def _content_check(block_type: str) -> Check:
    """Return a function that checks the content of a block of this type, after the block's keys have been checked."""

    def check(block: Json, path: str, context: object) -> None:
        check_cache_mark(block, path)
        if block_type == "tool_result":
            _check_result(block, path)
        elif block_type == "image":
            _check_image(block, path)

    return check


def _block_fields(block_type: str, shape: BlockShape) -> Fields:
    others = dict.fromkeys(("type", *sorted(shape.optional)), Maybe(object))
    mark = (
        {}
        if "cache_control" in shape.optional
        else {"cache_control": Maybe(Then(object, _refuse_cache_mark))}
    )
    marked = mark if block_type in ("thinking", "redacted_thinking") else {}
    fields: dict[str, Shape | Maybe] = {**shape.required, **marked, **others}
    return Fields(fields, closed="last", check=_content_check(block_type))


_BLOCK = Tagged(
    "type", {kind: _block_fields(kind, shape) for kind, shape in BLOCKS.items()}, tuple(BLOCKS), _check_role
)
_PART = Tagged("type", {kind: _BLOCK.shapes[kind] for kind in IN_RESULT}, tuple(sorted(IN_RESULT)))
_CONTENT_OF_MESSAGE, _CONTENT_OF_RESULT = ArrayOf(_BLOCK), ArrayOf(_PART, _check_content_not_empty)


def _check_ids(message: dict[str, Json], message_index: int) -> None:
    for number, block in enumerate(_blocks(message)):
        path = f"messages.{message_index}.content.{number}.{block['type']}"
        if block["type"] == "tool_use":
            _check_id(block["id"], f"{path}.id")
            check_name(block["name"], f"{path}.name")
        elif block["type"] == "tool_result":
            _check_id(block["tool_use_id"], f"{path}.tool_use_id")
        elif block["type"] in _SERVER_IDS:
            rule, pattern = _SERVER_IDS[block["type"]]
            if not pattern.fullmatch(block["id"]):
                raise RULES[rule].refuse(path=f"{path}.id")


def _check_id(call_id: str, path: str) -> None:
    if not _ID.fullmatch(call_id):
        raise RULES["ANT-07"].refuse(path=path)


def check_name(name: str, path: str) -> None:
    """Refuse a tool name that the API does not accept. The rule is the same for `tools` and for messages."""
    if len(name) > _MAX_NAME:
        raise RULES["ANT-08-length"].refuse(path=path)
    if not _NAME.fullmatch(name):
        raise RULES["ANT-08"].refuse(path=path)


def _check_content(message: dict[str, Json], message_index: int, *, is_last: bool) -> None:
    content, prefill = message.get("content"), is_last and message["role"] == "assistant"
    if not content:
        if not prefill and message["role"] != "system":
            raise RULES["ANT-22"].refuse(at=message_index)
        return
    texts = [{"text": content}] if isinstance(content, str) else _text_blocks(content)
    for text in texts:
        check_text(text, "messages", f"messages.{message_index}")
    if prefill and not any(block["type"] in _OWN for block in _blocks(message)):
        tail = content if isinstance(content, str) else content[-1].get("text", "")
        if tail != tail.rstrip():
            raise RULES["ANT-23"].refuse()


def _text_blocks(content: list[Json]) -> Iterable[dict[str, Json]]:
    for block in content:
        if block["type"] == "text":
            yield block
        elif block["type"] == "tool_result" and is_array(block.get("content")):
            yield from (part for part in block["content"] if part["type"] == "text")


def check_text(block: Mapping[str, Json], field: str, path: str) -> None:
    """Refuse text that is empty or only whitespace, and refuse cache breakpoints on empty text.

    `field` is the request field that contains the block; `path` is the path of the message or block within that field.
    """
    if not block["text"].strip() and block.get("cache_control") is not None:
        raise RULES["ANT-33"].refuse(path=path)
    if not block["text"]:
        raise RULES["ANT-20"].refuse(where=field)
    if block["text"].isspace():
        raise RULES["ANT-21"].refuse(where=field)


@dataclass(frozen=True, slots=True)
class _WireTurn:
    """One or more adjacent messages that the host treats as one turn.

    Attributes:
        role: The role of the messages.
        message_index: The index of the first message.
        blocks: The blocks, each with the index of its message and its index in the message.
    """

    role: str
    message_index: int
    blocks: Sequence[tuple[int, int, dict[str, Json]]]

    @property
    def uses_server_tools(self) -> bool:
        """True if the turn uses provider-run tools, so that the provider may have paused it."""
        return any(block["type"] in _OWN for _, _, block in self.blocks)

    def blocks_of(self, block_type: str) -> list[tuple[int, int, dict[str, Json]]]:
        """Return the blocks of one type, each with its position."""
        return [placed for placed in self.blocks if placed[2]["type"] == block_type]

    @property
    def calls(self) -> list[str]:
        """The ids of the calls in the turn."""
        return [block["id"] for _, _, block in self.blocks_of("tool_use")]

    @property
    def first_answers(self) -> set[str]:
        """The call ids of the results with which the turn begins."""
        ids: set[str] = set()
        for _, _, block in self.blocks:
            if block["type"] != "tool_result":
                break
            ids.add(block["tool_use_id"])
        return ids


def _merge_turns(messages: list[Json], mode: Mode) -> list[_WireTurn]:
    """Return the turns of a conversation, after merging adjacent messages as the host does."""
    turns: list[_WireTurn] = []
    for at, message in enumerate(messages):
        blocks = [(at, number, block) for number, block in enumerate(_blocks(message))]
        if turns and _continues_turn(turns[-1], message, mode):
            turns[-1] = _WireTurn(turns[-1].role, turns[-1].message_index, [*turns[-1].blocks, *blocks])
        else:
            turns.append(_WireTurn(message["role"], at, blocks))
    return turns


def _continues_turn(turn: _WireTurn, message: Json, mode: Mode) -> bool:
    """Return True if the host merges a message into the turn before it."""
    if turn.role != message["role"] or turn.role == "system":
        return False
    return mode == "hosted" or (turn.role == "assistant" and turn.uses_server_tools)


def _check_sequence(messages: list[Json], mode: Mode, profile: AnthropicProfile) -> None:
    turns = _merge_turns(messages, mode)
    if turns[0].role != "user" and not turns[0].blocks_of("compaction"):
        raise RULES["ANT-24"].refuse()
    _check_unique_call_ids(turns)
    _check_server_calls(turns)
    # Pairing is checked before alternation, because a pairing error names the calls, which is more helpful.
    before: _WireTurn | None = None
    for at, turn in enumerate(turns):
        following = turns[at + 1 : at + 3]
        if turn.role == "assistant":
            _check_answered(turn, following, mode)
        _check_results(turn, before)
        before = turn
    _check_alternation(turns)
    if turns[-1].role == "assistant" and not profile.prefill and not turns[-1].uses_server_tools:
        raise RULES["ANT-27"].refuse()


def _check_unique_call_ids(turns: list[_WireTurn]) -> None:
    seen: set[str] = set()
    for turn in turns:
        for at, number, block in turn.blocks_of("tool_use"):
            if block["id"] in seen:
                raise RULES["ANT-05"].refuse(at=at, block=number)
            seen.add(block["id"])


def _check_answered(turn: _WireTurn, following: Sequence[_WireTurn], mode: Mode) -> None:
    """Check that the next turn begins with the results of all calls of a turn."""
    if not (calls := turn.calls):
        return
    if following and following[0].role != "user":
        raise RULES["ANT-04"].refuse()
    answers = following[0] if following else _WireTurn("user", turn.message_index, ())
    given = {block["tool_use_id"] for _, _, block in answers.blocks_of("tool_result")}
    if missing := [call for call in calls if call not in given]:
        later = following[1] if len(following) > 1 and following[1].role == "user" else None
        split = later is not None and set(missing) <= later.first_answers
        rule = "ANT-12" if split else "ANT-01"
        raise RULES[rule].refuse(at=turn.message_index, ids=", ".join(missing))
    if displaced := [call for call in calls if call not in answers.first_answers]:
        if mode == "strict":
            raise RULES["ANT-03"].refuse(at=answers.message_index, count=len(calls))
        raise RULES["ANT-01"].refuse(at=turn.message_index, ids=", ".join(displaced))


def _check_results(turn: _WireTurn, previous: _WireTurn | None) -> None:
    """Check that each result in a turn answers a different call of the previous turn."""
    calls = set[str]() if previous is None else set(previous.calls)
    seen: set[str] = set()
    for at, number, block in turn.blocks_of("tool_result"):
        call_id = block["tool_use_id"]
        if call_id not in calls:
            raise RULES["ANT-02"].refuse(at=at, block=number, id=call_id)
        if call_id in seen:
            raise RULES["ANT-06"].refuse(at=at, block=number, id=call_id)
        seen.add(call_id)


def _check_server_calls(turns: list[_WireTurn]) -> None:
    """Check the results of provider-run tools. Their calls stay open while the client answers its own calls."""
    pending: dict[str, str] = {}
    for turn in turns:
        if turn.role == "assistant":
            _check_server_results(turn, pending)
        elif turn.role == "user" and pending and len(turn.blocks_of("tool_result")) < len(turn.blocks):
            raise RULES["ANT-10"].refuse(at=turn.message_index)


def _check_server_results(turn: _WireTurn, pending: dict[str, str]) -> None:
    for at, number, block in turn.blocks:
        which = block["type"]
        if which in SERVER_CALLS:
            pending[block["id"]] = which
        elif which in SERVER_RESULTS:
            call_id, call = block["tool_use_id"], SERVER_RESULTS[which]
            if pending.pop(call_id, None) != call:
                raise RULES["ANT-11"].refuse(at=at, block=number, type=which, call=call, id=call_id)


def _check_alternation(turns: list[_WireTurn]) -> None:
    """Check the roles of successive turns."""
    for before, turn in pairwise(turns):
        if before.role == turn.role != "system":
            raise RULES["ANT-26"].refuse(role=turn.role)
        ends_in_server_tool = bool(before.blocks) and before.blocks[-1][2]["type"] in _OWN
        if turn.role == "system" and before.role != "user" and not ends_in_server_tool:
            raise RULES["ANT-S07"].refuse(at=turn.message_index)
        if before.role == "system" and turn.role != "assistant":
            raise RULES["ANT-S07"].refuse(at=before.message_index)


def _blocks(message: dict[str, Json]) -> list[dict[str, Json]]:
    content = message.get("content", [])
    return content if is_array(content) else [{"type": "text", "text": content}]
