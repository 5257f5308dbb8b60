"""Decode the answers of OpenAI Chat Completions and its vendors, and read foreign transcripts.

A stream is `data: {chunk}` lines up to `data: [DONE]`. Text and reasoning come as deltas. Tool calls come as fragments,
and the difficulty is to find the call of a fragment: `actors.adapters.calls` has the rule.

Reasoning comes in three ways:

    reasoning_content   a field with the text. Its seal holds nothing else, because the text is all there is to replay.
    reasoning_details   a gateway's list, in pieces or whole. The seal holds the list, in its order.
    thinking_chunk      chunks of the content. The seal holds their other fields.

Reasoning is sealed when the provider reports that the answer is complete, and only where the dialect accepts it back in
the same way. Other reasoning is kept without a seal and is never replayed.
"""

import re
from collections.abc import Sequence
from typing import ClassVar

from actors.adapters.assembly import MessageBuilder
from actors.adapters.base import Decoder
from actors.adapters.calls import Slot, real_word, slot_of
from actors.adapters.document import LongText
from actors.adapters.failure import answer_fault
from actors.adapters.partial import PartialCall, PartialText
from actors.adapters.reading import TranscriptReader
from actors.adapters.wire import (
    Fields,
    WireObject,
    fields,
    first,
    items,
    json_text,
    long_string,
    number,
    string,
)
from actors.core.data.jsonio import is_array, is_object, sanitise

_WORDS = {"reasoning.text": "text", "reasoning.summary": "summary"}


class ArrivingReasoning:
    """The reasoning of one answer while it arrives. Methods receive the answer, to avoid a reference cycle.

    Args:
        carrier: The form in which the dialect accepts reasoning back.
    """

    def __init__(self, carrier: str) -> None:
        self._carrier = carrier
        self._parts: list[PartialText] = []
        self._details: list[dict[str, object]] = []
        self._more: dict[str, object] = {}

    def take(self, answer: MessageBuilder, delta: Fields) -> None:
        """Add the reasoning fields of a delta, or of a complete message."""
        details = [fields(item) for item in items(delta.get("reasoning_details"))]
        words = long_string(delta.get("reasoning_content")) or long_string(delta.get("reasoning"))
        for detail in details:
            self._detail(detail)
        words = words or "".join(map(_words_of, details))
        if words or (details and self._carrier == "reasoning_details"):
            self._say(answer, words)

    def chunk(self, answer: MessageBuilder, chunk: Fields) -> None:
        """Add a chunk of type `thinking`, complete or partial."""
        thinking = chunk.get("thinking")
        pieces = [string(fields(item).get("text")) for item in items(thinking)]
        known = ("type", "thinking")
        self._more |= {key: value for key, value in chunk.items() if key not in known and value is not None}
        self._say(answer, long_string(thinking) or "".join(pieces))

    def seal(self, answer: MessageBuilder) -> None:
        """Seal the reasoning so far, if the dialect accepts it back. A second call has no effect."""
        for part in self._parts:
            if self._carrier == "reasoning_content":
                answer.seal(part, self._carrier, self._carrier)
            elif self._carrier == "thinking_chunk":
                last = part is self._parts[-1]
                answer.seal(part, self._carrier, json_text(self._more if last else {}))
            elif self._carrier == "reasoning_details" and self._details and part is self._parts[0]:
                answer.seal(part, self._carrier, json_text(self._details))

    def _say(self, answer: MessageBuilder, piece: str | LongText) -> None:
        part = answer.latest_words("thinking")
        if part not in self._parts:
            self._parts.append(part)
        answer.say(part, piece)

    def _detail(self, detail: Fields) -> None:
        """Add a detail, or append it to the previous one if type and index are the same."""
        last = self._details[-1] if self._details else {}
        words = _WORDS.get(string(detail.get("type")))
        same = all(key in detail and last.get(key) == detail[key] for key in ("type", "index"))
        if words is None or not same:
            self._details.append(dict(detail))
            return
        joined = string(last.get(words)) + string(detail.get(words))
        last.update({key: value for key, value in detail.items() if value is not None})
        last[words] = joined


def _words_of(detail: Fields) -> str:
    return string(detail.get(_WORDS.get(string(detail.get("type")), "")))


_LEGACY = "function_call"  # the only call of the protocol before tools
_CALLS = ("tool_calls", _LEGACY)
_REASONING = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
_SAID = frozenset({"content", "refusal", "tool_calls", "function_call", "reasoning_content", "reasoning"})
_READ = _SAID | _REASONING | {"role", "name"}
_BESIDE = frozenset({"error", "base_resp", "citations", "search_results", "provider"})
"""Chunks without these fields hold nothing besides the message."""
_CUT = frozenset({"error", "network_error", "insufficient_system_resource"})
"""Reasons for a failure after 200, of: a gateway and Mistral; GLM; DeepSeek."""
_PLACES = {"input": (0,), "output": (1,), "reasoning": (1,), "read": (2,), "written": (3,)}
_DATA = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


class ChatDecoder(Decoder):
    """Reads chunks, and a complete body as a single chunk."""

    ended: bool
    upstream: str
    _begun = False  # whether any part of a message has arrived

    def begin(self) -> None:
        super().begin()
        self._reasoning = ArrivingReasoning(self.dialect.reasoning.carrier)

    def event(self, name: str, payload: Fields) -> None:
        choice = first(payload.get("choices"))
        reported = name == "error" or payload.get("object") == "error"
        if reported or not _BESIDE.isdisjoint(payload) or choice.get("logprobs") or choice.get("error"):
            self._take_other_fields(payload, choice, reported=reported)
        self._begun = self._begun or bool(choice)
        delta = choice.get("delta") or self._rest_of_message(choice)
        # not `is_object`: this runs for each chunk
        said = delta if type(delta) is dict else {}  # pyright: ignore[reportUnknownVariableType]
        self._take(payload, choice, said)  # pyright: ignore[reportUnknownArgumentType]

    def body(self, body: Fields) -> None:
        choice = first(body.get("choices"))
        self._take_other_fields(body, choice, reported=body.get("object") == "error")
        if _SAID.isdisjoint(fields(choice.get("message"))):
            raise answer_fault("the body holds no message")
        self._begun = True
        self._take(body, choice, fields(choice["message"]))
        self.on_done()

    def on_done(self) -> None:
        if not self._begun:
            raise answer_fault("the stream ended without a message")
        self._reasoning.seal(self)
        self.end_all()
        self.ended = True

    @property
    def is_proper(self) -> bool:
        return self.finish_reason is not None

    def _rest_of_message(self, choice: Fields) -> Fields:
        """Return the part of a complete message that a stream lacks. Some relays send no deltas, others repeat the
        message."""
        message = fields(choice.get("message"))
        if not self._parts:
            return message
        return {} if self.calls else {key: message[key] for key in _CALLS if key in message}

    def _take(self, answer: Fields, choice: Fields, said: Fields) -> None:
        usage = answer.get("usage") or choice.get("usage")
        if usage and is_object(usage):
            self.count(_figures(usage), _PLACES)
        if said:
            self._take_message(said)
        if (told := choice.get("finish_reason")) and (reason := real_word(told)):
            if reason in _CUT:
                raise answer_fault(f"the provider ended the answer with finish_reason {reason!r}")
            self._reasoning.seal(self)
            for part in self._parts:
                # Kept if the answer breaks off here; some servers send arguments after the finish reason.
                part.done = True
            self.finish(reason)

    def _take_message(self, delta: Fields) -> None:
        """Process a delta, or a complete message, which has the same fields."""
        if not _REASONING.isdisjoint(delta):
            self._reasoning.take(self, delta)
        if content := delta.get("content"):
            self._content(content)
        if refusal := delta.get("refusal"):
            self._text(long_string(refusal))  # it is what the model said
        if not delta.keys() <= _READ:
            self._beside_words(delta)
        legacy = delta.get("function_call")
        if given := delta.get("tool_calls"):
            touched: set[PartialCall] = set()
            for each in items(given) or (given,):
                fragment = fields(each)
                self._fragment(slot_of(fragment.get("index")), fragment, touched)
        # One endpoint puts an empty one into every answer, and relays add one that repeats `tool_calls`.
        elif legacy and is_object(legacy) and (legacy.get("name") or legacy.get("arguments")):
            self._fragment(_LEGACY, {"function": legacy}, set())

    def _content(self, content: object) -> None:
        """Process content: a string or, from some servers, a list of chunks."""
        if text := long_string(content):
            return self._text(text)
        for chunk in map(fields, items(content)):
            if chunk.get("type") == "text":
                self._text(long_string(chunk.get("text")))
            elif chunk.get("type") == "thinking":
                self._reasoning.chunk(self, chunk)
            else:
                self.native(string(chunk.get("type")), dict(chunk), goes_back=False).done = True
        return None

    def _text(self, piece: str | LongText) -> None:
        if piece:
            self.say(self.latest_words("text"), piece)

    def _beside_words(self, delta: Fields) -> None:
        """Process the other fields of a message: images, and lists of citations and sources."""
        for key in (key for key in delta if key not in _READ):
            given = delta[key]
            if key == "images":
                for image in items(given):
                    self._image(fields(image))
            elif is_array(given):
                self.mark(key, given)
            else:
                self.leave_out_once(key, given)

    def _image(self, image: Fields) -> None:
        """Add a generated image, as data or as a URL."""
        url = string(fields(image.get("image_url")).get("url"))
        if match := _DATA.fullmatch(url):
            self.media(match[1], data=match[2])
        elif url:
            self.media("image/*", url=url)
        else:
            self.leave_out("images")

    def _take_other_fields(self, answer: Fields, choice: Fields, *, reported: bool) -> None:
        """Process fields outside the message: an error, the upstream, logprobs, citations."""
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
            self.upstream = sanitise(upstream)

    def _fragment(self, slot: Slot, fragment: Fields, touched: set[PartialCall]) -> None:
        """Process a fragment of a call. `touched`: the calls of earlier fragments in the same delta."""
        function = fields(fragment.get("function")) or fields(fragment.get("custom")) or fragment
        before, text = self.minted_ids, self.arguments(function.get("arguments", function.get("input")))
        call = self.fragment(slot, fragment.get("id"), function.get("name"), text, touched)
        if extra := fragment.get("extra_content"):
            self._sign(call, extra, is_new=self.minted_ids > before)
        if "custom" in fragment:
            call.free = call.free or isinstance(fragment["custom"], dict)
        touched.add(call)

    def _sign(self, call: PartialCall, extra: object, *, is_new: bool) -> None:
        """Attach a call's signature if the dialect accepts it back; otherwise count it as dropped."""
        signature = string(fields(fields(extra).get("google")).get("thought_signature"))
        if is_new and signature and self.dialect.reasoning.carrier == "extra_content":
            self.sign(call, "extra_content", signature)
        elif is_new or call.signature is None:
            self.leave_out("extra_content")


def _figures(usage: Fields) -> dict[str, int | None]:
    """Return the reported figures; cache figures by the names of OpenAI, DeepSeek and Kimi."""
    details = fields(usage.get("prompt_tokens_details"))
    read = (details.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), usage.get("cached_tokens"))
    written = (details.get("cache_write_tokens"), usage.get("cache_write_tokens"))
    return {
        "input": number(usage.get("prompt_tokens")),
        "output": number(usage.get("completion_tokens")),
        "reasoning": _reasoning_beside(usage),
        "read": _first_figure(read),
        "written": _first_figure(written),
    }


def _reasoning_beside(usage: Fields) -> int | None:
    """Return reasoning tokens that `completion_tokens` excludes, as at xAI; None if none are reported.

    The total decides: at other hosts, it is the sum of prompt and completion.
    """
    reasoning = number(fields(usage.get("completion_tokens_details")).get("reasoning_tokens"))
    if reasoning is None:
        return None
    total, told = (
        number(usage.get("total_tokens")),
        (usage.get("prompt_tokens"), usage.get("completion_tokens")),
    )
    counted = sum(number(each) or 0 for each in told)
    return reasoning if total == counted + reasoning else 0


def _first_figure(figures: tuple[object, ...]) -> int | None:
    """Return the first positive figure of several names, 0 if all are 0, None if all are missing."""
    given = [figure for each in figures if (figure := number(each)) is not None]
    return next(filter(None, given), 0) if given else None


# Types of calls of the client's tools; a provider's own have other types.
_OURS = ("", "function", "custom", "tool_call")


class ChatReading(TranscriptReader):
    """Reads a Chat Completions transcript."""

    instructors: ClassVar[Sequence[str]] = ("system", "developer")

    def read_message(self, role: str, message: WireObject) -> None:
        match role:
            case "assistant":
                self.think(self._reasoning(message))
                self.parts(message)
                self.text(message.text("refusal"))
                self._calls(message)
            case "tool":
                self._calls(message)  # the result may answer a call in the same message
                key, name = message.native_id("tool_call_id"), message.text("name")
                self.result(key, *self.spread(message, "content"), name=name)
            case "function":  # the old protocol has no ids and pairs by name
                self.result("", message.take("content"), name=message.text("name"))
            case _:
                super().read_message(role, message)

    def part(self, part: WireObject) -> None:
        if not part.has_value("type", "thinking"):
            super().part(part)
            return
        chunks = [chunk for chunk in part.each("thinking") if isinstance(chunk, WireObject)]
        for chunk in chunks:
            chunk.has_value("type", "text")
        self.think(part.text("thinking") or "".join(chunk.text("text") for chunk in chunks))

    def _reasoning(self, message: WireObject) -> str:
        """Return the text of reasoning fields. Their provider state is dropped, since no provider may receive it.

        A gateway may repeat the same text under several names.
        """
        words = message.text("reasoning_content") or message.text("reasoning")
        message.has_value("reasoning", words)
        details: list[str] = []
        for detail in message.each("reasoning_details"):
            if isinstance(detail, WireObject):
                detail.has_value("type", "reasoning.text", "reasoning.summary")
                details.append(detail.text("text") or detail.text("summary"))
        if words and details and "".join(details) != words:
            self.note("reasoning_details that say something else than the reasoning left out")
        return words or "".join(details)

    def _calls(self, message: WireObject) -> None:
        for call in message.each("tool_calls"):
            if isinstance(call, WireObject):
                self._call(call)
            else:
                self.fold("item that is no tool call", call)
        if legacy := message.inner("function_call"):
            self._legacy_call(legacy.text("name"), legacy.take("arguments"))

    def _legacy_call(self, name: str, given: object) -> None:
        """Add a call of the old protocol, which has no ids. Some hosts add an empty one to every answer: no call."""
        if name.strip():
            self.call("", name, given, has_name=True)
        elif given and given != "{}":
            self.fold("function_call without a name", given)

    def _call(self, call: WireObject) -> None:
        """Add a call of type `function` or `custom`, or one with name and arguments next to its id."""
        if (kind := call.text("type")) not in _OURS:
            self.fold(f"call of type {kind[:40]!r}", call.whole())
            return
        call.take("index")  # redundant with the position in the list
        key, custom = call.native_id("id"), call.inner("custom")
        if custom:
            self.call(key, custom.text("name"), custom.take("input"), free=True)
        else:
            function = call.inner("function") or call
            self.call(key, function.text("name"), function.take("arguments", "input"))
