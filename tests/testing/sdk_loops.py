"""The daily work of a program with each vendor's SDK: tools, thinking, structured output, images, errors.

A loop is a plain function of a base URL. It drives the vendor's SDK against a server that serves `TURNS` and a 429 for
its last request; each loop makes the same ten requests. The caller chooses the server: one in this process, or `actors
simulate`.
"""

import base64
from collections.abc import Callable, Mapping
from typing import Any

import anthropic
import mistralai.client
import mistralai.client.errors
import openai
import pydantic
import pytest
from google import genai
from google.genai import errors, types

Json = dict[str, Any]  # the SDKs' typed dictionaries, after conversion to plain ones

_CALLS = [{"call": "weather", "arguments": {"city": city}} for city in ("Oslo", "Rome")]
TURNS: list[Any] = [
    [{"think": "Two cities."}, "Looking.", *_CALLS],
    [{"think": "Rome, then."}, "Rome is warmer."],
    ['{"city": "Rome", "degrees": 21}'],
    ["A dot."],
] * 2
"""The model's script in the form of `--script`: once for plain answers, once for streams."""
LIMITED = 9
"""The number of the request that receives a 429, from 0."""

QUESTION = "Weather in Oslo and in Rome?"
SCHEMA: Json = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
DOT_URL = f"data:image/png;base64,{DOT}"


class Weather(pydantic.BaseModel):
    """A structured answer."""

    city: str
    degrees: int


ROME = Weather(city="Rome", degrees=21)


def loop_openai_chat(base_url: str) -> None:
    """Drive OpenAI's SDK through Chat Completions."""
    function = {"name": "weather", "parameters": SCHEMA, "strict": True}
    tools: Any = [{"type": "function", "function": function}]
    image = {"type": "image_url", "image_url": {"url": DOT_URL}}
    with openai.OpenAI(base_url=base_url, api_key="key", max_retries=0) as client:

        def ask(streamed: bool, *messages: Json, **more: Any) -> Any:  # a message of the SDK
            asked: Any = {"model": "m", "messages": list(messages), **more}
            if not streamed:
                return client.chat.completions.parse(**asked).choices[0].message
            with client.chat.completions.stream(**asked) as events:
                return events.get_final_completion().choices[0].message

        talk: list[Json] = []
        for streamed in (False, True):
            talk = [{"role": "user", "content": QUESTION}]
            made = ask(streamed, *talk, tools=tools)
            assert made.content == "Looking."
            assert [call.function.parsed_arguments for call in made.tool_calls] == [
                {"city": "Oslo"},
                {"city": "Rome"},
            ]
            calls = [
                call.model_dump(exclude={"function": {"parsed_arguments"}, "index": True})
                for call in made.tool_calls
            ]
            talk.append({"role": "assistant", "content": made.content, "tool_calls": calls})
            talk += [{"role": "tool", "tool_call_id": call["id"], "content": "mild"} for call in calls]
            assert ask(streamed, *talk, tools=tools).content == "Rome is warmer."
            form = ask(streamed, {"role": "user", "content": "And as JSON?"}, response_format=Weather)
            assert form.parsed == ROME
            seen = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}
            assert ask(streamed, seen).content == "A dot."
        with pytest.raises(openai.BadRequestError, match="did not have response messages"):
            ask(False, *talk[:2], {"role": "user", "content": "And now?"}, tools=tools)
        with pytest.raises(openai.RateLimitError):
            ask(False, talk[0])


def loop_openai_responses(base_url: str) -> None:
    """Drive OpenAI's SDK through Responses, without storage: reasoning is returned encrypted."""
    tools: Any = [{"type": "function", "name": "weather", "parameters": SCHEMA, "strict": True}]
    image = {"type": "input_image", "image_url": DOT_URL, "detail": "auto"}
    with openai.OpenAI(base_url=base_url, api_key="key", max_retries=0) as client:

        def ask(streamed: bool, *items: Any, **more: Any) -> Any:  # a response of the SDK
            asked: Any = {"model": "m", "input": list(items), "store": False, **more}
            asked |= {"include": ["reasoning.encrypted_content"], "reasoning": {"effort": "low"}}
            if not streamed:
                return client.responses.parse(**asked)
            with client.responses.stream(**asked) as events:
                return events.get_final_response()

        talk: list[Any] = []
        made: Any = None
        for streamed in (False, True):
            talk = [{"role": "user", "content": QUESTION}]
            made = ask(streamed, *talk, tools=tools)
            calls = [item for item in made.output if item.type == "function_call"]
            assert [item.type for item in made.output[:2]] == ["reasoning", "message"]
            assert [call.parsed_arguments for call in calls] == [{"city": "Oslo"}, {"city": "Rome"}]
            talk += made.output
            for call, output in zip(calls, ("mild", [image]), strict=True):
                talk.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
            assert ask(streamed, *talk, tools=tools).output_text == "Rome is warmer."
            asked = {"role": "user", "content": "And as JSON?"}
            assert ask(streamed, asked, text_format=Weather).output_parsed == ROME
            seen = {"role": "user", "content": [{"type": "input_text", "text": "What is it?"}, image]}
            assert ask(streamed, seen).output_text == "A dot."
        with pytest.raises(openai.BadRequestError, match="No tool output found for function call"):
            ask(False, talk[0], *made.output, {"role": "user", "content": "And now?"}, tools=tools)
        with pytest.raises(openai.RateLimitError):
            ask(False, talk[0])


def loop_anthropic(base_url: str) -> None:
    """Drive Anthropic's SDK."""
    tools: Any = [{"name": "weather", "input_schema": SCHEMA}]
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DOT}}
    with anthropic.Anthropic(base_url=base_url, api_key="key", max_retries=0) as client:

        def ask(streamed: bool, *messages: Json, **more: Any) -> Any:  # a message of the SDK
            asked: Any = {"model": "m", "max_tokens": 1000, "messages": list(messages), **more}
            asked["thinking"] = {"type": "adaptive"}
            if not streamed:
                return client.messages.parse(**asked)
            with client.messages.stream(**asked) as events:
                return events.get_final_message()

        talk: list[Json] = []
        for streamed in (False, True):
            talk = [{"role": "user", "content": QUESTION}]
            made = ask(streamed, *talk, tools=tools)
            calls = [block for block in made.content if block.type == "tool_use"]
            assert [block.type for block in made.content[:2]] == ["thinking", "text"]
            assert [call.input for call in calls] == [{"city": "Oslo"}, {"city": "Rome"}]
            talk.append({"role": "assistant", "content": made.content})
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": content}
                for call, content in zip(calls, ("mild", [image]), strict=True)
            ]
            talk.append({"role": "user", "content": results})
            assert ask(streamed, *talk, tools=tools).content[-1].text == "Rome is warmer."
            form = ask(streamed, {"role": "user", "content": "And as JSON?"}, output_format=Weather)
            assert form.parsed_output == ROME
            seen = {"role": "user", "content": [image, {"type": "text", "text": "What is it?"}]}
            assert ask(streamed, seen).content[-1].text == "A dot."
        with pytest.raises(anthropic.BadRequestError, match="without `tool_result` blocks immediately after"):
            ask(False, *talk[:2], {"role": "user", "content": "And now?"}, tools=tools)
        with pytest.raises(anthropic.RateLimitError):
            ask(False, talk[0])


def loop_google(base_url: str) -> None:
    """Drive Google's SDK against the Gemini API."""
    declared = types.FunctionDeclaration(name="weather", parameters_json_schema=SCHEMA)
    tools = [types.Tool(function_declarations=[declared])]
    image = types.Part.from_bytes(data=base64.b64decode(DOT), mime_type="image/png")
    client = genai.Client(api_key="key", http_options=types.HttpOptions(base_url=base_url))
    thinking = types.ThinkingConfig(include_thoughts=True)

    def ask(streamed: bool, *contents: types.Content, **more: Any) -> types.Content:
        config = types.GenerateContentConfig(thinking_config=thinking, **more)
        asked: Any = {"model": "gemini-m", "contents": list(contents), "config": config}
        if not streamed:
            answers = [client.models.generate_content(**asked)]
        else:
            answers = list(client.models.generate_content_stream(**asked))
        said = [answer.candidates[0].content for answer in answers if answer.candidates]
        return types.Content(
            role="model", parts=[part for content in said if content for part in content.parts or ()]
        )

    def text(content: types.Content) -> str:
        return "".join(part.text or "" for part in content.parts or () if not part.thought)

    def user(*parts: types.Part) -> types.Content:
        return types.Content(role="user", parts=list(parts))

    talk: list[types.Content] = []
    for streamed in (False, True):
        talk = [user(types.Part(text=QUESTION))]
        made = ask(streamed, *talk, tools=tools)
        calls = [part.function_call for part in made.parts or () if part.function_call]
        assert any(part.thought for part in made.parts or ())
        assert [call.args for call in calls] == [{"city": "Oslo"}, {"city": "Rome"}]
        results = [
            types.FunctionResponse(name=call.name, id=call.id, response={"output": "mild"}) for call in calls
        ]
        talk += [made, user(*(types.Part(function_response=result) for result in results))]
        assert text(ask(streamed, *talk, tools=tools)) == "Rome is warmer."
        form: Json = {"response_mime_type": "application/json", "response_schema": Weather}
        asked = user(types.Part(text="And as JSON?"))
        assert Weather.model_validate_json(text(ask(streamed, asked, **form))) == ROME
        assert text(ask(streamed, user(types.Part(text="What is it?"), image))) == "A dot."
    with pytest.raises(errors.ClientError, match="number of function response parts"):
        ask(False, *talk[:2], user(types.Part(text="And now?")), tools=tools)
    with pytest.raises(errors.ClientError) as limited:
        ask(False, talk[0])
    assert limited.value.code == 429
    client.close()


def loop_mistral(base_url: str) -> None:
    """Drive Mistral's SDK."""
    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
    image = {"type": "image_url", "image_url": DOT_URL}
    with mistralai.client.Mistral(api_key="key", server_url=base_url) as client:

        def ask(streamed: bool, *messages: Json, **more: Any) -> Any:  # a message
            asked: Any = {"model": "m", "messages": list(messages), **more}
            if not streamed:
                return (
                    client.chat.complete(**asked)
                    .choices[0]
                    .message.model_dump(exclude_none=True, by_alias=True)
                )
            with client.chat.stream(**asked) as events:
                return _merge_deltas([event.data.choices[0].delta for event in events])

        talk: list[Json] = []
        calls: list[Json] = []
        for streamed in (False, True):
            talk = [{"role": "user", "content": QUESTION}]
            made = ask(streamed, *talk, tools=tools, prompt_mode="reasoning")
            calls = made["tool_calls"]
            assert [call["function"]["arguments"] for call in calls] == ['{"city":"Oslo"}', '{"city":"Rome"}']
            talk.append(made)
            talk += [{"role": "tool", "tool_call_id": call["id"], "content": "mild"} for call in calls]
            assert _text_of(ask(streamed, *talk, tools=tools, prompt_mode="reasoning")) == "Rome is warmer."
            asked = {"role": "user", "content": "And as JSON?"}
            form: Json = {
                "type": "json_schema",
                "json_schema": {"name": "w", "schema": Weather.model_json_schema()},
            }
            assert Weather.model_validate_json(_text_of(ask(streamed, asked, response_format=form))) == ROME
            seen = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}
            assert _text_of(ask(streamed, seen)) == "A dot."
        with pytest.raises(mistralai.client.errors.SDKError, match="Not the same number of function calls"):
            ask(
                False,
                *talk[:2],
                {"role": "tool", "tool_call_id": calls[0]["id"], "content": "mild"},
                tools=tools,
            )
        with pytest.raises(mistralai.client.errors.SDKError) as limited:
            ask(False, talk[0])
        assert limited.value.status_code == 429


def _merge_deltas(deltas: list[Any]) -> Json:
    """Return the message that the deltas of Mistral's SDK add up to."""
    chunks: list[Json] = []
    calls: list[Json] = []
    for delta in deltas:
        plain = delta.model_dump(exclude_none=True, by_alias=True)
        calls += plain.get("tool_calls") or []
        content = plain.get("content") or []
        chunks += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {"role": "assistant", "content": _merge_texts(chunks), **({"tool_calls": calls} if calls else {})}


def _merge_texts(chunks: list[Json]) -> list[Json]:
    """Return chunks with adjacent texts merged, because a stream splits them."""
    merged: list[Json] = []
    for chunk in chunks:
        if merged and merged[-1]["type"] == chunk["type"] == "text":
            merged[-1] = {**chunk, "text": merged[-1]["text"] + chunk["text"]}
        elif merged and merged[-1]["type"] == chunk["type"] == "thinking":
            merged[-1] = {**chunk, "thinking": _merge_texts([*merged[-1]["thinking"], *chunk["thinking"]])}
        elif chunk.get("text") != "":
            merged.append(chunk)
    return merged


def _text_of(message: Json) -> str:
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return "".join(part["text"] for part in parts if part["type"] == "text")


LOOPS: Mapping[str, Callable[[str], None]] = {
    "openai_chat": loop_openai_chat,
    "openai_responses": loop_openai_responses,
    "anthropic": loop_anthropic,
    "gemini": loop_google,
    "mistral": loop_mistral,
}
"""The loops, by the dialect of the server."""
