"""Check that recorded requests of real clients are accepted.

Each test covers a difference that was once found between a strict server and the host that it stands for.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from actors.strict.loopback import HttpRequest
from actors.strict.server import LoopbackServer
from actors.testing import (
    AnthropicServer,
    Call,
    GeminiServer,
    MistralServer,
    OpenAIServer,
    Redacted,
    ResponsesServer,
    Say,
    ServerLimits,
    Think,
    Turn,
)

Json = dict[str, Any]  # a body under test may be anything

USER: Json = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
ENCRYPTED = ["reasoning.encrypted_content"]
TOOL: Json = {"type": "function", "name": "read", "parameters": {"type": "object"}, "strict": False}
PATCH: Json = {
    "type": "custom",
    "name": "apply_patch",
    "description": "A FREEFORM tool.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: begin_patch"},
}
CALLED = Turn(Think("Hm."), Call("read", {"path": "a"}))


def ask(server: LoopbackServer, path: str, body: Json, headers: Mapping[str, str] | None = None) -> Any:
    """Return the JSON or the events of an answer, which must not be an error."""
    request = HttpRequest("POST", path, headers or {}, json.dumps(body).encode(), False)
    answer = server.answer(request)
    assert answer.status == 200, answer.parts
    return json.loads(answer.parts[0]) if not answer.streamed else [*map(event, answer.parts)]


def event(part: bytes) -> Any:
    """Return the JSON of an event, or None."""
    data = part.partition(b"data: ")[2].strip()
    return None if data in (b"", b"[DONE]") else json.loads(data)


def ask_responses(server: ResponsesServer, *items: Json, **more: Any) -> Any:  # any key of a request
    return ask(server, "/v1/responses", {"model": "m", "input": list(items), **more})


def rejection_of(
    server: ResponsesServer, *items: Json, **more: Any
) -> tuple[str, int]:  # any key of a request
    body = json.dumps({"model": "m", "input": list(items), **more}).encode()
    answer = server.answer(HttpRequest("POST", "/v1/responses", {}, body, False))
    return server.refusals[-1].rule, answer.status


def call_output(call: Json, text: str = "done") -> Json:
    kind = call["type"] + "_output"
    return {"type": kind, "call_id": call["call_id"], "output": text}


def reference(item: Json) -> Json:
    return {"type": "item_reference", "id": item["id"]}


def without(item: Json, *keys: str) -> Json:
    return {key: value for key, value in item.items() if key not in keys}


# --- OpenAI Responses


def test_the_fields_that_codex_adds_are_accepted() -> None:
    server = ResponsesServer()
    metadata: Json = {"turn_id": "01a2", "create_time": 1.5, "content_item_kinds": ["user.text"]}
    told = {**USER, "id": "msg_01a20349-1c11-7263", "internal_chat_message_metadata_passthrough": metadata}
    added: Json = {"type": "additional_tools", "role": "developer", "tools": [PATCH]}
    answer = ask_responses(
        server,
        {**told, "id": "msg_01a20349-1c00-7aa0", "role": "developer"},
        added,
        told,
        store=False,
        include=ENCRYPTED,
        prompt_cache_key="01a20349-1bb0-7632",
        text={"verbosity": "low"},
        client_metadata={"session_id": "01a2"},
        tools=[TOOL, PATCH, {"type": "web_search", "external_web_access": True}],
    )
    assert answer["status"] == "completed"


def test_an_item_that_triggers_compaction_produces_exactly_one_compaction() -> None:
    server = ResponsesServer([Turn(Say("never said"))])
    answer = ask_responses(server, USER, {"type": "compaction_trigger"}, store=False)
    assert [item["type"] for item in answer["output"]] == ["compaction"]
    events = ask_responses(server, USER, {"type": "compaction_trigger"}, store=False, stream=True)
    done = [event["item"]["type"] for event in events if event["type"] == "response.output_item.done"]
    assert done == ["compaction"]
    assert ask_responses(server, answer["output"][0], USER, store=False)["status"] == "completed"


@pytest.mark.parametrize("more", [{}, {"store": True}, {"store": None}])
def test_stored_items_may_be_referenced_by_id(more: Json) -> None:
    server = ResponsesServer([CALLED, Turn(Say("Done."))])
    thought, call = ask_responses(server, USER, tools=[TOOL], **more)["output"]
    answer = ask_responses(
        server, USER, reference(thought), reference(call), call_output(call), tools=[TOOL], **more
    )
    assert answer["output"][0]["content"][0]["text"] == "Done."
    by_id = {"type": "reasoning", "id": thought["id"], "summary": []}
    ask_responses(server, USER, by_id, call, call_output(call), tools=[TOOL], **more)


def test_unstored_items_may_not_be_referenced() -> None:
    server = ResponsesServer([CALLED])
    thought, call = ask_responses(server, USER, store=False)["output"]
    assert rejection_of(server, USER, reference(thought), reference(call), call_output(call)) == (
        "OAR-05",
        404,
    )
    assert rejection_of(server, reference({"id": "msg_never"}), USER) == ("OAR-05", 404)
    by_id = {"type": "reasoning", "id": thought["id"], "summary": []}
    assert rejection_of(server, USER, by_id, call, call_output(call)) == ("OAR-05", 404)


@pytest.mark.parametrize("store", [False, None])
def test_items_sent_back_must_all_have_ids_or_all_lack_ids(store: bool | None) -> None:
    server = ResponsesServer(lambda request: Turn(*CALLED.parts[:1], Say("So."), *CALLED.parts[1:]))
    thought, told, call = ask_responses(server, USER, store=store, include=ENCRYPTED)["output"]
    bare, plain, plainly = (without(item, "id") for item in (thought, told, call))
    ask_responses(server, USER, thought, told, call, call_output(call), store=store)
    ask_responses(server, USER, bare, plain, plainly, call_output(call), store=store)
    assert rejection_of(server, USER, thought, plain, plainly, call_output(call), store=store) == (
        "OAR-03",
        400,
    )
    assert rejection_of(server, USER, bare, told, call, call_output(call), store=store) == ("OAR-04", 400)
    assert rejection_of(server, USER, told, call, call_output(call), store=store) == ("OAR-04", 400)


@pytest.mark.parametrize("store", [False, None])
def test_a_call_after_reasoning_is_recognised_by_its_call_id(store: bool | None) -> None:
    server = ResponsesServer(lambda request: CALLED)
    thought, call = ask_responses(server, USER, store=store, include=ENCRYPTED)["output"]
    plain = without(call, "id")  # as the AI SDK sends it
    ask_responses(server, USER, thought, plain, call_output(call), store=store)
    if store is None:
        ask_responses(server, USER, reference(thought), plain, call_output(call))
    other = {**plain, "call_id": "call_other"}
    assert rejection_of(server, USER, thought, other, call_output(other), store=store) == ("OAR-03", 400)
    assert rejection_of(server, USER, without(thought, "id"), call, call_output(call), store=store) == (
        "OAR-04",
        400,
    )


def test_a_response_continues_the_chain_of_its_previous_response() -> None:
    seen: list[Any] = []
    turns = iter([CALLED, Turn(Say("Done.")), Turn(Say("Bye."))])

    def model(request: Json) -> Turn:
        seen.append(request["input"])
        return next(turns)

    server = ResponsesServer(model)
    first = ask_responses(server, USER, tools=[TOOL])
    call = first["output"][1]
    second = ask_responses(server, call_output(call), previous_response_id=first["id"], tools=[TOOL])
    third = ask(server, "/v1/responses", {"model": "m", "input": "bye", "previous_response_id": second["id"]})
    assert [second["previous_response_id"], third["previous_response_id"]] == [first["id"], second["id"]]
    told: Json = {"type": "message", "role": "user", "content": "bye"}
    whole = [USER, *first["output"], call_output(call), *second["output"], told]
    assert seen == [whole[:1], whole[:4], whole]
    request = HttpRequest("GET", f"/v1/responses/{second['id']}", {}, b"", False)
    assert json.loads(server.answer(request).parts[0]) == second


def test_a_response_chain_that_is_not_stored_or_has_an_unanswered_call_is_rejected() -> None:
    server = ResponsesServer([CALLED, CALLED])
    first = ask_responses(server, USER)
    assert rejection_of(server, USER, previous_response_id="resp_never") == ("OAR-S12", 400)
    assert rejection_of(server, USER, previous_response_id=first["id"]) == ("OAR-01", 400)
    forgotten = ask_responses(server, USER, store=False)
    assert rejection_of(server, USER, previous_response_id=forgotten["id"]) == ("OAR-S12", 400)


def test_only_the_latest_responses_are_kept() -> None:
    server = ResponsesServer(limits=ServerLimits(recordings=2))
    named = [ask_responses(server, USER)["id"] for _ in range(3)]
    assert rejection_of(server, USER, previous_response_id=named[0]) == ("OAR-S12", 400)
    for kept in named[1:]:
        ask_responses(server, USER, previous_response_id=kept, store=False)


def test_reasoning_needs_neither_its_id_nor_its_summary() -> None:
    server = ResponsesServer(lambda request: CALLED)
    thought, call = ask_responses(server, USER, store=False, include=ENCRYPTED)["output"]
    assert thought["summary"]
    bare = {**without(thought, "id"), "summary": []}
    ask_responses(server, USER, bare, without(call, "id"), call_output(call), store=False)
    ask_responses(server, USER, {**thought, "summary": []}, call, call_output(call), store=False)


def test_a_free_form_call_is_served_as_a_custom_tool_call() -> None:
    patch = "*** Begin Patch\n*** End Patch"
    server = ResponsesServer([Turn(Call("apply_patch", raw=patch)), Turn(Say("Done."))])
    (call,) = ask_responses(server, USER, tools=[TOOL, PATCH], store=False)["output"]
    assert (call["type"], call["input"], call["name"]) == ("custom_tool_call", patch, "apply_patch")
    ask_responses(server, USER, without(call, "id"), call_output(call), tools=[TOOL, PATCH], store=False)
    streamed = ResponsesServer([Turn(Call("apply_patch", {"input": patch}))])
    events = ask_responses(streamed, USER, tools=[PATCH], stream=True)
    pieces = [e["delta"] for e in events if e["type"] == "response.custom_tool_call_input.delta"]
    assert len(pieces) > 1
    assert "".join(pieces) == patch
    assert events[-1]["response"]["output"][0]["input"] == patch


def test_a_websocket_request_is_answered_with_status_426_at_once() -> None:
    server = ResponsesServer()
    headers = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-version": "13"}
    assert server.answer(HttpRequest("GET", "/v1/responses", headers, b"", False)).status == 426
    assert server.answer(HttpRequest("GET", "/v1/responses", {}, b"", False)).status == 405


# --- Gemini

GEMINI = "/v1beta/models/gemini-3:generateContent"
SAID: Json = {"role": "user", "parts": [{"text": "hi"}]}


def test_gemini_enum_values_may_be_lower_case_or_unspecified() -> None:
    schema: Json = {"type": "object", "properties": {"path": {"type": "string"}}}
    tools = [{"functionDeclarations": [{"name": "read", "parameters": schema}]}]
    body: Json = {
        "contents": [SAID],
        "tools": tools,
        "toolConfig": {"functionCallingConfig": {"mode": "MODE_UNSPECIFIED"}},
        "generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}},
    }
    server = GeminiServer()
    ask(server, GEMINI, body)
    body["toolConfig"] = {"functionCallingConfig": {"mode": "auto"}}
    body["generationConfig"] = {"thinkingConfig": {"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}}
    ask(server, GEMINI, body)
    for wrong in ("strings", "TYPE_UNSPECIFIED"):
        schema["properties"]["path"]["type"] = wrong
        request = HttpRequest("POST", GEMINI, {}, json.dumps(body).encode(), False)
        assert server.answer(request).status == 400


@pytest.mark.parametrize("vertex", [False, True])
def test_gemini_field_names_may_be_in_both_spellings(vertex: bool) -> None:
    seen: list[Any] = []

    def model(request: Json) -> Turn:
        seen.append(request)
        return Turn(Call("read", {"snake_key": 1}, id="")) if len(seen) == 1 else Turn(Say("Done."))

    server = GeminiServer(model, vertex=vertex)
    path = "/v1/projects/p/locations/l/publishers/google/models/m:generateContent" if vertex else GEMINI
    declared = {"name": "read", "parameters_json_schema": {"type": "object", "additional_key": {}}}
    body: Json = {
        "system_instruction": {"parts": [{"text": "s"}]},
        "tools": [{"function_declarations": [declared]}, {"google_search": {}}],
        "generation_config": {"max_output_tokens": 9, "thinking_config": {"include_thoughts": True}},
        "contents": [SAID],
    }
    part = ask(server, path, body)["candidates"][0]["content"]["parts"][0]
    call = {"function_call": part["functionCall"], "thought_signature": part["thoughtSignature"]}
    response = {"function_response": {"name": "read", "response": {"out_put": 1}}}
    body["contents"] += [{"role": "model", "parts": [call]}, {"role": "user", "parts": [response]}]
    ask(server, path, body)
    assert seen[1]["contents"][1]["parts"][0]["functionCall"]["args"] == {"snake_key": 1}
    assert seen[1]["contents"][2]["parts"][0]["functionResponse"]["response"] == {"out_put": 1}
    assert seen[1]["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["additional_key"] == {}


def test_an_unknown_gemini_field_name_is_rejected_in_both_spellings() -> None:
    server = GeminiServer()
    for name in ("noSuchField", "no_such_field"):
        body = json.dumps({"contents": [SAID], name: 1}).encode()
        assert server.answer(HttpRequest("POST", GEMINI, {}, body, False)).status == 400
        assert f'Unknown name "{name}"' in server.refusals[-1].message


def test_the_final_signature_may_be_sent_back_on_the_merged_text() -> None:
    server = GeminiServer([Turn(Redacted(), Say("A long enough answer.")), Turn(Say("ok"))])
    events = ask(server, GEMINI.replace("generate", "streamGenerate"), {"contents": [SAID]})
    parts = [part for each in events for part in each["candidates"][0]["content"]["parts"]]
    assert parts[-1]["text"] == ""
    merged = {
        "text": "".join(part["text"] for part in parts),
        "thoughtSignature": parts[-1]["thoughtSignature"],
    }
    ask(server, GEMINI, {"contents": [SAID, {"role": "model", "parts": [merged]}, SAID]})
    body = json.dumps({"contents": [SAID, {"role": "model", "parts": [merged]}, SAID]}).encode()
    elsewhere = HttpRequest("POST", GEMINI.replace("gemini-3", "gemini-4"), {}, body, False)
    assert server.answer(elsewhere).status == 400


# --- Chat Completions, Mistral, Anthropic

CHAT_CALL: Json = {
    "id": "aaaaaaaa1",
    "type": "function",
    "function": {"name": "read", "arguments": "{}"},
}


def test_a_tool_message_may_name_its_tool() -> None:
    result = {"role": "tool", "tool_call_id": "aaaaaaaa1", "name": "read", "content": "r"}
    messages = [{"role": "user", "content": "u"}, {"role": "assistant", "tool_calls": [CHAT_CALL]}, result]
    ask(OpenAIServer(), "/v1/chat/completions", {"model": "m", "messages": messages})


def test_mistral_accepts_an_empty_list_of_calls() -> None:
    said = {"role": "assistant", "content": "a", "tool_calls": []}
    messages = [{"role": "user", "content": "u"}, said, {"role": "user", "content": "u"}]
    ask(MistralServer(), "/v1/chat/completions", {"model": "m", "messages": messages})
    body = json.dumps({"model": "m", "messages": messages}).encode()
    request = HttpRequest("POST", "/v1/chat/completions", {}, body, False)
    assert OpenAIServer().answer(request).status == 400


def test_interleaved_thinking_may_exceed_max_tokens() -> None:
    body: Json = {
        "model": "m",
        "max_tokens": 1024,
        "thinking": {"type": "enabled", "budget_tokens": 4096},
        "messages": [{"role": "user", "content": "u"}],
    }
    server = AnthropicServer()
    betas = {"anthropic-beta": "fine-grained-tool-streaming-2025-05-14, interleaved-thinking-2025-05-14"}
    ask(server, "/v1/messages", body, betas)
    request = HttpRequest("POST", "/v1/messages", {}, json.dumps(body).encode(), False)
    assert server.answer(request).status == 400


def test_the_mistral_server_numbers_the_calls_of_a_stream() -> None:
    calls = (Call("read"), Call("read", {"path": "b"}))
    for turn, wanted in ((Turn(*calls), [0, 1]), (Turn(*calls, index="zero"), [0, 0])):
        body = {"model": "m", "messages": [{"role": "user", "content": "u"}], "stream": True}
        events = ask(MistralServer([turn]), "/v1/chat/completions", body)
        deltas = [each["choices"][0]["delta"] for each in events if each]
        made = [call for delta in deltas for call in delta.get("tool_calls") or ()]
        assert [call["index"] for call in made] == wanted
        assert len({call["id"] for call in made}) == 2
