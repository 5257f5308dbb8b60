"""Encode scripted turns for OpenAI Responses.

The encoder first builds a list of output items. Both the plain and the streamed response are derived from this list, so
they cannot differ. The id of an item contains the id of the reasoning item before it (`rules/responses_items.py`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from actors.strict.rules.base import Json, ServerRefusal, dump
from actors.strict.rules.responses import encrypt
from actors.strict.rules.responses_shapes import ResponsesSettings
from actors.strict.rules.responses_store import as_items, conversation_of
from actors.strict.script import Builtin, Call, Redacted, Say, Think, Turn
from actors.strict.wires import (
    _CREATED,
    OPENAI_FAILURES,
    _arguments_text,
    _call_id,
    find_error,
    free_text,
    mint_id,
    split_text,
)

_ENCRYPTED = "reasoning.encrypted_content"
_CALL_EVENTS = {"arguments": "function_call_arguments", "input": "custom_tool_call_input"}
_ERROR_SEQUENCE_NUMBER = 999_999  # must exceed the numbers of the preceding events, which are unknown here


@dataclass(frozen=True, slots=True)
class ResponsesWire:
    """The response encoder for OpenAI Responses. Generated ids depend on `host`.

    `Turn.stop` may be `failed`, or the reason for an incomplete response, such as `max_output_tokens`.
    """

    settings: ResponsesSettings
    host: str = ""

    def encode_response(self, turn: Turn, request: Json, request_number: int) -> bytes:
        return dump(self.response_json(turn, request, request_number))

    def response_json(self, turn: Turn, request: Json, request_number: int) -> Json:
        """Return the JSON of a response that is not streamed."""
        output = [item for _, item in self._build_items(turn, request, request_number)]
        return {**self._final_response(turn, request, request_number, output), **turn.extra}

    def encode_events(self, turn: Turn, request: Json, request_number: int) -> list[bytes]:
        begun = self._response_json(request, request_number, "in_progress", [])
        events: list[Json] = [
            {"type": "response.created", "response": begun},
            {"type": "response.in_progress", "response": begun},
        ]
        output = self._build_items(turn, request, request_number)
        for at, (part, item) in enumerate(output):
            events += ({**event, "output_index": at} for event in _item_events(part, item, turn))
        ended = self._final_response(turn, request, request_number, [item for _, item in output])
        events.append({"type": f"response.{ended['status']}", "response": ended})
        return [
            _encode_event({**event, "sequence_number": sequence, **turn.extra})
            for sequence, event in enumerate(events)
        ]

    def compact(self, request: Json, request_number: int) -> Json:
        """Return the compacted form of a conversation: the user's messages, and one item that replaces the others."""
        users = [
            {
                "id": mint_id("msg_", self.host, request_number, at),
                "status": "completed",
                **item,
                "content": _content_parts(item["content"]),
            }
            for at, item in enumerate(as_items(request["input"]))
            if item.get("role") == "user"
        ]
        usage = {
            "input_tokens": 0,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 0,
        }
        return {
            "id": mint_id("resp_", self.host, request_number, 0),
            "object": "response.compaction",
            "created_at": _CREATED,
            "output": [*users, _compaction_item(mint_id("cmp_", self.host, request_number, 0))],
            "usage": usage,
        }

    def encode_error(self, refusal: ServerRefusal, request_number: int) -> bytes:
        error = {"message": refusal.message, "type": refusal.type, "param": refusal.param}
        return dump({"error": {**error, "code": refusal.code}})

    def encode_error_event(self, refusal: ServerRefusal, request_number: int) -> bytes:
        told = {"code": refusal.code or refusal.type, "message": refusal.message, "param": refusal.param}
        return _encode_event({"type": "error", **told, "sequence_number": _ERROR_SEQUENCE_NUMBER})

    def status_error(self, status: int) -> ServerRefusal:
        return find_error(status, OPENAI_FAILURES)

    def _response_json(self, request: Json, request_number: int, status: str, output: list[Json]) -> Json:
        return {
            "id": mint_id("resp_", self.host, request_number, 0),
            "object": "response",
            "created_at": _CREATED,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": request.get("instructions"),
            "max_output_tokens": request.get("max_output_tokens"),
            "metadata": request.get("metadata") or {},
            "model": request["model"],
            "output": output,
            "parallel_tool_calls": True,
            "previous_response_id": request.get("previous_response_id"),
            "reasoning": request.get("reasoning") or {"effort": None, "summary": None},
            "store": request.get("store", True),
            "temperature": 1.0,
            "text": {"format": {"type": "text"}},
            "tool_choice": request.get("tool_choice", "auto"),
            "tools": request.get("tools") or [],
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": None,
            **({} if (named := conversation_of(request)) is None else {"conversation": {"id": named}}),
            **({"background": True} if request.get("background") else {}),
        }

    def _final_response(self, turn: Turn, request: Json, request_number: int, output: list[Json]) -> Json:
        status = {None: "completed", "completed": "completed", "failed": "failed"}.get(
            turn.stop, "incomplete"
        )
        response = self._response_json(request, request_number, status, output)
        if status == "failed":
            error = {"code": "server_error", "message": "The model failed to generate a response."}
            return {**response, "error": error}
        if status == "incomplete":
            response["incomplete_details"] = {"reason": turn.stop}
        read, written = turn.usage
        return response | {
            "usage": {
                "input_tokens": read,
                "input_tokens_details": {
                    "cached_tokens": turn.cached[0],
                    "cache_write_tokens": turn.cached[1],
                },
                "output_tokens": written,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": read + written,
            }
        }

    def _build_items(self, turn: Turn, request: Json, request_number: int) -> list[tuple[object, Json]]:
        """Return each scripted part, paired with its output item."""
        if _asks_for_compaction(request):
            return [(None, _compaction_item(mint_id("cmp_", self.host, request_number, 0)))]
        output: list[tuple[object, Json]] = []
        behind, calls, free = "", 0, _free_form_tools(request)
        for at, part in enumerate(turn.parts):
            named = f"{behind or mint_id('', self.host, request_number, 0)}_{at}"
            match part:
                case Say():
                    item = _message_item(f"msg_{named}", part)
                case Builtin(value=value):
                    item = {"id": f"item_{named}", **value}
                case Call(name=name):
                    native = _call_id(part, turn, "call_", self.host, request_number, calls)
                    item = (
                        _custom_call_item(named, native, part)
                        if name in free
                        else _call_item(named, native, part)
                    )
                    calls += 1
                case _:
                    word = mint_id("", self.host, request_number, 1 + at)
                    item = self._reasoning_item(part, request, [made for _, made in output], f"rs_{word}")
                    behind = f"r{word}"
            output.append((part, item))
        if turn.stop not in (None, "completed", "failed") and output:
            output[-1][1]["status"] = "incomplete"
        if not self.settings.profile.has_item_ids:
            for _, item in output:
                del item["id"]
        return output

    def _reasoning_item(
        self, part: Think | Redacted, request: Json, preceding_items: list[Json], item_id: str
    ) -> Json:
        text = part.text if isinstance(part, Think) else ""
        summary = [{"type": "summary_text", "text": text}] if text else []
        state = part.signature if isinstance(part, Think) else None
        if state is None and _ENCRYPTED in (request.get("include") or ()):
            state = encrypt(request, preceding_items, item_id, self.settings)
        return {"id": item_id, "type": "reasoning", "summary": summary, "encrypted_content": state}


def _content_parts(content: Json) -> Json:
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else content


def _message_item(item_id: str, text_part: Say) -> Json:
    annotated = {"annotations": list(text_part.citations), "logprobs": []}
    content = [{"type": "output_text", "text": text_part.text, **annotated}]
    return {"id": item_id, "type": "message", "status": "completed", "role": "assistant", "content": content}


def _call_item(id_suffix: str, call_id: str, call: Call) -> Json:
    opening = {"id": f"fc_{id_suffix}", "type": "function_call", "status": "completed", "call_id": call_id}
    return {**opening, "name": call.name, "arguments": _arguments_text(call)}


def _custom_call_item(id_suffix: str, call_id: str, call: Call) -> Json:
    opening = {
        "id": f"ctc_{id_suffix}",
        "type": "custom_tool_call",
        "status": "completed",
        "call_id": call_id,
    }
    return {**opening, "name": call.name, "input": free_text(call)}


def _free_form_tools(request: Json) -> set[str]:
    """Return the names of a request's free-form tools, including tools that are declared in its items."""
    added = [
        item.get("tools") for item in as_items(request["input"]) if item.get("type") == "additional_tools"
    ]
    tools = [tool for tools in (request.get("tools"), *added) for tool in tools or ()]
    return {tool["name"] for tool in tools if tool.get("type") == "custom"}


def _asks_for_compaction(request: Json) -> bool:
    """Return True if the last item of a request asks for compaction instead of an answer."""
    items = as_items(request["input"])
    last: Json = items[-1] if items else {}
    return bool(last.get("type") == "compaction_trigger")


def _compaction_item(item_id: str) -> Json:
    return {"id": item_id, "type": "compaction", "encrypted_content": f"compacted by {item_id}"}


def _item_events(scripted_part: object, wire_item: Json, turn: Turn) -> Iterator[Json]:
    """Yield the stream events of one output item."""
    match scripted_part:
        case Say():
            empty: Json = {"content": [], "status": "in_progress"}
            told = _message_events(wire_item, turn)
        case Call():
            key = "input" if "input" in wire_item else "arguments"
            empty = {key: "", "status": "in_progress"}
            told = _call_events(wire_item, key, turn)
        case Builtin():
            empty, told = {"status": "in_progress"}, iter(())
        case None:
            empty, told = {}, iter(())
        case _:  # OpenAI sends part of the encrypted content in the start event
            partial = (wire_item["encrypted_content"] or "")[:8] or None
            empty = {"summary": [], "encrypted_content": partial}
            told = _reasoning_events(wire_item, turn)
    yield {"type": "response.output_item.added", "item": {**wire_item, **empty}}
    named = {"item_id": wire_item["id"]} if "id" in wire_item else {}
    yield from ({**event, **named} for event in told)
    yield {"type": "response.output_item.done", "item": wire_item}


def _message_events(item: Json, turn: Turn) -> Iterator[Json]:
    (part,) = item["content"]
    yield {"type": "response.content_part.added", "content_index": 0, "part": {**part, "text": ""}}
    for piece in split_text(part["text"], turn.fragment):
        yield {"type": "response.output_text.delta", "content_index": 0, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", "content_index": 0, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", "content_index": 0, "part": part}


def _call_events(item: Json, key: str, turn: Turn) -> Iterator[Json]:
    text, name = item[key], f"response.{_CALL_EVENTS[key]}"
    for piece in split_text(text, max(len(text), 1) if turn.whole_calls else turn.fragment):
        yield {"type": f"{name}.delta", "delta": piece}
    called = {"name": item["name"]} if key == "arguments" else {}
    yield {"type": f"{name}.done", **called, key: text}


def _reasoning_events(item: Json, turn: Turn) -> Iterator[Json]:
    for at, part in enumerate(item["summary"]):
        told = {"summary_index": at}
        yield {"type": "response.reasoning_summary_part.added", **told, "part": {**part, "text": ""}}
        for piece in split_text(part["text"], turn.fragment):
            yield {"type": "response.reasoning_summary_text.delta", **told, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **told, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **told, "part": part}


def _encode_event(event: Json) -> bytes:
    name: str = event["type"]
    return b"event: " + name.encode() + b"\ndata: " + dump(event) + b"\n\n"
