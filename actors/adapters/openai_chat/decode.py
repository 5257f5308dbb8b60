"""Decode answers in the OpenAI Chat Completions format, and read foreign transcripts.

A stream is a sequence of `data: {chunk}` lines up to `data: [DONE]`. Text and reasoning arrive as deltas. Tool calls
arrive as fragments, and `actors.adapters.calls` finds the call to which a fragment belongs.

Reasoning arrives in one of three forms, each with its seal, which is the data that must be sent back with it:

    reasoning_content   a field with the text. Its seal has no data, because the text is all that must be sent back.
    reasoning_details   a gateway's list, complete or in pieces. The seal contains the list, in the order of arrival.
    thinking_chunk      chunks of the content. The seal contains their other fields.

Reasoning gets its seal when the provider reports that the answer is complete, and only if the dialect accepts reasoning
back in the form in which it arrived. Otherwise, it is kept without a seal and never sent back.
"""

import re
from collections.abc import Sequence
from typing import ClassVar

from actors.adapters.assembly import MessageBuilder
from actors.adapters.base import Decoder
from actors.adapters.calls import Slot, slot_of, without_placeholder
from actors.adapters.document import LongText
from actors.adapters.failure import answer_fault
from actors.adapters.partial import PartialCall, PartialText
from actors.adapters.reading import TranscriptReader
from actors.adapters.wire import (
    Fields,
    WireObject,
    as_array,
    as_long_string,
    as_object,
    as_string,
    first_candidate,
    json_text,
    whole_number,
)
from actors.core.data.jsonio import is_array, is_object, sanitise

_DETAIL_TEXT_KEYS = {"reasoning.text": "text", "reasoning.summary": "summary"}


class PartialReasoning:
    """The reasoning of one answer while it arrives. To avoid a reference cycle, methods receive the answer as an
    argument.

    Args:
        carrier: The form in which the dialect accepts reasoning back, such as `reasoning_content`.
    """

    def __init__(self, carrier: str) -> None:
        self._carrier = carrier
        self._parts: list[PartialText] = []
        self._details: list[dict[str, object]] = []
        self._more: dict[str, object] = {}

    def add_delta(self, answer: MessageBuilder, delta: Fields) -> None:
        """Add the reasoning fields of a delta or of a complete message to the answer."""
        details = [as_object(item) for item in as_array(delta.get("reasoning_details"))]
        words = as_long_string(delta.get("reasoning_content")) or as_long_string(delta.get("reasoning"))
        for detail in details:
            self._add_detail(detail)
        words = words or "".join(map(_detail_text, details))
        if words or (details and self._carrier == "reasoning_details"):
            self._add_text(answer, words)

    def add_chunk(self, answer: MessageBuilder, chunk: Fields) -> None:
        """Add a content chunk of type `thinking`, complete or partial, to the answer."""
        thinking = chunk.get("thinking")
        pieces = [as_string(as_object(item).get("text")) for item in as_array(thinking)]
        known = ("type", "thinking")
        self._more |= {key: value for key, value in chunk.items() if key not in known and value is not None}
        self._add_text(answer, as_long_string(thinking) or "".join(pieces))

    def seal_parts(self, answer: MessageBuilder) -> None:
        """Attach the data that is needed to send back the reasoning received so far, if the dialect accepts reasoning
        back. Repeating this has no effect.
        """
        for part in self._parts:
            if self._carrier == "reasoning_content":
                answer.attach_seal(part, self._carrier, self._carrier)
            elif self._carrier == "thinking_chunk":
                last = part is self._parts[-1]
                answer.attach_seal(part, self._carrier, json_text(self._more if last else {}))
            elif self._carrier == "reasoning_details" and self._details and part is self._parts[0]:
                answer.attach_seal(part, self._carrier, json_text(self._details))

    def _add_text(self, answer: MessageBuilder, piece: str | LongText) -> None:
        part = answer.continue_text("thinking")
        if part not in self._parts:
            self._parts.append(part)
        answer.add_text(part, piece)

    def _add_detail(self, detail: Fields) -> None:
        """Add a reasoning detail, or append it to the previous detail if both have the same type and index."""
        last = self._details[-1] if self._details else {}
        words = _DETAIL_TEXT_KEYS.get(as_string(detail.get("type")))
        same = all(key in detail and last.get(key) == detail[key] for key in ("type", "index"))
        if words is None or not same:
            self._details.append(dict(detail))
            return
        joined = as_string(last.get(words)) + as_string(detail.get(words))
        last.update({key: value for key, value in detail.items() if value is not None})
        last[words] = joined


def _detail_text(detail: Fields) -> str:
    return as_string(detail.get(_DETAIL_TEXT_KEYS.get(as_string(detail.get("type")), "")))


_LEGACY = "function_call"  # the field of the older protocol, which allowed a single call
_CALL_FIELDS = ("tool_calls", _LEGACY)
_REASONING_FIELDS = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
_CONTENT_FIELDS = frozenset(
    {"content", "refusal", "tool_calls", "function_call", "reasoning_content", "reasoning"}
)
_KNOWN_FIELDS = _CONTENT_FIELDS | _REASONING_FIELDS | {"role", "name"}
_FIELDS_OUTSIDE_MESSAGE = frozenset({"error", "base_resp", "citations", "search_results", "provider"})
"""Fields next to the message. A chunk without any of them contains only a piece of the message."""
_FAILURE_REASONS = frozenset({"error", "network_error", "insufficient_system_resource"})
"""Finish reasons that report a failure after status 200: from gateways and Mistral, GLM, and DeepSeek."""
_USAGE_FIELDS = {"input": (0,), "output": (1,), "reasoning": (1,), "read": (2,), "written": (3,)}
_DATA = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


class ChatDecoder(Decoder):
    """Decodes answers in the Chat Completions format. A complete body is processed as a single chunk."""

    ended: bool
    upstream: str
    _begun = False  # whether any part of a message has arrived

    def reset_parts(self) -> None:
        super().reset_parts()
        self._reasoning = PartialReasoning(self.dialect.reasoning.carrier)

    def process_event(self, name: str, payload: Fields) -> None:
        choice = first_candidate(payload.get("choices"))
        reported = name == "error" or payload.get("object") == "error"
        if (
            reported
            or not _FIELDS_OUTSIDE_MESSAGE.isdisjoint(payload)
            or choice.get("logprobs")
            or choice.get("error")
        ):
            self._process_chunk_extras(payload, choice, has_error=reported)
        self._begun = self._begun or bool(choice)
        delta = choice.get("delta") or self._unsent_fields(choice)
        # `type` instead of `is_object`, for speed: this line runs for every chunk
        said = delta if type(delta) is dict else {}  # pyright: ignore[reportUnknownVariableType]
        self._process_choice(payload, choice, said)  # pyright: ignore[reportUnknownArgumentType]

    def process_body(self, body: Fields) -> None:
        choice = first_candidate(body.get("choices"))
        self._process_chunk_extras(body, choice, has_error=body.get("object") == "error")
        if _CONTENT_FIELDS.isdisjoint(as_object(choice.get("message"))):
            raise answer_fault("the body contains no message")
        self._begun = True
        self._process_choice(body, choice, as_object(choice["message"]))
        self.on_done()

    def on_done(self) -> None:
        if not self._begun:
            raise answer_fault("the stream ended without a message")
        self._reasoning.seal_parts(self)
        self.end_all_parts()
        self.ended = True

    @property
    def has_regular_end(self) -> bool:
        return self.finish_reason is not None

    def _unsent_fields(self, choice: Fields) -> Fields:
        """Return the fields of a chunk's complete `message`, if it has one, that no delta has sent yet.

        Some relays send only the complete message; other relays send deltas as well.
        """
        message = as_object(choice.get("message"))
        if not self._parts:
            return message
        return {} if self.has_calls else {key: message[key] for key in _CALL_FIELDS if key in message}

    def _process_choice(self, answer: Fields, choice: Fields, message: Fields) -> None:
        usage = answer.get("usage") or choice.get("usage")
        if usage and is_object(usage):
            self.update_usage(_token_figures(usage), _USAGE_FIELDS)
        if message:
            self._process_message(message)
        if (told := choice.get("finish_reason")) and (reason := without_placeholder(told)):
            if reason in _FAILURE_REASONS:
                raise answer_fault(f"the provider ended the answer with finish_reason {reason!r}")
            self._reasoning.seal_parts(self)
            for part in self._parts:
                # Mark the part as complete, so that it is kept if the answer breaks off here. Some servers send more
                # arguments after the finish reason, which revoke the mark.
                part.done = True
            self.record_finish_reason(reason)

    def _process_message(self, delta: Fields) -> None:
        """Process a delta, or a complete message, which has the same fields."""
        if not _REASONING_FIELDS.isdisjoint(delta):
            self._reasoning.add_delta(self, delta)
        if content := delta.get("content"):
            self._process_content(content)
        if refusal := delta.get("refusal"):
            self._add_content_text(as_long_string(refusal))  # a refusal counts as text by the model
        if not delta.keys() <= _KNOWN_FIELDS:
            self._process_message_extras(delta)
        legacy = delta.get("function_call")
        if given := delta.get("tool_calls"):
            delta_calls: set[PartialCall] = set()
            for each in as_array(given) or (given,):
                fragment = as_object(each)
                self._process_call_fragment(slot_of(fragment.get("index")), fragment, delta_calls)
        # One endpoint adds an empty `function_call` to every answer, and relays repeat `tool_calls` there.
        elif legacy and is_object(legacy) and (legacy.get("name") or legacy.get("arguments")):
            self._process_call_fragment(_LEGACY, {"function": legacy}, set())

    def _process_content(self, content: object) -> None:
        """Process content, which is a string or, from some servers, a list of chunks."""
        if text := as_long_string(content):
            return self._add_content_text(text)
        for chunk in map(as_object, as_array(content)):
            if chunk.get("type") == "text":
                self._add_content_text(as_long_string(chunk.get("text")))
            elif chunk.get("type") == "thinking":
                self._reasoning.add_chunk(self, chunk)
            else:
                self.add_native(as_string(chunk.get("type")), dict(chunk), is_resendable=False).done = True
        return None

    def _add_content_text(self, piece: str | LongText) -> None:
        if piece:
            self.add_text(self.continue_text("text"), piece)

    def _process_message_extras(self, delta: Fields) -> None:
        """Process the fields of a message besides text, reasoning and calls, such as images, citations and sources."""
        for key in (key for key in delta if key not in _KNOWN_FIELDS):
            given = delta[key]
            if key == "images":
                for image in as_array(given):
                    self._add_image(as_object(image))
            elif is_array(given):
                self.add_metadata(key, given)
            else:
                self.count_omission_once(key, given)

    def _add_image(self, image: Fields) -> None:
        """Add a generated image, which is base64 data or a URL."""
        url = as_string(as_object(image.get("image_url")).get("url"))
        if match := _DATA.fullmatch(url):
            self.add_media(match[1], data=match[2])
        elif url:
            self.add_media("image/*", url=url)
        else:
            self.count_omission("images")

    def _process_chunk_extras(self, answer: Fields, choice: Fields, *, has_error: bool) -> None:
        """Process the fields of a chunk outside its message: an error, the upstream, logprobs, citations."""
        status = as_object(answer.get("base_resp"))
        if has_error or answer.get("error"):
            self.raise_reported_error(answer)
        if choice.get("error"):  # OpenRouter reports its upstream's errors here
            self.raise_reported_error(choice)
        if status.get("status_code"):  # MiniMax reports errors here
            self.raise_reported_error({"message": status.get("status_msg")})
        self.count_omission_once("logprobs", choice.get("logprobs"))
        for name in ("citations", "search_results"):
            self.add_metadata(name, answer.get(name), appends=False)
        if (upstream := as_string(answer.get("provider"))) and self.dialect.reasoning.binding == "upstream":
            self.upstream = sanitise(upstream)

    def _process_call_fragment(self, slot: Slot, fragment: Fields, delta_calls: set[PartialCall]) -> None:
        """Process a fragment of a call. `delta_calls` contains the calls of earlier fragments of the same delta."""
        function = as_object(fragment.get("function")) or as_object(fragment.get("custom")) or fragment
        before, text = (
            self.minted_id_count,
            self.arguments_text(function.get("arguments", function.get("input"))),
        )
        call = self.add_fragment(slot, fragment.get("id"), function.get("name"), text, delta_calls)
        if extra := fragment.get("extra_content"):
            self._attach_signature(call, extra, is_new=self.minted_id_count > before)
        if "custom" in fragment:
            call.free = call.free or isinstance(fragment["custom"], dict)
        delta_calls.add(call)

    def _attach_signature(self, call: PartialCall, extra: object, *, is_new: bool) -> None:
        """Attach a call's signature if the dialect accepts it back. Otherwise, count the signature as dropped."""
        signature = as_string(as_object(as_object(extra).get("google")).get("thought_signature"))
        if is_new and signature and self.dialect.reasoning.carrier == "extra_content":
            self.sign_call(call, "extra_content", signature)
        elif is_new or call.signature is None:
            self.count_omission("extra_content")


def _token_figures(usage: Fields) -> dict[str, int | None]:
    """Return the reported token figures. OpenAI, DeepSeek and Kimi use different names for cache figures."""
    details = as_object(usage.get("prompt_tokens_details"))
    read = (details.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), usage.get("cached_tokens"))
    written = (details.get("cache_write_tokens"), usage.get("cache_write_tokens"))
    return {
        "input": whole_number(usage.get("prompt_tokens")),
        "output": whole_number(usage.get("completion_tokens")),
        "reasoning": _separate_reasoning_tokens(usage),
        "read": _first_figure(read),
        "written": _first_figure(written),
    }


def _separate_reasoning_tokens(usage: Fields) -> int | None:
    """Return the number of reasoning tokens that `completion_tokens` excludes (as xAI's does), or None if none are
    reported.

    They are excluded if `total_tokens` exceeds the sum of prompt and completion by exactly their number. Otherwise, the
    result is 0.
    """
    reasoning = whole_number(as_object(usage.get("completion_tokens_details")).get("reasoning_tokens"))
    if reasoning is None:
        return None
    total, told = (
        whole_number(usage.get("total_tokens")),
        (usage.get("prompt_tokens"), usage.get("completion_tokens")),
    )
    counted = sum(whole_number(each) or 0 for each in told)
    return reasoning if total == counted + reasoning else 0


def _first_figure(figures: tuple[object, ...]) -> int | None:
    """Return the first positive figure, 0 if the reported figures are 0, or None if all figures are missing."""
    given = [figure for each in figures if (figure := whole_number(each)) is not None]
    return next(filter(None, given), 0) if given else None


# Call types of the client's tools. A provider's own tools have different call types.
_CLIENT_CALL_TYPES = ("", "function", "custom", "tool_call")


class ChatReader(TranscriptReader):
    """Reads transcripts in the Chat Completions format."""

    instructors: ClassVar[Sequence[str]] = ("system", "developer")

    def read_message(self, role: str, message: WireObject) -> None:
        match role:
            case "assistant":
                self.add_thinking(self._read_reasoning(message))
                self.read_parts(message)
                self.add_text(message.read_text("refusal"))
                self._read_calls(message)
            case "tool":
                self._read_calls(message)  # first, because the result may answer one of these calls
                key, name = message.read_id("tool_call_id"), message.read_text("name")
                self.add_result(key, *self.read_result_content(message, "content"), name=name)
            case "function":  # the older protocol has no ids and pairs calls and results by name
                self.add_result("", message.read_value("content"), name=message.read_text("name"))
            case _:
                super().read_message(role, message)

    def read_part(self, part: WireObject) -> None:
        if not part.has_value("type", "thinking"):
            super().read_part(part)
            return
        chunks = [chunk for chunk in part.read_list("thinking") if isinstance(chunk, WireObject)]
        for chunk in chunks:
            chunk.has_value("type", "text")
        self.add_thinking(part.read_text("thinking") or "".join(chunk.read_text("text") for chunk in chunks))

    def _read_reasoning(self, message: WireObject) -> str:
        """Return the text of a message's reasoning fields. Encrypted data is dropped, because imported data is never
        sent to a provider.

        A gateway may repeat the text in several fields.
        """
        words = message.read_text("reasoning_content") or message.read_text("reasoning")
        message.has_value("reasoning", words)
        details: list[str] = []
        for detail in message.read_list("reasoning_details"):
            if isinstance(detail, WireObject):
                detail.has_value("type", "reasoning.text", "reasoning.summary")
                details.append(detail.read_text("text") or detail.read_text("summary"))
        if words and details and "".join(details) != words:
            self.note_oddity("reasoning_details left out, because they differ from the reasoning")
        return words or "".join(details)

    def _read_calls(self, message: WireObject) -> None:
        for call in message.read_list("tool_calls"):
            if isinstance(call, WireObject):
                self._read_call(call)
            else:
                self.add_as_text("item that is no tool call", call)
        if legacy := message.read_object("function_call"):
            self._read_legacy_call(legacy.read_text("name"), legacy.read_value("arguments"))

    def _read_legacy_call(self, name: str, arguments: object) -> None:
        """Add a call of the older protocol, which has no ids. Empty calls, which some hosts add to every answer, are
        ignored.
        """
        if name.strip():
            self.add_call("", name, arguments, has_name=True)
        elif arguments and arguments != "{}":
            self.add_as_text("function_call without a name", arguments)

    def _read_call(self, call: WireObject) -> None:
        """Add a call of type `function` or `custom`, or a call that has its name and arguments next to its id."""
        if (kind := call.read_text("type")) not in _CLIENT_CALL_TYPES:
            self.add_as_text(f"call of type {kind[:40]!r}", call.read_all())
            return
        call.read_value("index")  # marked as read, because the position in the list is the index
        key, custom = call.read_id("id"), call.read_object("custom")
        if custom:
            self.add_call(key, custom.read_text("name"), custom.read_value("input"), free=True)
        else:
            function = call.read_object("function") or call
            self.add_call(key, function.read_text("name"), function.read_value("arguments", "input"))
