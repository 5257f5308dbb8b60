"""Create and check stand-in signatures of Anthropic's thinking blocks.

Theory of operation. A signature contains everything that the block was bound to when it was created: model, account,
system prompt, tools, all content before it, the thinking block before it, its position in its message and its own text,
each as a digest, under an HMAC. So the server stores nothing: it opens a returned signature and compares.

The digest of the content before a block excludes thinking and cache breakpoints, because breakpoints may
move and thinking may be dropped from the start of a conversation. Thinking is chained instead: a block
contains the digest of its predecessor. If any thinking precedes a block, it must end with that predecessor. So removal
from the start, from the end or of all thinking is accepted; removal from the middle and reinsertion are not.
Successive messages of one role count as one, because the API merges them.
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
from actors.strict.rules.anthropic_shapes import AHEAD
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
from actors.strict.rules.reading import cached_result, standard_of, unchecked_items

THINKING = frozenset({"thinking", "redacted_thinking"})
_DIGEST = 16
_LEADING, _ENDING = standard_of("ANT thinking leads"), standard_of("ANT thinking ends")


@dataclass(frozen=True, slots=True)
class _SealedThinking:
    """The state that a signature binds a thinking block to. All fields except the first two are digests."""

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
    """Return the signature of a thinking block of `text`.

    Args:
        request: The request the response answers.
        produced: The blocks of the response before this one.
        mode: The mode of the host; in `hosted` mode it ignores thinking of other models.
    """
    walk = _PrefixWalk(request, settings, mode)
    for message in request["messages"]:
        for block, written in cached_result(_written_blocks, message):
            walk.pass_block(block, written)
    for made in produced:
        walk.pass_block(made, _written_block("assistant", made))
    return _encode_signature(walk.seal(produced, text), settings)


def check(request: Json, mode: Mode, profile: AnthropicProfile, settings: AnthropicSettings) -> None:
    """Check the thinking blocks of a request with valid shape and sequence.

    Raises:
        RuleBroken: At the first broken rule.
    """
    messages = request["messages"]
    if any(cached_result(_thinks, message) for message in messages):
        if mode == "strict" and not profile.interleaved:
            _check_leading(messages)
        _Check(request, mode, profile, settings).run()
    for at, message in unchecked_items(messages, _ENDING):
        kinds = _kinds(message)
        if kinds and kinds[-1] in THINKING:
            raise RULES["ANT-52"].refuse(at=at)
    thinking = object_at(request, "thinking").get("type")
    if thinking == "enabled":
        _check_open_loop(messages)
    if profile.reasoning and thinking != "disabled" and any(map(_calls_unthinking, messages)):
        raise RULES["DSK-06"].refuse()


def _calls_unthinking(message: Json) -> bool:
    kinds = _said_kinds(message)
    return "tool_use" in kinds and kinds[0] not in THINKING


def _check_leading(messages: list[Json]) -> None:
    for at, message in unchecked_items(messages, _LEADING):
        kinds = _said_kinds(message)
        if kinds and kinds[0] not in THINKING and THINKING.intersection(kinds):
            raise RULES["ANT-39"].refuse(at=at, found=kinds[0])


def _check_open_loop(messages: list[Json]) -> None:
    """ANT-40: with manual thinking, the message that opened the current tool loop starts with thinking."""
    turns: list[tuple[str, int, list[str]]] = []
    for at, message in enumerate(messages):
        if message["role"] == "system":
            continue
        if turns and turns[-1][0] == message["role"]:
            turns[-1][2].extend(_said_kinds(message))
        else:
            turns.append((message["role"], at, _said_kinds(message)))
    opener = len(turns) - 2
    if opener < 0 or "tool_result" not in turns[-1][2]:
        return
    while opener > 1 and set(turns[opener - 1][2]) == {"tool_result"}:
        opener -= 2
    _, at, kinds = turns[opener]
    if kinds[0] not in THINKING:
        raise RULES["ANT-40"].refuse(at=at, found=kinds[0])


class _Check:
    """A check of the thinking blocks of one request."""

    def __init__(
        self, request: Json, mode: Mode, profile: AnthropicProfile, settings: AnthropicSettings
    ) -> None:
        self._messages: list[Json] = request["messages"]
        self._walk = _PrefixWalk(request, settings, mode)
        self._settings = settings
        self._unsigned = profile.reasoning
        self._bound = profile.prefix_bound and not _drops_mismatches(request)
        roles = [message["role"] for message in self._messages]
        self._latest = len(roles) - 1 - roles[::-1].index("assistant")

    def run(self) -> None:
        for at, message in enumerate(self._messages):
            for number, (block, text) in enumerate(cached_result(_written_blocks, message)):
                if text is None:
                    self._check_block(at, number, _blocks(message))
                self._walk.pass_block(block, text)

    def _check_block(self, at: int, number: int, blocks: list[Json]) -> None:
        block = blocks[number]
        signature, text = _signature(block), block.get("thinking", "")
        if not signature and not text and block["type"] == "thinking":
            raise RULES["ANT-43"].refuse(at=at, block=number)
        if self._settings.signatures == "trust" and signature:
            return
        if self._unsigned and text and not signature:
            return
        seal = _open_signature(signature, self._settings)
        if seal is None:
            raise RULES["ANT-42"].refuse(at=at, block=number)
        if not self._walk.is_bound(seal):
            if self._walk.drops_foreign:
                return
            raise RULES["ANT-42"].refuse(at=at, block=number)
        now = self._walk.seal(blocks[:number], text)
        edited = seal.text != now.text
        if at == self._latest and (edited or seal.place != now.place):
            raise RULES["ANT-41"].refuse(at=at, block=number)
        if edited:
            raise RULES["ANT-42"].refuse(at=at, block=number)
        if self._bound:
            self._check_prefix(at, number, seal, now)

    def _check_prefix(self, at: int, number: int, then: _SealedThinking, now: _SealedThinking) -> None:
        what = next((name for name, changed in _differences(then, now) if changed), None)
        if what is not None:
            raise RULES["ANT-44"].refuse(at=at, block=number, what=f"What changed: {what}.")


def _differences(then: _SealedThinking, now: _SealedThinking) -> Iterable[tuple[str, bool]]:
    yield "`system`", then.system != now.system
    yield "`tools`", then.tools != now.tools
    yield "an earlier message", then.before != now.before
    yield "an earlier thinking block", bool(now.previous) and then.previous != now.previous


class _PrefixWalk:
    """The digests of the content before the current position."""

    def __init__(self, request: Json, settings: AnthropicSettings, mode: Mode) -> None:
        system: Json = request.get("system") or list[Json]()
        system = [{"type": "text", "text": system}] if isinstance(system, str) else system
        self._system = _digest(dump([_plain(block) for block in system]))
        self._tools = _digest(
            b"[%b]" % b",".join([cached_result(_encode_plain, tool) for tool in request.get("tools") or ()])
        )
        self._content = hashlib.sha256()
        self._previous = ""
        self._model: str = request["model"]
        self._settings = settings
        self.drops_foreign = mode == "hosted"

    def pass_block(self, block: Json, text: bytes | None) -> None:
        """Advance past a block; `text` is the form for its digest, None for thinking."""
        if text is not None:
            self._content.update(text)
            return
        signature = _signature(block)
        seal = _open_signature(signature, self._settings)
        if not (self.drops_foreign and seal is not None and not self.is_bound(seal)):
            self._previous = _digest(signature.encode())

    def is_bound(self, seal: _SealedThinking) -> bool:
        return (seal.model, seal.account) == (self._model, self._settings.account)

    def seal(self, earlier: Sequence[Json], text: str) -> _SealedThinking:
        place = [
            _digest(block.get("thinking", "").encode()) if block["type"] in THINKING else block["type"]
            for block in earlier
        ]
        return _SealedThinking(
            model=self._model,
            account=self._settings.account,
            system=self._system,
            tools=self._tools,
            before=self._content.copy().hexdigest()[:_DIGEST],
            previous=self._previous,
            place=_digest(dump(place)),
            text=_digest(text.encode()),
        )


def _encode_signature(seal: _SealedThinking, settings: AnthropicSettings) -> str:
    payload = dump(asdict(seal))
    return base64.b64encode(_mac(payload, settings.secret) + payload).decode()


def _open_signature(signature: str, settings: AnthropicSettings) -> _SealedThinking | None:
    return _unseal(signature, settings.secret)


@lru_cache(maxsize=2000)
def _unseal(signature: str, secret: bytes) -> _SealedThinking | None:
    try:
        raw = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return None
    mac, payload = raw[:32], raw[32:]
    if not hmac.compare_digest(mac, _mac(payload, secret)):
        return None
    return _SealedThinking(**json.loads(payload))


def _mac(payload: bytes, secret: bytes) -> bytes:
    return hmac.digest(secret, payload, "sha256")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGEST]


def _signature(block: Json) -> str:
    signature: str = block["signature"] if block["type"] == "thinking" else block["data"]
    return signature


def _written_blocks(message: Json) -> tuple[tuple[Json, bytes | None], ...]:
    """Return the blocks of a message, each with the form for its digest."""
    role = message["role"]
    return tuple((block, _written_block(role, block)) for block in _blocks(message))


def _written_block(role: str, block: Json) -> bytes | None:
    return None if block["type"] in THINKING else dump([role, _plain(block)])


def _encode_plain(value: Json) -> bytes:
    return dump(_plain(value))


def _plain(value: Json) -> Json:
    """Return a block or tool for its digest: no breakpoints, citations or nulls, and sorted outer keys.

    The keys of a call's input keep their order, because the model wrote them in that order, and another order is a
    different prefix.
    """
    if not is_object(value):
        return value
    plain = {key: value[key] for key in sorted(value) if key != "cache_control" and value[key] is not None}
    if is_array(plain.get("citations")):
        del plain["citations"]
    if is_array(plain.get("content")):
        plain["content"] = [_plain(part) for part in plain["content"]]
    return plain


def _drops_mismatches(request: Json) -> bool:
    binding = object_at(object_at(request, "thinking"), "block_binding")
    return bool(binding.get("prefix_mismatch_behavior") == "drop_block")


def _blocks(message: Json) -> list[Json]:
    content = message.get("content", "")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    blocks: list[Json] = content
    return blocks


def _thinks(message: Json) -> bool:
    return any(block["type"] in THINKING for block in _blocks(message))


def _kinds(message: Json) -> list[str]:
    return [block["type"] for block in _blocks(message)]


def _said_kinds(message: Json) -> list[str]:
    """Return the types of the blocks after those that the provider put at the beginning of an answer."""
    kinds = _kinds(message)
    ahead = next((at for at, kind in enumerate(kinds) if kind not in AHEAD), len(kinds))
    return kinds[ahead:]
