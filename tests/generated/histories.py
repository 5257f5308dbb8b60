"""Generate corrupt conversations: histories and ledgers with every corruption in the rulebook.

messages, ledger = history(7)

An author object writes a conversation and calls `draw(n)` for every choice, which returns a number from 0 to n - 1.
`history` uses a seeded random generator, fast enough for millions of conversations. `tests.generated.strategies` uses
Hypothesis instead, which can shrink. Choice 0 is always the simplest option, so shrunken conversations are simple.

The corruptions:

    pairing     calls without results, part of a batch, results split, doubled, contradicting, late, before
                their calls, under another role, without a call, a whole turn twice, words in between
    identity    canonical ids repeated, empty, over-long, hostile; native ids own, foreign, colliding
    native      parts of built-in tools for their provider, complete and halved; marks; unreadable parts
    thinking    sealed by the reader, by another model or account, by a stranger; unsealed, alone, last
    content     empty and blank texts, code, malformed arguments, values of any kind
    media       anywhere and in results, by the dozen, the same documents again and again
    ledger      empty, incomplete, with additional calls, contradictory; seals, and results that arrived after them

The content of a result contains a unique ASCII mark `R<n>.`, unless its type is too unusual, so tests can count results
in encoded bytes. The bytes of an image in a result are `I<n>.` for the same purpose.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import TypeAlias, TypeVar

from actors.core.data.jsonio import Json, quote
from actors.core.data.record import replace
from actors.core.ledger import Ledger
from actors.core.transcript.transcript import mint as projected
from actors.core.values.content import (
    Block,
    Media,
    Message,
    MessageRole,
    ProviderBlock,
    ProviderState,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from actors.core.values.identity import Binding, mint
from actors.testing.images import png_base64
from tests.generated.ledgers import Draw, LedgerAuthor
from tests.generated.parts import (
    ARGUMENTS,
    ASIDE,
    ATTACHED,
    DOCUMENTS,
    HOSTILE_IDS,
    IMAGE,
    ITEMS,
    MEDIA,
    NAMES,
    NATIVE,
    ODD_VALUES,
    OWN,
    ROLES,
    SIGNATURES,
    TEXTS,
    WRAPPED,
)

__all__ = ["READERS", "conversation", "history"]

T = TypeVar("T")

READERS: dict[str, Binding] = {
    "openai_chat": Binding("openai", "openai_chat", "https://openai.example/v1", "account-1", "gpt-test"),
    "anthropic": Binding("claude", "anthropic", "https://anthropic.example", "account-1", "claude-test"),
    "openai_responses": Binding(
        "responses", "openai_responses", "https://openai.example/v1", "account-1", "gpt-test"
    ),
    "gemini": Binding("gemini", "gemini", "https://gemini.example", "account-1", "gemini-test"),
    "vertex": Binding("vertex", "vertex", "https://vertex.example", "account-1", "gemini-test"),
    "gemini_2": Binding("gemini_2", "gemini_2", "https://gemini.example", "account-1", "gemini-2-test"),
    "bedrock": Binding("bedrock", "bedrock", "https://bedrock.example", "account-1", "anthropic.claude-test"),
    **{
        name: Binding(name, name, f"https://{name}.example", "account-1", "anthropic.claude-test")
        for name in ("vertex_anthropic", "bedrock_anthropic")
    },
    "mistral": Binding("mistral", "mistral", "https://mistral.example/v1", "account-1", "magistral"),
    "kimi": Binding("kimi", "kimi", "https://kimi.example/v1", "account-1", "k3"),
    "deepseek": Binding("deepseek", "deepseek", "https://deepseek.example", "account-1", "v4"),
    "openrouter": Binding("router", "openrouter", "https://router.example/v1", "account-1", "a/b"),
    **{
        name: Binding(name, name, f"https://{name}.example/v1", "account-1", "m")
        for name in (
            "xai",
            "qwen",
            "glm",
            "minimax",
            "groq",
            "vllm",
            "open_models",
            "azure",
            "llama_cpp",
            "ollama",
            "openai_compatible",
        )
    },
}
"""Bindings of generated conversations. Provider state that these sealed is sent back to them."""

_OPENAI, _CLAUDE = READERS["openai_chat"], READERS["anthropic"]
_ORIGINS: tuple[Binding, ...] = (
    _CLAUDE,
    _OPENAI,
    READERS["mistral"],
    READERS["kimi"],
    READERS["deepseek"],
    replace(READERS["openrouter"], upstream="One"),
    replace(READERS["openrouter"], upstream="Two"),
    Binding("claude", "anthropic", "https://anthropic.example", "account-1", "claude-other"),
    Binding("claude", "anthropic", "https://anthropic.example", "account-2", "claude-test"),
    Binding("claude", "anthropic", "https://copy.example", "account-1", "claude-test"),
    READERS["openai_responses"],
    Binding("responses", "openai_responses", "https://openai.example/v1", "account-1", "gpt-other"),
    READERS["gemini"],
    READERS["vertex"],
    READERS["gemini_2"],
    READERS["bedrock"],
    Binding("gemini", "gemini", "https://gemini.example", "account-2", "gemini-test"),
    Binding("kimi", "kimi", "https://elsewhere.example/v1", "account-1", "k3"),
)
_SIGNED_PARTS = ("gemini", "vertex", "gemini_2")
"""Dialects that put a signature on the signed part."""
_SEALS: dict[str, tuple[str, Json]] = {
    "mistral": ("thinking_chunk", quote('{"signature":"c2lnbmVk"}')),
    "kimi": ("reasoning_content", quote("reasoning_content")),
    "deepseek": ("reasoning_content", quote("reasoning_content")),
    "openrouter": ("reasoning_details", quote('[{"type":"reasoning.text","text":"hm","index":0}]')),
}
"""Kind of provider state for reasoning of Chat Completions vendors, by dialect."""


def history(seed: int) -> tuple[list[Message], Ledger]:
    """Return the conversation of a seed. Equal seeds give equal conversations in every process."""
    random = Random(seed).random
    return conversation(lambda n: int(random() * n))


def conversation(draw: Draw) -> tuple[list[Message], Ledger]:
    """Return a conversation from the choices of `draw`, with at most about 50 blocks."""
    author = _Author(draw)
    moves = _STYLES[draw(len(_STYLES))]
    for _ in range(12):
        if not draw(9):
            break
        moves[draw(len(moves))](author)
    keeper = LedgerAuthor(draw, author.said, author.calls, author.orphans, author.given, author.mark)
    return author.said, keeper.ledger()


class _Author:
    """Writes one conversation as a sequence of moves."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.said: list[Message] = []
        self.ids: list[str] = []
        self.calls: dict[str, ToolCall] = {}
        self.open: list[str] = []
        self.orphans: list[str] = []
        self.given: dict[str, ToolResult] = {}
        self._minted = 0
        self._marks = 0
        self._tools = 0

    # ---- small things

    def pick(self, options: Sequence[T]) -> T:
        return options[self.draw(len(options))]

    def rarely(self, n: int = 6) -> bool:
        return self.draw(n) == n - 1

    def say(self, role: MessageRole, blocks: Iterable[Block]) -> None:
        origin = replace(self.pick(_ORIGINS), upstream="") if role == "assistant" else None
        self.said.append(Message(role, blocks, len(self.said) // 3, origin))

    def text(self) -> Text:
        return self.pick(TEXTS) if self.rarely(3) else TEXTS[0]

    def thinking(self) -> Thinking:
        words = self.pick(("let me see", "", "\u2026\ud800"))
        if self.rarely(4):
            return Thinking(words)
        kind, data = self.pick(SIGNATURES) if self.rarely(4) else SIGNATURES[self.draw(2)]
        origin = self.pick(_ORIGINS)
        if origin.dialect == "openai_responses" and not self.rarely(6):
            kind, data = self.pick(ITEMS)
        if origin.dialect in _SIGNED_PARTS:
            kind = "signed_blank" if self.rarely(8) else "thought_signature"
            return Thinking("", ProviderState(kind, data, origin))
        kind, data = _SEALS.get(origin.dialect, (kind, data))
        return Thinking("" if kind == "redacted" else words, ProviderState(kind, data, origin))

    def own(self) -> list[Block]:
        """Return the blocks of a built-in tool, or another provider block that is never sent back."""
        origin = self.pick(_ORIGINS)
        if origin.dialect not in OWN or self.rarely(4):
            name, kind, value = self.pick(ASIDE)
            return [ProviderBlock(name, ProviderState(kind, quote(value), origin))]
        self._tools += 1
        parts: list[Block] = [
            ProviderBlock(name, ProviderState("part", quote(json.replace("%d", str(self._tools))), origin))
            for name, json in self.pick(OWN[origin.dialect])
        ]
        return parts if len(parts) < 2 or not self.rarely(4) else [parts[0], self.text(), *parts[1:]]

    def among(self, blocks: list[Block]) -> list[Block]:
        """Return blocks, sometimes with a provider block among them."""
        if not self.rarely(6):
            return blocks
        at = self.draw(len(blocks) + 1)
        return [*blocks[:at], *self.own(), *blocks[at:]]

    def call(self, call_id: str) -> ToolCall:
        name = self.pick(NAMES) if self.rarely(4) else NAMES[self.draw(3)]
        json, raw = self.pick(ARGUMENTS) if self.rarely(3) else ARGUMENTS[self.draw(2)]
        call = ToolCall(call_id, name, raw=raw, native=self._native(), json=json)
        self.ids.append(call_id)
        self.calls.setdefault(call_id, call)
        return call

    def _native(self) -> ProviderState | None:
        if not self.rarely(2):
            return None
        near = projected("anthropic" if self.draw(2) else "openai", mint(1 + self.draw(9)))
        data = near if self.rarely(8) else self.pick(NATIVE)
        return ProviderState("call_id", quote(data), self.pick(_ORIGINS))

    def new_id(self) -> str:
        if self.rarely(10):
            return self.pick(HOSTILE_IDS)
        if self.ids and self.rarely(24):
            return self.pick(self.ids)
        self._minted += 1
        return mint(self._minted)

    def mark(self) -> str:
        self._marks += 1
        return f"R{self._marks}."

    def real(self, call_id: str) -> ToolResult:
        """Return a valid result."""
        odd = self.rarely(12)
        result = (
            ToolResult(call_id, content_json=self.pick(ODD_VALUES))
            if odd
            else self._result_with_mark(call_id)
        )
        if self.rarely(8):
            count = self.pick((1, 2, 3, 9))
            result = replace(result, media=tuple(self._result_media() for _ in range(count)))
        self.given.setdefault(call_id, result)
        return result

    def _result_media(self) -> Media:
        if self.rarely(3):
            return self.pick(ATTACHED)
        self._marks += 1
        return Media("image/png", png_base64(note=f"I{self._marks}."))

    def _result_with_mark(self, call_id: str) -> ToolResult:
        mark = self.mark()
        value = self.pick(WRAPPED)(mark) if self.rarely(3) else mark
        match self.draw(6):
            case 2:
                return ToolResult(call_id, value, is_complete=False)
            case 3:
                return ToolResult(call_id, value, is_complete=True)
            case 4:
                return ToolResult(call_id, error=value)
            case 5:
                return ToolResult(call_id, "partly", error=value, is_complete=self.pick((False, True, None)))
            case _:
                return ToolResult(call_id, value)

    def pending(self, call_id: str) -> ToolResult:
        """Return a result block without a completion."""
        match self.draw(3):
            case 0:
                return ToolResult(call_id)
            case 1:
                return ToolResult(call_id, content_json=Json(b"null"))
            case _:
                return ToolResult(call_id, content_json=Json(b"null"), is_complete=False)

    # ---- moves

    def human(self) -> None:
        self.say("user", [self.text() for _ in range(1 + self.draw(2))])

    def attachment(self) -> None:
        blocks: list[Block] = [self.text(), self.pick(MEDIA)]
        self.say(ROLES[self.draw(3)] if self.rarely() else "user", blocks[:: 1 if self.draw(2) else -1])

    def album(self) -> None:
        """Add many attachments, mostly images, with repeated documents."""
        count = self.pick((1, 2, 4, 7, 22))
        pages = [self.pick(DOCUMENTS) if self.draw(2) else IMAGE for _ in range(count)]
        self.say("user", [self.text(), *pages])

    def words(self) -> None:
        blocks: list[Block] = [self.thinking()] if self.rarely(3) else []
        self.say("assistant", self.among([*blocks, self.text()]))

    def add_thinking(self) -> None:
        self.say("assistant", [self.thinking() for _ in range(1 + self.draw(2))])

    def mixture(self) -> None:
        """Add a message of any blocks, possibly none, under any role."""
        makers: tuple[Callable[[], Block], ...] = (
            self.text,
            self.thinking,
            self._medium,
            self._stray_call,
            self._any_result,
            lambda: self.pick(self.own()),
        )
        self.say(self.pick(ROLES), [self.pick(makers)() for _ in range(self.draw(5))])

    def _medium(self) -> Block:
        return self.pick(MEDIA)

    def _stray_call(self) -> ToolCall:
        call = self.call(self.new_id())
        self.open.append(call.id)
        return call

    def _any_result(self) -> ToolResult:
        call_id = self.pick(self.ids) if self.ids else self.pick(HOSTILE_IDS)
        return self.pending(call_id) if self.rarely(4) else self.real(call_id)

    def batch(self) -> None:
        """Add an assistant message with calls and their results."""
        blocks: list[Block] = [self.thinking()] if self.rarely(3) else []
        if self.draw(2):
            blocks.append(self.text())
        made = [self.call(self.new_id()) for _ in range(1 + self.pick((0, 0, 1, 2, 4)))]
        blocks += made
        if self.rarely(5):
            blocks.insert(self.draw(len(blocks) + 1), self.thinking() if self.draw(2) else self.text())
        self.say("assistant", self.among(blocks))
        _FATES[self.draw(len(_FATES))](self, [call.id for call in made])

    def tame_batch(self) -> None:
        """Add a batch as in a session: with canonical ids, and results only in the ledger."""
        made = []
        for _ in range(1 + self.draw(3)):
            self._minted += 1
            made.append(self.call(mint(self._minted)))
        self.say("assistant", self.among([*([self.thinking()] if self.rarely(3) else []), *made]))
        for call in made:
            if self.draw(3):
                self.real(call.id)

    def late(self) -> None:
        """Add a late result of an old call."""
        if not self.open:
            return self.human()
        call_id = self.open.pop(self.draw(len(self.open)))
        return self.say("tool", [self.real(call_id)])

    def orphan(self) -> None:
        call_id = self.pick(HOSTILE_IDS) if self.rarely(3) else f"gone_{self.draw(4)}"
        self.orphans.append(call_id)
        result = self.real(call_id)
        self.say("tool", [result, result] if self.rarely(5) else [result])

    def early(self) -> None:
        """Add a result before its call."""
        call_id = self.new_id()
        self.say("tool", [self.real(call_id)])
        if self.draw(2):
            self.human()
        self.say("assistant", [self.call(call_id)])

    def misattribute_call(self) -> None:
        """Add a call under the role tool, followed by its result."""
        call = self.call(self.new_id())
        self.say("tool", [call, self.real(call.id)] if self.draw(2) else [self.text(), call])

    def again(self) -> None:
        """Repeat the last messages, as after a fork or a resume."""
        self.said.extend(self.said[-1 - self.draw(3) :])

    def compact(self) -> None:
        """Replace the oldest messages by a summary, regardless of their content."""
        kept = self.said[1 + self.draw(3) :]
        self.said[:] = [Message("user", [Text("Summary of the conversation so far.")]), *kept]

    def nothing(self) -> None:
        self.say(self.pick(ROLES), [])

    # ---- fates of a batch

    def answer_all(self, ids: list[str]) -> None:
        self.say("tool", [self.real(call_id) for call_id in ids])

    def answer_none(self, ids: list[str]) -> None:
        self.open.extend(ids)

    def partly(self, ids: list[str]) -> None:
        told = [call_id for call_id in ids if self.draw(2)]
        self.open.extend(call_id for call_id in ids if call_id not in told)
        self.say("tool", [self.real(call_id) for call_id in told])

    def shuffle_results(self, ids: list[str]) -> None:
        start = self.draw(len(ids))
        turned = [*ids[start:], *ids[:start]]
        self.say("tool", [self.real(call_id) for call_id in (turned[::-1] if self.draw(2) else turned)])

    def one_by_one(self, ids: list[str]) -> None:
        for call_id in ids:
            self.say("tool", [self.real(call_id)])
            if self.rarely(3):
                self.say(self.pick(ROLES), [self.text()])

    def steer(self, ids: list[str]) -> None:
        self.say("user", [self.text()])
        self.answer_all(ids)

    def repeat_result(self, ids: list[str]) -> None:
        results = [self.real(call_id) for call_id in ids]
        self.say("tool", results)
        self.say("tool", [self.pick(results)])

    def contradict_result(self, ids: list[str]) -> None:
        self.answer_all(ids)
        self.say("tool", [self.real(self.pick(ids))])

    def under_another(self, ids: list[str]) -> None:
        self.say(self.pick(("user", "assistant")), [*map(self.real, ids), self.text()])

    def in_one_message(self, ids: list[str]) -> None:
        asked = self.said.pop()
        self.say(asked.role, [*asked.blocks, *map(self.real, ids), self.text()])

    def begin_calls(self, ids: list[str]) -> None:
        self.open.extend(ids)
        self.say("tool", [self.pending(call_id) for call_id in ids])


_Move: TypeAlias = Callable[[_Author], None]
_FATES: tuple[Callable[[_Author, list[str]], None], ...] = (
    _Author.answer_all,
    _Author.answer_none,
    _Author.partly,
    _Author.shuffle_results,
    _Author.one_by_one,
    _Author.steer,
    _Author.repeat_result,
    _Author.contradict_result,
    _Author.under_another,
    _Author.in_one_message,
    _Author.begin_calls,
)
_COMMON: tuple[_Move, ...] = (_Author.human, _Author.words, _Author.batch, _Author.batch, _Author.batch)
_ODD: tuple[_Move, ...] = (
    _Author.late,
    _Author.orphan,
    _Author.early,
    _Author.misattribute_call,
    _Author.again,
    _Author.compact,
    _Author.attachment,
    _Author.album,
    _Author.add_thinking,
    _Author.mixture,
    _Author.nothing,
)
_STYLES: tuple[tuple[_Move, ...], ...] = (
    (_Author.human, _Author.words, _Author.tame_batch, _Author.tame_batch),
    _COMMON,
    (*_COMMON, *_COMMON, *_ODD),
    (*_COMMON, *_ODD),
    (_Author.human, _Author.words, _Author.tame_batch, _Author.album, _Author.album),
)
