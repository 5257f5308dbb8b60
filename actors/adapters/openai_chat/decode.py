"""OpenAI Chat Completions: an answer's bytes in, canonical events and a message out.

A stream is `data: {chunk}` lines up to `data: [DONE]`. Text and reasoning come as deltas. Tool calls come
as fragments, and the whole difficulty is which call a fragment belongs to. The documentation says: its
`index`. Compatible servers leave the index out, send 0 for every call, repeat id and name on every
fragment, leave the id blank, or send whole calls. `ChatDecoder._fragment` holds the rule for all of them.

Reasoning comes in three ways, and is sealed where the dialect takes it back the same way
(`actors.adapters.openai_chat.reasoning`). Elsewhere it is kept unsealed and is nobody's to replay.
"""

import re
from typing import TypeAlias

from actors.adapters.arriving import ArrivingCall, Words
from actors.adapters.base import Decoder
from actors.adapters.failure import broken
from actors.adapters.openai_chat.reasoning import ArrivingReasoning
from actors.adapters.wire import Fields, fields, first, items, json_text, number, string
from actors.core.jsonio import sanitised
from actors.core.stream import Usage

Slot: TypeAlias = int | None  # None stands for the latest call, wherever it is
_LEGACY: Slot = -1  # `function_call`, the one call of the protocol before tools
_REASONING = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
_SAID = frozenset({"content", "refusal", "tool_calls", "function_call", "reasoning_content", "reasoning"})
_READ = _SAID | _REASONING | {"role", "name"}
_BESIDE = frozenset({"error", "base_resp", "citations", "search_results", "provider"})
"""A chunk without these fields says nothing beside the message."""
_CUT = frozenset({"error", "network_error", "insufficient_system_resource"})
"""Words for a failure after 200: a gateway's and Mistral's, GLM's, DeepSeek's."""
_DATA = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)
_WHOLE_BELOW = 64 * 1024  # characters of argument text that are tried for completeness


class ChatDecoder(Decoder):
    """Reads chunks, and a whole body as if it were one chunk."""

    _begun = False  # whether anything of a message was there

    def begin(self) -> None:
        super().begin()
        self._latest: dict[Slot, ArrivingCall] = {}
        self._by_id: dict[tuple[Slot, str], ArrivingCall] = {}
        self._reasoning = ArrivingReasoning(self.dialect.reasoning.carrier)

    def event(self, name: str, payload: Fields) -> None:
        choice = first(payload.get("choices"))
        reported = name == "error" or payload.get("object") == "error"
        if reported or not _BESIDE.isdisjoint(payload) or choice.get("logprobs") or choice.get("error"):
            self._beside(payload, choice, reported=reported)
        self._begun = self._begun or bool(choice)
        delta = choice.get("delta")
        self._take(payload, choice, delta if type(delta) is dict else {})

    def body(self, body: Fields) -> None:
        choice = first(body.get("choices"))
        self._beside(body, choice, reported=body.get("object") == "error")
        if _SAID.isdisjoint(fields(choice.get("message"))):
            raise broken("the body holds no message")
        self._begun = True
        self._take(body, choice, fields(choice["message"]))
        self.done()

    def done(self) -> None:
        if not self._begun:
            raise broken("the stream ended without a message")
        self._reasoning.seal(self)
        self.end_all()
        self.ended = True

    def _take(self, answer: Fields, choice: Fields, said: Fields) -> None:
        if isinstance(usage := answer.get("usage") or choice.get("usage"), dict) and usage:
            self.report_usage(_usage(usage))
        if said:
            self._said(said)
        if (told := choice.get("finish_reason")) and (reason := string(told)):
            if reason in _CUT:
                raise broken(f"the provider ended the answer with finish_reason {reason!r}")
            self._reasoning.seal(self)
            for part in self._parts:
                # It is kept if the answer breaks off now; some servers send arguments behind it.
                part.done = True
            self.finish(reason)

    def _said(self, delta: Fields) -> None:
        """Take a delta, or a whole message, which has the same fields."""
        if not _REASONING.isdisjoint(delta):
            self._reasoning.take(self, delta)
        if content := delta.get("content"):
            self._content(content)
        if refusal := delta.get("refusal"):
            self._text(string(refusal))  # it is what the model said
        if not delta.keys() <= _READ:
            self._beside_words(delta)
        if fragments := items(delta.get("tool_calls")):
            touched: set[ArrivingCall] = set()
            for fragment in fragments:
                self._fragment(fields(fragment), touched)
        legacy = delta.get("function_call")  # an endpoint puts an empty one into every answer
        if isinstance(legacy, dict) and (legacy.get("name") or legacy.get("arguments")):
            self._fragment({"index": _LEGACY, "function": legacy}, set())

    def _content(self, content: object) -> None:
        """Take a content that is a string or, from some servers, a list of chunks."""
        if isinstance(content, str):
            return self._text(content)
        for chunk in map(fields, items(content)):
            if chunk.get("type") == "text":
                self._text(string(chunk.get("text")))
            elif chunk.get("type") == "thinking":
                self._reasoning.chunk(self, chunk)
            else:
                self.native(string(chunk.get("type")), dict(chunk), goes_back=False).done = True
        return None

    def _text(self, piece: str) -> None:
        if piece:
            self.say(self.latest_words("text"), piece)

    def _beside_words(self, delta: Fields) -> None:
        """Take what a message holds beside its words: images, and in lists what they are taken from."""
        for key in (key for key in delta if key not in _READ):
            given = delta[key]
            if key == "images":
                for image in items(given):
                    self._image(fields(image))
            elif isinstance(given, list):
                self.mark(key, given)
            else:
                self.leave_out_once(key, given)

    def _image(self, image: Fields) -> None:
        """Take a generated image, by value or by address."""
        url = string(fields(image.get("image_url")).get("url"))
        if match := _DATA.fullmatch(url):
            self.media(match[1], data=match[2])
        elif url:
            self.media("image/*", url=url)
        else:
            self.leave_out("images")

    def _beside(self, answer: Fields, choice: Fields, *, reported: bool) -> None:
        """Note what is said beside the message: an error, who serves it, how likely its words were, what was found."""
        status = fields(answer.get("base_resp"))
        if reported or answer.get("error"):
            self.report(answer)
        if choice.get("error"):  # OpenRouter
            self.report(choice)
        if status.get("status_code"):  # MiniMax
            self.report({"message": status.get("status_msg")})
        self.leave_out_once("logprobs", choice.get("logprobs"))
        for name in ("citations", "search_results"):
            self.mark(name, answer.get(name), more=False)
        if (upstream := string(answer.get("provider"))) and self.dialect.reasoning.binding == "upstream":
            self.upstream = sanitised(upstream)

    def _fragment(self, fragment: Fields, touched: set[ArrivingCall]) -> None:
        """Take a fragment of a call. `touched`: the calls that the same delta has told of already.

        A fragment opens a new call when its index is new, when its index is known but it brings another id, or
        when it brings a name although the call at its index is whole already. A fragment without an index is
        taken by its id, else by the call before it.
        """
        slot = index if type(index := fragment.get("index")) is int else None
        native_id = given if (given := string(fragment.get("id"))).strip() else ""
        function = fields(fragment.get("function")) or fields(fragment.get("custom"))
        name, text = string(function.get("name")), _argument_text(function)
        call = self._existing(slot, native_id)
        extra = fragment.get("extra_content")
        if call is None or (name and _begins_another(call, name, text, repeated=call in touched)):
            signed = self._signed(extra) if extra else None
            call = self.call(native_id, name)
            call.signature = signed
        else:
            self.identify(call, native_id, name)
            if extra and call.signature is None:
                self.leave_out("extra_content")
        call.free = call.free or isinstance(fragment.get("custom"), dict)
        touched.add(call)
        for key in (slot, None):
            self._latest[key] = call
            if native_id:
                self._by_id[key, native_id] = call
        if text:
            self.argue(call, text)

    def _existing(self, slot: Slot, native_id: str) -> ArrivingCall | None:
        if native_id and (same := self._by_id.get((slot, native_id))):
            return same
        call = self._latest.get(slot)
        if call is None or (native_id and call.native_id):
            return None  # a new index, or a known one with another id
        return call

    def _signed(self, extra: object) -> Words | None:
        """Return the signature of a call, in front of it, where it goes back; count what is no signature or stays."""
        signature = string(fields(fields(extra).get("google")).get("thought_signature"))
        if not signature or self.dialect.reasoning.carrier != "extra_content":
            self.leave_out("extra_content")
            return None
        words = self.words("thinking")
        self.seal(words, "extra_content", signature)
        self.end(words)
        return words


def _begins_another(call: ArrivingCall, name: str, text: str, *, repeated: bool) -> bool:
    """Say whether a fragment that brings a name starts a new call at the same index.

    Some servers repeat the name on every fragment, so the name alone decides nothing. It does where the
    same delta, or another name, or an argument text that is whole already speaks for a second call.
    """
    if not call.name:
        return False
    if repeated or call.name != name:
        return True
    is_small = call.pieces.size < _WHOLE_BELOW  # and ends like an object, before it is parsed
    return bool(text.strip()) and is_small and call.pieces.whole().rstrip().endswith("}") and call.is_whole


def _argument_text(function: Fields) -> str:
    """Return the argument text. A few servers send the object itself; a custom tool sends plain text."""
    arguments = function.get("arguments", function.get("input"))
    return json_text(arguments) if isinstance(arguments, dict) else string(arguments)


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
