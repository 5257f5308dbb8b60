"""Create and check simulated signatures for Anthropic's thinking blocks.

Theory of operation. A signature contains everything that the block was bound to when it was created: the model, the
account, the system prompt, the tools, all content before the block, the previous thinking block, the block's position
in its message and its own text. The signature contains digests of most of this state, and an HMAC protects it. So the
server need not store anything: when a request returns a signature, the server compares the signed state with the
request.

The digest of the content before a block excludes cache breakpoints, because they may move. It excludes thinking as
well, because thinking may be dropped from the start of a conversation. Instead, each signature contains a digest of the
previous thinking block. If thinking precedes a block in a request, the nearest must be that previous block. So a client
may remove thinking from the start, from the end or completely. It may not remove thinking from the middle, or reinsert
removed thinking. Successive messages with the same role count as one, because the API merges them.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

from actors.strict.rules.anthropic_rules import RULES
from actors.strict.rules.anthropic_shapes import LEADING_BLOCKS
from actors.strict.rules.base import (
    AnthropicProfile,
    AnthropicSettings,
    Json,
    Mode,
    dump,
    is_array,
    is_object,
    object_at,
)
from actors.strict.rules.reading import cached_result, key_of_check, unchecked_items

THINKING = frozenset({"thinking", "redacted_thinking"})
_DIGEST = 16
_LEADING, _ENDING = key_of_check("ANT thinking leads"), key_of_check("ANT thinking ends")


@dataclass(frozen=True, slots=True)
class _SignedThinking:
    """The state to which a signature binds a thinking block.

    All fields except the first two are digests. `before` covers the content before the block, `previous` the previous
    thinking block, and `place` the block's position in its message.
    """

    model: str
    account: str
    system: str
    tools: str
    before: str
    previous: str
    place: str
    text: str


def sign(
    request: Json, produced: Sequence[Json], text: str, settings: AnthropicSettings, mode: Mode = "strict"
) -> str:
    """Return the signature of a thinking block.

    Args:
        request: The request that the response answers.
        produced: The blocks of the response before the thinking block.
        text: The text of the thinking block.
        settings: The settings of the host, with its account and secret.
        mode: The mode of the host. In `hosted` mode, the host ignores thinking that other models produced.
    """
    walk = _PrefixDigests(request, settings, mode)
    for message in request["messages"]:
        for block, written in cached_result(_encoded_blocks, message):
            walk.add_block(block, written)
    for made in produced:
        walk.add_block(made, _encode_block("assistant", made))
    return _encode_signature(walk.signature_content(produced, text), settings)


def check(request: Json, mode: Mode, profile: AnthropicProfile, settings: AnthropicSettings) -> None:
    """Check the thinking blocks of a request whose shape and sequence are valid.

    Raises:
        RuleBroken: At the first broken rule.
    """
    messages = request["messages"]
    if any(cached_result(_has_thinking, message) for message in messages):
        if mode == "strict" and not profile.interleaved:
            _check_first_blocks(messages)
        _ThinkingCheck(request, mode, profile, settings).check_blocks()
    for at, message in unchecked_items(messages, _ENDING):
        kinds = _block_types(message)
        if kinds and kinds[-1] in THINKING:
            raise RULES["ANT-52"].refuse(at=at)
    thinking = object_at(request, "thinking").get("type")
    if thinking == "enabled":
        _check_open_loop(messages)
    if profile.reasoning and thinking != "disabled" and any(map(_has_calls_without_thinking, messages)):
        raise RULES["DSK-06"].refuse()


def _has_calls_without_thinking(message: Json) -> bool:
    """Return True if a message contains calls and does not start with thinking."""
    kinds = _answer_block_types(message)
    return "tool_use" in kinds and kinds[0] not in THINKING


def _check_first_blocks(messages: list[Json]) -> None:
    """Check that each message with thinking starts with thinking (ANT-39)."""
    for at, message in unchecked_items(messages, _LEADING):
        kinds = _answer_block_types(message)
        if kinds and kinds[0] not in THINKING and THINKING.intersection(kinds):
            raise RULES["ANT-39"].refuse(at=at, found=kinds[0])


def _check_open_loop(messages: list[Json]) -> None:
    """If a request ends with tool results, check that the open turn starts with thinking (ANT-40).

    The open turn begins with the answer to the last user message that contains more than results. The rule applies to
    manual thinking.
    """
    turns: list[tuple[str, int, list[str]]] = []
    for at, message in enumerate(messages):
        if message["role"] == "system":
            continue
        if turns and turns[-1][0] == message["role"]:
            turns[-1][2].extend(_answer_block_types(message))
        else:
            turns.append((message["role"], at, _answer_block_types(message)))
    opener = len(turns) - 2
    if opener < 0 or "tool_result" not in turns[-1][2]:
        return
    while opener > 1 and set(turns[opener - 1][2]) == {"tool_result"}:
        opener -= 2
    _, at, kinds = turns[opener]
    if kinds[0] not in THINKING:
        raise RULES["ANT-40"].refuse(at=at, found=kinds[0])


class _ThinkingCheck:
    """Checks the thinking blocks of one request."""

    def __init__(
        self, request: Json, mode: Mode, profile: AnthropicProfile, settings: AnthropicSettings
    ) -> None:
        self._messages: list[Json] = request["messages"]
        self._walk = _PrefixDigests(request, settings, mode)
        self._settings = settings
        self._unsigned = profile.reasoning
        self._bound = profile.prefix_bound and not _drops_mismatches(request)
        roles = [message["role"] for message in self._messages]
        self._latest = len(roles) - 1 - roles[::-1].index("assistant")

    def check_blocks(self) -> None:
        for at, message in enumerate(self._messages):
            for number, (block, text) in enumerate(cached_result(_encoded_blocks, message)):
                if text is None:
                    self._check_block(at, number, _blocks(message))
                self._walk.add_block(block, text)

    def _check_block(self, message_index: int, block_index: int, blocks: list[Json]) -> None:
        block = blocks[block_index]
        signature, text = _signature_of(block), block.get("thinking", "")
        if not signature and not text and block["type"] == "thinking":
            raise RULES["ANT-43"].refuse(at=message_index, block=block_index)
        if self._settings.signatures == "trust" and signature:
            return
        if self._unsigned and text and not signature:
            return
        seal = _open_signature(signature, self._settings)
        if seal is None:
            raise RULES["ANT-42"].refuse(at=message_index, block=block_index)
        if not self._walk.is_bound(seal):
            if self._walk.drops_foreign:
                return
            raise RULES["ANT-42"].refuse(at=message_index, block=block_index)
        now = self._walk.signature_content(blocks[:block_index], text)
        edited = seal.text != now.text
        if message_index == self._latest and (edited or seal.place != now.place):
            raise RULES["ANT-41"].refuse(at=message_index, block=block_index)
        if edited:
            raise RULES["ANT-42"].refuse(at=message_index, block=block_index)
        if self._bound:
            self._check_prefix(message_index, block_index, seal, now)

    def _check_prefix(
        self, message_index: int, block_index: int, sealed: _SignedThinking, current: _SignedThinking
    ) -> None:
        """Check that the content before a thinking block has not changed since the block was signed."""
        what = next((name for name, changed in _prefix_differences(sealed, current) if changed), None)
        if what is not None:
            raise RULES["ANT-44"].refuse(at=message_index, block=block_index, what=f"What changed: {what}.")


def _prefix_differences(sealed: _SignedThinking, current: _SignedThinking) -> Iterable[tuple[str, bool]]:
    """Yield (name, changed) for each part of the prefix, where `changed` is True if the part has changed since the
    block was signed.
    """
    yield "`system`", sealed.system != current.system
    yield "`tools`", sealed.tools != current.tools
    yield "an earlier message", sealed.before != current.before
    yield "an earlier thinking block", bool(current.previous) and sealed.previous != current.previous


class _PrefixDigests:
    """Reads the blocks of a request in order, and computes digests of the content before the current position."""

    def __init__(self, request: Json, settings: AnthropicSettings, mode: Mode) -> None:
        system: Json = request.get("system") or list[Json]()
        system = [{"type": "text", "text": system}] if isinstance(system, str) else system
        self._system = _digest(dump([_without_unsigned_keys(block) for block in system]))
        self._tools = _digest(
            b"[%b]"
            % b",".join([cached_result(_encode_for_digest, tool) for tool in request.get("tools") or ()])
        )
        self._content = hashlib.sha256()
        self._previous = ""
        self._model: str = request["model"]
        self._settings = settings
        self.drops_foreign = mode == "hosted"

    def add_block(self, block: Json, text: bytes | None) -> None:
        """Add a block to the digests. `text` is its encoding for the digest, or None for a thinking block."""
        if text is not None:
            self._content.update(text)
            return
        signature = _signature_of(block)
        seal = _open_signature(signature, self._settings)
        if not (self.drops_foreign and seal is not None and not self.is_bound(seal)):
            self._previous = _digest(signature.encode())

    def is_bound(self, seal: _SignedThinking) -> bool:
        """Return True if a signature was created for this request's model and account."""
        return (seal.model, seal.account) == (self._model, self._settings.account)

    def signature_content(self, earlier_blocks: Sequence[Json], text: str) -> _SignedThinking:
        """Return the state that the signature of a thinking block at the current position must contain.

        `earlier_blocks` contains the preceding blocks of the same message.
        """
        place = [
            _digest(block.get("thinking", "").encode()) if block["type"] in THINKING else block["type"]
            for block in earlier_blocks
        ]
        return _SignedThinking(
            model=self._model,
            account=self._settings.account,
            system=self._system,
            tools=self._tools,
            before=self._content.copy().hexdigest()[:_DIGEST],
            previous=self._previous,
            place=_digest(dump(place)),
            text=_digest(text.encode()),
        )


def _encode_signature(seal: _SignedThinking, settings: AnthropicSettings) -> str:
    payload = dump(asdict(seal))
    return base64.b64encode(_hmac_of(payload, settings.secret) + payload).decode()


def _open_signature(signature: str, settings: AnthropicSettings) -> _SignedThinking | None:
    return _decode_signature(signature, settings.secret)


@lru_cache(maxsize=2000)
def _decode_signature(signature: str, secret: bytes) -> _SignedThinking | None:
    try:
        raw = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return None
    mac, payload = raw[:32], raw[32:]
    if not hmac.compare_digest(mac, _hmac_of(payload, secret)):
        return None
    return _SignedThinking(**json.loads(payload))


def _hmac_of(payload: bytes, secret: bytes) -> bytes:
    return hmac.digest(secret, payload, "sha256")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGEST]


def _signature_of(block: Json) -> str:
    signature: str = block["signature"] if block["type"] == "thinking" else block["data"]
    return signature


def _encoded_blocks(message: Json) -> tuple[tuple[Json, bytes | None], ...]:
    """Return the blocks of a message, each with its encoding for the digest.

    The encoding of thinking blocks is None.
    """
    role = message["role"]
    return tuple((block, _encode_block(role, block)) for block in _blocks(message))


def _encode_block(role: str, block: Json) -> bytes | None:
    return None if block["type"] in THINKING else dump([role, _without_unsigned_keys(block)])


def _encode_for_digest(value: Json) -> bytes:
    return dump(_without_unsigned_keys(value))


def _without_unsigned_keys(value: Json) -> Json:
    """Return a block or tool in the form that the digest covers.

    Cache breakpoints, citations and nulls are removed, and the outer keys are sorted.

    The keys of a call's input keep their order, because the model wrote them in that order, and a different order is a
    different prefix.
    """
    if not is_object(value):
        return value
    plain = {key: value[key] for key in sorted(value) if key != "cache_control" and value[key] is not None}
    if is_array(plain.get("citations")):
        del plain["citations"]
    if is_array(plain.get("content")):
        plain["content"] = [_without_unsigned_keys(part) for part in plain["content"]]
    return plain


def _drops_mismatches(request: Json) -> bool:
    """Return True if the request lets the host drop thinking whose prefix has changed."""
    binding = object_at(object_at(request, "thinking"), "block_binding")
    return bool(binding.get("prefix_mismatch_behavior") == "drop_block")


def _blocks(message: Json) -> list[Json]:
    content = message.get("content", "")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    blocks: list[Json] = content
    return blocks


def _has_thinking(message: Json) -> bool:
    return any(block["type"] in THINKING for block in _blocks(message))


def _block_types(message: Json) -> list[str]:
    return [block["type"] for block in _blocks(message)]


def _answer_block_types(message: Json) -> list[str]:
    """Return the types of a message's blocks, without `LEADING_BLOCKS` at the beginning."""
    kinds = _block_types(message)
    ahead = next((at for at, kind in enumerate(kinds) if kind not in LEADING_BLOCKS), len(kinds))
    return kinds[ahead:]
