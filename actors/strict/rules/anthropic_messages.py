"""Anthropic Messages: the walk over `messages`: shapes, ids and names, content, sequence.

Theory of operation. Pairing is local: the calls of an assistant turn must be answered, all of them and by
nothing else, at the head of the turn after it. So the sequence is walked turn by turn with one look ahead.
The official host first merges neighbours of one role into one turn; strict copies take each message as a
turn of its own and refuse two of one role in a row. `_turns` is that difference, and the only one.

The provider may pause a turn that uses its own tools (`pause_turn`): the conversation may end there, and the turn goes
on in another assistant message. A call of such a tool also stays open while the client answers calls made beside it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from actors.strict.rules.anthropic_rules import ID, MCP_ID, RULES, SERVER_ID, TOOL_NAME
from actors.strict.rules.anthropic_shapes import BLOCKS, IN_RESULT, MESSAGE_KEYS, SERVER_CALLS, SERVER_RESULTS
from actors.strict.rules.base import AnthropicProfile, Json, Mode, unknown_key
from actors.strict.rules.reading import fresh, standard_of

_ID = re.compile(ID)
_SERVER_IDS = {
    "server_tool_use": ("ANT-07-server", re.compile(SERVER_ID)),
    "mcp_tool_use": ("ANT-07-mcp", re.compile(MCP_ID)),
}
_NAME = re.compile(TOOL_NAME)
_MAX_NAME = 128
_MOST_MESSAGES = 100_000
_MAX_IMAGE = 5_242_880
_MARK_KEYS = frozenset({"type", "ttl"})
_TYPE_NAMES = {str: "string", int: "integer", bool: "boolean", list: "list", dict: "dictionary"}


_KEYS = {name: shape.keys for name, shape in BLOCKS.items()}
_OWN = frozenset({*SERVER_CALLS, *SERVER_RESULTS})
_IDS, _CONTENT = standard_of("ANT ids"), standard_of("ANT content")


def check(messages: Json, mode: Mode, profile: AnthropicProfile) -> None:
    """Walk the messages of one request.

    Raises:
        Refused: At the first rule that is broken.
    """
    if not isinstance(messages, list):
        raise RULES["ANT-S02"].refused(path="messages", kind="list")
    if not messages:
        raise RULES["ANT-25"].refused()
    if len(messages) > _MOST_MESSAGES:
        raise RULES["ANT-55"].refused(most=_MOST_MESSAGES, count=len(messages))
    for at, message in fresh(messages, standard_of("ANT shape", profile)):
        _check_shape(message, f"messages.{at}", profile)
    for at, message in fresh(messages, _IDS):
        _check_ids(message, at)
    for at, message in fresh(messages[:-1], _CONTENT):
        _check_content(message, at, final=False)
    _check_content(messages[-1], len(messages) - 1, final=True)
    _check_sequence(messages, mode, profile)


def _check_shape(message: Json, path: str, profile: AnthropicProfile) -> None:
    if not isinstance(message, dict):
        raise RULES["ANT-S02"].refused(path=path, kind="dictionary")
    role = field(message, "role", str, f"{path}.")
    if role == "system" and not profile.mid_system:
        raise RULES["ANT-S06"].refused()
    if role not in ("user", "assistant", "system"):
        raise RULES["ANT-S03"].refused(path=f"{path}.role", values="'user' or 'assistant'")
    if "content" not in message and role != "system":
        raise RULES["ANT-S01"].refused(path=f"{path}.content")
    only(message, MESSAGE_KEYS[role], path)
    content = message.get("content", "")
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise RULES["ANT-S02"].refused(path=f"{path}.content", kind="list")
    for at, block in enumerate(content):
        _check_block(block, role, f"{path}.content.{at}")


def _check_block(block: Json, role: str, path: str) -> None:
    if not isinstance(block, dict):
        raise RULES["ANT-S02"].refused(path=path, kind="dictionary")
    which = field(block, "type", str, f"{path}.")
    shape = BLOCKS.get(which)
    if shape is None:
        tags = ", ".join(f"'{name}'" for name in BLOCKS)
        raise RULES["ANT-S04"].refused(path=path, tag=which, tags=tags)
    here = f"{path}.{which}"
    if role not in shape.roles and not (role == "tool_result" and which in IN_RESULT):
        raise RULES["ANT-S05"].refused(path=path, type=which, role=" or ".join(sorted(shape.roles)))
    for key, wanted in shape.required.items():
        field(block, key, wanted, f"{here}.")
    if "cache_control" in block and which in ("thinking", "redacted_thinking"):
        raise RULES["ANT-34"].refused(path=here)
    only(block, _KEYS[which], here)
    cache_mark(block, here)
    if which == "tool_result":
        _check_result(block, here)
    elif which == "image":
        _check_image(block["source"], here)


def _check_result(block: dict[str, Json], path: str) -> None:
    field(block, "is_error", bool, f"{path}.", required=False)
    content = block.get("content")
    if block.get("is_error") and (content is None or (isinstance(content, str) and not content.strip())):
        raise RULES["ANT-53"].refused(path=path)
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise RULES["ANT-S02"].refused(path=f"{path}.content", kind="list")
    if not content:
        raise RULES["ANT-29"].refused(path=f"{path}.content")
    for at, part in enumerate(content):
        inner = f"{path}.content.{at}"
        tag = part.get("type") if isinstance(part, dict) else None
        if isinstance(tag, str) and tag not in IN_RESULT:
            tags = ", ".join(f"'{name}'" for name in sorted(IN_RESULT))
            raise RULES["ANT-S04"].refused(path=inner, tag=tag, tags=tags)
        _check_block(part, "tool_result", inner)
    if block.get("is_error") and any(part["type"] != "text" for part in content):
        raise RULES["ANT-51"].refused(path=path)


def _check_image(source: dict[str, Json], path: str) -> None:
    which = field(source, "type", str, f"{path}.source.")
    if which != "base64":
        return
    field(source, "media_type", str, f"{path}.source.base64.")
    size = len(field(source, "data", str, f"{path}.source.base64."))
    if size > _MAX_IMAGE:
        raise RULES["ANT-30"].refused(path=f"{path}.source.base64", size=size)


def _check_ids(message: dict[str, Json], at: int) -> None:
    for number, block in enumerate(_blocks(message)):
        path = f"messages.{at}.content.{number}.{block['type']}"
        if block["type"] == "tool_use":
            _check_id(block["id"], f"{path}.id")
            check_name(block["name"], f"{path}.name")
        elif block["type"] == "tool_result":
            _check_id(block["tool_use_id"], f"{path}.tool_use_id")
        elif block["type"] in _SERVER_IDS:
            rule, pattern = _SERVER_IDS[block["type"]]
            if not pattern.fullmatch(block["id"]):
                raise RULES[rule].refused(path=f"{path}.id")


def _check_id(call_id: str, path: str) -> None:
    if not _ID.fullmatch(call_id):
        raise RULES["ANT-07"].refused(path=path)


def check_name(name: str, path: str) -> None:
    """Refuse a tool name the API does not take, in `tools` and in history alike."""
    if len(name) > _MAX_NAME:
        raise RULES["ANT-08-length"].refused(path=path)
    if not _NAME.fullmatch(name):
        raise RULES["ANT-08"].refused(path=path)


def _check_content(message: dict[str, Json], at: int, *, final: bool) -> None:
    content, prefill = message.get("content"), final and message["role"] == "assistant"
    if not content:
        if not prefill and message["role"] != "system":
            raise RULES["ANT-22"].refused(at=at)
        return
    texts = [{"text": content}] if isinstance(content, str) else _texts(content)
    for text in texts:
        check_text(text, "messages", f"messages.{at}")
    if prefill and not any(block["type"] in _OWN for block in _blocks(message)):
        tail = content if isinstance(content, str) else content[-1].get("text", "")
        if tail != tail.rstrip():
            raise RULES["ANT-23"].refused()


def _texts(content: list[Json]) -> Iterable[dict[str, Json]]:
    for block in content:
        if block["type"] == "text":
            yield block
        elif block["type"] == "tool_result" and isinstance(block.get("content"), list):
            yield from (part for part in block["content"] if part["type"] == "text")


def check_text(block: Mapping[str, Json], where: str, path: str) -> None:
    """Refuse a text that is empty or only whitespace, and a cache breakpoint on such a text."""
    if not block["text"].strip() and block.get("cache_control") is not None:
        raise RULES["ANT-33"].refused(path=path)
    if not block["text"]:
        raise RULES["ANT-20"].refused(where=where)
    if block["text"].isspace():
        raise RULES["ANT-21"].refused(where=where)


@dataclass(frozen=True, slots=True)
class _WireTurn:
    role: str
    at: int
    blocks: Sequence[tuple[int, int, dict[str, Json]]]

    @property
    def uses_server_tools(self) -> bool:
        """Whether the provider's own tools were called: then the provider may have paused the turn."""
        return any(block["type"] in _OWN for _, _, block in self.blocks)

    def of(self, kind: str) -> list[tuple[int, int, dict[str, Json]]]:
        return [placed for placed in self.blocks if placed[2]["type"] == kind]

    @property
    def calls(self) -> list[str]:
        return [block["id"] for _, _, block in self.of("tool_use")]

    @property
    def first_answers(self) -> set[str]:
        """Ids answered before anything else is said."""
        ids: set[str] = set()
        for _, _, block in self.blocks:
            if block["type"] != "tool_result":
                break
            ids.add(block["tool_use_id"])
        return ids


def _turns(messages: list[Json], mode: Mode) -> list[_WireTurn]:
    turns: list[_WireTurn] = []
    for at, message in enumerate(messages):
        blocks = [(at, number, block) for number, block in enumerate(_blocks(message))]
        if turns and _continues(turns[-1], message, mode):
            turns[-1] = _WireTurn(turns[-1].role, turns[-1].at, [*turns[-1].blocks, *blocks])
        else:
            turns.append(_WireTurn(message["role"], at, blocks))
    return turns


def _continues(turn: _WireTurn, message: Json, mode: Mode) -> bool:
    if turn.role != message["role"] or turn.role == "system":
        return False
    return mode == "hosted" or (turn.role == "assistant" and turn.uses_server_tools)


def _check_sequence(messages: list[Json], mode: Mode, profile: AnthropicProfile) -> None:
    turns = _turns(messages, mode)
    if turns[0].role != "user" and not turns[0].of("compaction"):
        raise RULES["ANT-24"].refused()
    _check_unique(turns)
    _check_server_calls(turns)
    # Pairing is judged before alternation: both refuse, and the pairing fault is the one to know about.
    before: _WireTurn | None = None
    for at, turn in enumerate(turns):
        following = turns[at + 1 : at + 3]
        if turn.role == "assistant":
            _check_answered(turn, following, mode)
        _check_results(turn, before)
        before = turn
    _check_neighbours(turns)
    if turns[-1].role == "assistant" and not profile.prefill and not turns[-1].uses_server_tools:
        raise RULES["ANT-27"].refused()


def _check_unique(turns: list[_WireTurn]) -> None:
    seen: set[str] = set()
    for turn in turns:
        for at, number, block in turn.of("tool_use"):
            if block["id"] in seen:
                raise RULES["ANT-05"].refused(at=at, block=number)
            seen.add(block["id"])


def _check_answered(turn: _WireTurn, following: Sequence[_WireTurn], mode: Mode) -> None:
    if not (calls := turn.calls):
        return
    if following and following[0].role != "user":
        raise RULES["ANT-04"].refused()
    answers = following[0] if following else _WireTurn("user", turn.at, ())
    given = {block["tool_use_id"] for _, _, block in answers.of("tool_result")}
    if missing := [call for call in calls if call not in given]:
        later = following[1] if len(following) > 1 and following[1].role == "user" else None
        split = later is not None and set(missing) <= later.first_answers
        rule = "ANT-12" if split else "ANT-01"
        raise RULES[rule].refused(at=turn.at, ids=", ".join(missing))
    if displaced := [call for call in calls if call not in answers.first_answers]:
        if mode == "strict":
            raise RULES["ANT-03"].refused(at=answers.at, count=len(calls))
        raise RULES["ANT-01"].refused(at=turn.at, ids=", ".join(displaced))


def _check_results(turn: _WireTurn, before: _WireTurn | None) -> None:
    calls = set(before.calls) if before is not None else set()
    seen: set[str] = set()
    for at, number, block in turn.of("tool_result"):
        call_id = block["tool_use_id"]
        if call_id not in calls:
            raise RULES["ANT-02"].refused(at=at, block=number, id=call_id)
        if call_id in seen:
            raise RULES["ANT-06"].refused(at=at, block=number, id=call_id)
        seen.add(call_id)


def _check_server_calls(turns: list[_WireTurn]) -> None:
    """Check the results of the provider's own tools. A call stays open until then, over results of the client's."""
    pending: dict[str, str] = {}
    for turn in turns:
        if turn.role == "assistant":
            _check_server_results(turn, pending)
        elif turn.role == "user" and pending and len(turn.of("tool_result")) < len(turn.blocks):
            raise RULES["ANT-10"].refused(at=turn.at)


def _check_server_results(turn: _WireTurn, pending: dict[str, str]) -> None:
    for at, number, block in turn.blocks:
        which = block["type"]
        if which in SERVER_CALLS:
            pending[block["id"]] = which
        elif which in SERVER_RESULTS:
            call_id, call = block["tool_use_id"], SERVER_RESULTS[which]
            if pending.pop(call_id, None) != call:
                raise RULES["ANT-11"].refused(at=at, block=number, type=which, call=call, id=call_id)


def _check_neighbours(turns: list[_WireTurn]) -> None:
    for before, turn in pairwise(turns):
        if before.role == turn.role != "system":
            raise RULES["ANT-26"].refused(role=turn.role)
        ends_in_server_tool = bool(before.blocks) and before.blocks[-1][2]["type"] in _OWN
        if turn.role == "system" and before.role != "user" and not ends_in_server_tool:
            raise RULES["ANT-S07"].refused(at=turn.at)
        if before.role == "system" and turn.role != "assistant":
            raise RULES["ANT-S07"].refused(at=before.at)


def _blocks(message: dict[str, Json]) -> list[dict[str, Json]]:
    content = message.get("content", [])
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def field(value: dict[str, Json], key: str, wanted: type, path: str, *, required: bool = True) -> Json:
    """Return `value[key]` of the wanted JSON type; `path` ends in a dot. Optional: null is absence."""
    if key not in value:
        if required:
            raise RULES["ANT-S01"].refused(path=f"{path}{key}")
        return None
    found = value[key]
    if found is None and not required:
        return None
    if not isinstance(found, wanted) or (wanted is int and isinstance(found, bool)):
        raise RULES["ANT-S02"].refused(path=f"{path}{key}", kind=_TYPE_NAMES[wanted])
    return found


def only(value: dict[str, Json], allowed: frozenset[str], path: str) -> None:
    """Refuse keys beyond the allowed ones."""
    if (key := unknown_key(value, allowed)) is not None:
        raise RULES["ANT-28"].refused(path=f"{path}.{key}")


def cache_mark(value: dict[str, Json], path: str) -> None:
    """Refuse a `cache_control` of the wrong shape."""
    prefix = f"{path}." if path else ""
    mark = field(value, "cache_control", dict, prefix, required=False)
    if mark is None:
        return
    only(mark, _MARK_KEYS, f"{prefix}cache_control")
    if mark.get("type") != "ephemeral":
        raise RULES["ANT-S03"].refused(path=f"{prefix}cache_control.type", values="'ephemeral'")
    if mark.get("ttl", "5m") not in ("5m", "1h"):
        raise RULES["ANT-S03"].refused(path=f"{prefix}cache_control.ttl", values="'5m' or '1h'")
