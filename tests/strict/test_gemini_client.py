"""Run tool conversations between Google's client and the strict server: the Gemini API and Vertex AI.

The client also reads the strict server's errors. Its asynchronous half runs on asyncio only.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import pytest
from google import genai
from google.genai import errors, types
from google.oauth2.credentials import Credentials

from actors.testing import (
    Call,
    GeminiProfile,
    GeminiServer,
    GeminiSettings,
    Redacted,
    Say,
    Script,
    Status,
    Think,
    Turn,
    serve,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning"
    ),  # the client closes its connections when it is collected
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

TOOL = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="weather",
            description="Weather.",
            parameters=types.Schema(
                type=types.Type.OBJECT, properties={"city": types.Schema(type=types.Type.STRING)}
            ),
        )
    ]
)
CONFIG = types.GenerateContentConfig(
    tools=[TOOL],
    system_instruction="Be brief.",
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
)
SCRIPT = (
    Turn(
        Think("Two cities."),
        Say("Looking."),
        Call("weather", {"city": "Oslo"}),
        Call("weather", {"city": "Rome"}),
    ),
    Turn(Call("weather", {"city": "Bonn"})),
    Turn(Redacted(), Say("Rome is warmer.")),
    Turn(Say("Goodbye.")),
)
Ask = Callable[[list[types.Content]], Any]  # Any: the client's untyped result


def connected(server: GeminiServer, *, vertex: bool, key: str = "key") -> genai.Client:
    options = types.HttpOptions(base_url=server.base_url)
    if not vertex:
        return genai.Client(api_key=key, http_options=options)
    return genai.Client(
        vertexai=True,
        project="project-1",
        location="global",
        # Without an expiry, so the client never requests another token.
        credentials=Credentials(token="token"),  # type: ignore[no-untyped-call]  # not typed by its maker
        http_options=options,
    )


def join_parts(chunks: list[types.GenerateContentResponse]) -> types.Content:
    """Return the unmerged parts of a response; a signature stays a separate part."""
    contents = [chunk.candidates[0].content for chunk in chunks if chunk.candidates]
    parts = [part for content in contents if content for part in content.parts or ()]
    return types.Content(role="model", parts=parts)


def function_results(said: types.Content, *, ids: bool) -> types.Content:
    """Return the results of the calls of a content, in call order."""
    calls = [part.function_call for part in said.parts or () if part.function_call]
    parts = [
        types.Part(
            function_response=types.FunctionResponse(
                name=call.name, response={"output": "mild"}, id=call.id if ids else None
            )
        )
        for call in calls
    ]
    return types.Content(role="user", parts=parts)


@asynccontextmanager
async def asked(server: GeminiServer, vertex: bool, streamed: bool, is_async: bool) -> AsyncIterator[Any]:
    """Yield a function that sends contents and returns the model's content."""
    async with serve(server):
        client = connected(server, vertex=vertex)

        def request(contents: list[types.Content]) -> Any:  # Any: the client's own arguments
            return {"model": "gemini-test", "contents": contents, "config": CONFIG}

        def ask(contents: list[types.Content]) -> types.Content:
            models = client.models
            if streamed:
                return join_parts(list(models.generate_content_stream(**request(contents))))
            return join_parts([models.generate_content(**request(contents))])

        async def ask_async(contents: list[types.Content]) -> types.Content:
            models = client.aio.models
            if streamed:
                chunks = await models.generate_content_stream(**request(contents))
                return join_parts([chunk async for chunk in chunks])
            return join_parts([await models.generate_content(**request(contents))])

        async def in_thread(contents: list[types.Content]) -> types.Content:
            return await anyio.to_thread.run_sync(ask, contents)

        yield ask_async if is_async else in_thread
        client.close()
        if is_async:
            await client.aio.aclose()


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.parametrize("vertex", [False, True], ids=["api", "vertex"])
@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_the_google_client_completes_a_tool_conversation(
    vertex: bool, streamed: bool, is_async: bool, anyio_backend_name: str
) -> None:
    if is_async and anyio_backend_name == "trio":
        pytest.skip("the vendor's asynchronous client needs asyncio")
    server = GeminiServer(Script(SCRIPT), vertex=vertex)
    contents = [types.Content(role="user", parts=[types.Part(text="Weather?")])]
    with anyio.fail_after(60):
        async with asked(server, vertex, streamed, is_async) as ask:
            for _ in range(2):
                said = await ask(contents)
                assert said.parts is not None
                assert said.parts[-1].function_call is not None
                contents += [said, function_results(said, ids=is_async)]  # the SDK's users may leave ids out
            said = await ask(contents)
            assert "".join(part.text or "" for part in said.parts or ()) == "Rome is warmer."
            contents += [said, types.Content(role="user", parts=[types.Part(text="Bye.")])]
            assert whole_text(await ask(contents)) == "Goodbye."
    assert server.refusals == []


def whole_text(said: types.Content) -> str:
    return "".join(part.text or "" for part in said.parts or ())


async def test_vertex_rejects_its_own_call_ids_before_gemini_3() -> None:
    settings = GeminiSettings(GeminiProfile(call_ids=False))
    server = GeminiServer(Script(SCRIPT), vertex=True, settings=settings)
    contents = [types.Content(role="user", parts=[types.Part(text="Weather?")])]
    with anyio.fail_after(60):
        async with asked(server, True, False, False) as ask:
            said = await ask(contents)
            with pytest.raises(errors.ClientError, match=r'Unknown name "id" at \W*contents\[1\]'):
                await ask([*contents, said, function_results(said, ids=True)])
    assert [refusal.rule for refusal in server.refusals] == ["GEM-09"]


async def test_the_google_client_raises_its_own_errors() -> None:
    user = [types.Content(role="user", parts=[types.Part(text="Weather?")])]
    faults = {1: Status(429), 2: Status(503)}
    server = GeminiServer(Script(SCRIPT), faults=faults, api_key="key")
    with anyio.fail_after(60):
        async with asked(server, False, False, False) as ask:
            call = types.Part(function_call=types.FunctionCall(name="weather", args={}))
            unanswered = [*user, types.Content(role="model", parts=[call]), *user]
            with pytest.raises(errors.ClientError, match="number of function response parts"):
                await ask(unanswered)
            with pytest.raises(errors.ClientError, match="exceeded your current quota"):
                await ask(user)
            with pytest.raises(errors.ServerError, match="overloaded"):
                await ask(user)
            stranger = connected(server, vertex=False, key="other")
            with pytest.raises(errors.ClientError, match="API key not valid"):
                await anyio.to_thread.run_sync(
                    lambda: stranger.models.generate_content(model="m", contents="hi")
                )
            stranger.close()


def weather(city: str) -> dict[str, str]:
    """Weather of a city."""
    return {"city": city, "weather": "mild"}


AUTOMATIC = (
    Turn(Think("Two cities."), Call("weather", {"city": "Oslo"}), Call("weather", {"city": "Rome"})),
    Turn(Call("weather", {"city": "Bonn"})),
    Turn(Redacted(), Say("Rome is warmer.")),
    Turn(Say("Goodbye.")),
)


@pytest.mark.alternating
@pytest.mark.parametrize("vertex", [False, True], ids=["api", "vertex"])
@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_the_google_client_calls_functions_automatically(vertex: bool, streamed: bool) -> None:
    server = GeminiServer(Script(AUTOMATIC), vertex=vertex)

    def talk() -> list[str]:
        client = connected(server, vertex=vertex)
        chat = client.chats.create(model="gemini-test", config=types.GenerateContentConfig(tools=[weather]))
        said: list[str] = []
        for words in ("Weather?", "Bye."):
            if streamed:
                said.append("".join(chunk.text or "" for chunk in chat.send_message_stream(words)))
            else:
                said.append(chat.send_message(words).text or "")
        client.close()
        return said

    with anyio.fail_after(60):
        async with serve(server):
            said = await anyio.to_thread.run_sync(talk)
    assert said == ["Rome is warmer.", "Goodbye."]
    assert server.refusals == []
    assert [exchange.status for exchange in server.requests] == [200] * 4


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_the_asynchronous_google_client_calls_functions_automatically(
    streamed: bool, anyio_backend_name: str
) -> None:
    if anyio_backend_name == "trio":
        pytest.skip("the vendor's asynchronous client needs asyncio")
    server = GeminiServer(Script(AUTOMATIC))
    with anyio.fail_after(60):
        async with serve(server):
            client = connected(server, vertex=False)
            chat = client.aio.chats.create(
                model="gemini-test", config=types.GenerateContentConfig(tools=[weather])
            )
            if streamed:
                chunks = await chat.send_message_stream("Weather?")
                said = "".join([chunk.text or "" async for chunk in chunks])
            else:
                said = (await chat.send_message("Weather?")).text or ""
            client.close()
            await client.aio.aclose()
    assert said == "Rome is warmer."
    assert server.refusals == []


@pytest.mark.parametrize("vertex", [False, True], ids=["api", "vertex"])
async def test_the_google_client_counts_tokens(vertex: bool) -> None:
    server = GeminiServer(vertex=vertex)
    contents = [types.Content(role="user", parts=[types.Part(text="Weather?")])]
    config = types.CountTokensConfig(system_instruction="Be brief.", tools=[TOOL]) if vertex else None

    def count() -> types.CountTokensResponse:
        client = connected(server, vertex=vertex)
        counted = client.models.count_tokens(model="gemini-test", contents=contents, config=config)
        with pytest.raises(errors.ClientError, match="valid role"):
            client.models.count_tokens(
                model="gemini-test", contents=types.Content(role="tool", parts=[types.Part(text="t")])
            )
        client.close()
        return counted

    with anyio.fail_after(60):
        async with serve(server):
            counted = await anyio.to_thread.run_sync(count)
    assert counted.total_tokens
    assert [refusal.rule for refusal in server.refusals] == ["GEM-08-vertex" if vertex else "GEM-08"]
