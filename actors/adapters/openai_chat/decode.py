"""OpenAI Chat Completions: an answer's bytes in, canonical events and a message out.

A stream is `data: {chunk}` lines up to `data: [DONE]`. Text and reasoning come as deltas. Tool calls come
as fragments, and the whole difficulty is which call a fragment belongs to. The documentation says: its
`index`. Compatible servers leave the index out, send 0 for every call, repeat id and name on every
fragment, leave the id blank, or send whole calls. `_Slots` holds the rule for all of them.

Reasoning comes in three ways, and is sealed where the dialect takes it back the same way
(`actors.adapters.openai_chat.reasoning`). Elsewhere it is kept unsealed and is nobody's to replay.
"""

from typing import TypeAlias

from actors.adapters.assembly import Assembly, Call
from actors.adapters.base import document
from actors.adapters.classify import in_answer
from actors.adapters.failure import AnswerFault, broken
from actors.adapters.openai_chat.reasoning import Reasoning
from actors.adapters.sse import ServerEvent
from actors.adapters.wire import Fields, fields, items, json_text, number, string
from actors.core.dialect import Dialect
from actors.core.jsonio import mended, parse_object
from actors.core.stream import Usage

Slot: TypeAlias = int | None  # None stands for the latest call, wherever it is
_LEGACY: Slot = -1  # `function_call`, the one call of the protocol before tools
_SAID = frozenset({"content", "refusal", "tool_calls", "function_call", "reasoning_content", "reasoning"})
_READ = _SAID | {"role", "name", "reasoning_details"}
_CUT = frozenset({"error", "network_error", "insufficient_system_resource"})
"""Words for a failure after 200: a gateway's and Mistral's, GLM's, DeepSeek's."""
_WHOLE_BELOW = 64 * 1024  # characters of argument text that are tried for completeness


class ChatReader:
    """Reads chunks, and a whole body as if it were one chunk."""

    def __init__(self, assembly: Assembly, dialect: Dialect) -> None:
        self.assembly = assembly
        self._dialect = dialect
        self.ended = False
        self._begun = False  # whether anything of a message was there
        self._slots = _Slots(assembly)
        self._reasoning = Reasoning(assembly, dialect.reasoning.carrier)

    def event(self, event: ServerEvent) -> None:
        data = event.data.strip()
        if data == "[DONE]":
            self._end()
        elif data:
            self._chunk(document(data, "a chunk of the stream"), reported=event.name == "error")

    def body(self, body: Fields) -> None:
        choice = _first_choice(body)
        self._raise_reported(body, choice, reported=False)
        if _SAID.isdisjoint(fields(choice.get("message"))):
            raise broken("the body holds no message")
        self._begun = True
        self._beside(body, choice)
        self._usage(body.get("usage"))
        self._served(body)
        self._said(fields(choice["message"]))
        self._finish(choice)
        self._end()

    def _end(self) -> None:
        if not self._begun:
            raise broken("the stream ended without a message")
        self._reasoning.seal()
        self.assembly.end_all()
        self.ended = True

    def _chunk(self, chunk: Fields, *, reported: bool) -> None:
        choice = _first_choice(chunk)
        self._raise_reported(chunk, choice, reported=reported)
        self._begun = self._begun or bool(choice)
        self._beside(chunk, choice)
        self._usage(chunk.get("usage") or choice.get("usage"))
        self._served(chunk)
        self._said(fields(choice.get("delta")))
        self._finish(choice)

    def _said(self, delta: Fields) -> None:
        """Take a delta, or a whole message, which has the same fields."""
        if not delta.keys() <= _READ:
            self._leave_out(delta)
        self._reasoning.take(delta)
        if content := delta.get("content"):
            self._content(content)
        if refusal := delta.get("refusal"):
            self._text(string(refusal))  # it is what the model said
        if fragments := delta.get("tool_calls"):
            self._slots.take([fields(fragment) for fragment in items(fragments)])
        legacy = fields(delta.get("function_call"))
        if legacy.get("name") or legacy.get("arguments"):  # an endpoint puts an empty one into every answer
            self._slots.take([{"index": _LEGACY, "function": legacy}])

    def _content(self, content: object) -> None:
        """Take a content that is a string or, from some servers, a list of chunks."""
        if isinstance(content, str):
            return self._text(content)
        for chunk in map(fields, items(content)):
            if chunk.get("type") == "text":
                self._text(string(chunk.get("text")))
            elif chunk.get("type") == "thinking":
                self._reasoning.chunk(chunk)
            else:
                self.assembly.leave_out(string(chunk.get("type")))
        return None

    def _leave_out(self, delta: Fields) -> None:
        """Count what a message holds that is not ours to keep: a list by its entries, another value once."""
        for key in delta.keys() - _READ:
            if isinstance(given := delta[key], list):
                self.assembly.leave_out(key, len(given))
            else:
                self.assembly.leave_out_once(key, given)

    def _text(self, piece: str) -> None:
        if piece:
            self.assembly.say(self.assembly.latest_words("text"), piece)

    def _served(self, answer: Fields) -> None:
        """Note which upstream of a gateway answers."""
        if (upstream := string(answer.get("provider"))) and self._dialect.thinking_binding == "upstream":
            self.assembly.upstream = mended(upstream)

    def _beside(self, answer: Fields, choice: Fields) -> None:
        """Note what is said beside the message: how likely its words were, and what a search found."""
        self.assembly.leave_out_once("logprobs", choice.get("logprobs"))
        for name in ("citations", "search_results"):
            self.assembly.leave_out_once(name, answer.get(name))

    def _finish(self, choice: Fields) -> None:
        reason = string(choice.get("finish_reason"))
        if reason in _CUT:
            raise broken(f"the provider ended the answer with finish_reason {reason!r}")
        if reason:
            self._reasoning.seal()
            self.assembly.settle_all()  # some servers send arguments behind it
            self.assembly.finish(reason)

    def _usage(self, value: object) -> None:
        if isinstance(value, dict):
            self.assembly.report_usage(_usage(value))

    def _raise_reported(self, chunk: Fields, choice: Fields, *, reported: bool) -> None:
        """Raise the error that a chunk or a body reports, if it does."""
        status = fields(chunk.get("base_resp"))
        if reported or chunk.get("error") or chunk.get("object") == "error":
            raise AnswerFault(in_answer(chunk, self._dialect))
        if choice.get("error"):  # OpenRouter
            raise AnswerFault(in_answer(choice, self._dialect))
        if status.get("status_code"):  # MiniMax
            raise AnswerFault(in_answer({"message": status.get("status_msg")}, self._dialect))


class _Slots:
    """Which call a fragment belongs to.

    A fragment opens a new call when its index is new, when its index is known but it brings another id, or
    when it brings a name although the call at its index is whole already. A fragment without an index is
    taken by its id, else by the call before it.
    """

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._latest: dict[Slot, Call] = {}
        self._by_id: dict[tuple[Slot, str], Call] = {}

    def take(self, fragments: list[Fields]) -> None:
        """Take the fragments of one delta."""
        touched: set[Call] = set()
        for fragment in fragments:
            self._take(fragment, touched)

    def _take(self, fragment: Fields, touched: set[Call]) -> None:
        slot = _slot(fragment.get("index"))
        native_id = string(fragment.get("id")).strip() and string(fragment.get("id"))
        self._assembly.leave_out("extra_content", int(bool(fragment.get("extra_content"))))
        function = fields(fragment.get("function")) or fields(fragment.get("custom"))
        name, text = string(function.get("name")), _argument_text(function)
        call = self._existing(slot, native_id)
        if call is None or (name and _begins_another(call, name, text, repeated=call in touched)):
            call = self._assembly.call(native_id, name)
        else:
            self._assembly.identify(call, native_id, name)
        call.free = call.free or isinstance(fragment.get("custom"), dict)
        touched.add(call)
        self._remember(call, slot, native_id)
        if text:
            self._assembly.argue(call, text)

    def _existing(self, slot: Slot, native_id: str) -> Call | None:
        if native_id and (same := self._by_id.get((slot, native_id))):
            return same
        call = self._latest.get(slot)
        if call is None or (native_id and call.native_id):
            return None  # a new index, or a known one with another id
        return call

    def _remember(self, call: Call, slot: Slot, native_id: str) -> None:
        for key in (slot, None):
            self._latest[key] = call
            if native_id:
                self._by_id[key, native_id] = call


def _begins_another(call: Call, name: str, text: str, *, repeated: bool) -> bool:
    """Say whether a fragment that brings a name starts a new call at the same index.

    Some servers repeat the name on every fragment, so the name alone decides nothing. It does where the
    same delta, or another name, or an argument text that is whole already speaks for a second call.
    """
    if not call.name:
        return False
    if repeated or call.name != name:
        return True
    return bool(text.strip()) and call.arguments.size < _WHOLE_BELOW and _is_whole(call.arguments.whole())


def _is_whole(text: str) -> bool:
    text = text.strip()
    return text.startswith("{") and text.endswith("}") and parse_object(text) is not None


def _slot(index: object) -> Slot:
    return index if isinstance(index, int) and not isinstance(index, bool) else None


def _argument_text(function: Fields) -> str:
    """Return the argument text. A few servers send the object itself; a custom tool sends plain text."""
    arguments = function.get("arguments", function.get("input"))
    if isinstance(arguments, dict):
        return json_text(arguments)
    return string(arguments)


def _first_choice(chunk: Fields) -> Fields:
    """Return the choice with index 0; we never ask for more than one."""
    for choice in map(fields, items(chunk.get("choices"))):
        if not choice.get("index"):
            return choice
    return {}


def _usage(usage: Fields) -> Usage:
    """Read the figures, cache figures under the names of OpenAI, DeepSeek and Kimi."""
    details = fields(usage.get("prompt_tokens_details"))
    read = (details.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), usage.get("cached_tokens"))
    written = (details.get("cache_write_tokens"), usage.get("cache_write_tokens"))
    return Usage(
        input_tokens=number(usage.get("prompt_tokens")) or 0,
        output_tokens=number(usage.get("completion_tokens")) or 0,
        cache_read_tokens=next(filter(None, map(number, read)), 0),
        cache_write_tokens=next(filter(None, map(number, written)), 0),
    )
