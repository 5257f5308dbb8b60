"""Check the strict servers over HTTP: scripted turns, faults and limits."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

import actors.strict
from actors.strict.server import LoopbackServer
from actors.testing import (
    AnthropicProfile,
    AnthropicServer,
    AnthropicSettings,
    Call,
    Disconnect,
    Garbage,
    InjectedFault,
    MalformedEvent,
    OpenAIProfile,
    OpenAIServer,
    OpenAISettings,
    Say,
    Script,
    ServerLimits,
    Stall,
    Status,
    Think,
    Turn,
    serve,
)

pytestmark = pytest.mark.anyio

Json = dict[str, Any]  # a response under test may be anything
ASK: Json = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "u"}]}
PATHS = {OpenAIServer: "/chat/completions", AnthropicServer: "/v1/messages"}
TWO = (Call("read", {"p": 1}), Call("run", {"c": "x"}))


@asynccontextmanager
async def client(server: LoopbackServer) -> AsyncIterator[httpx2.AsyncClient]:
    with anyio.fail_after(60):
        async with serve(server), httpx2.AsyncClient(base_url=server.base_url) as http:
            yield http


def path(server: LoopbackServer) -> str:
    return PATHS[OpenAIServer] if isinstance(server, OpenAIServer) else PATHS[AnthropicServer]


async def post(server: LoopbackServer, **more: Any) -> httpx2.Response:  # any key may be in the request
    async with client(server) as http:
        return await http.post(path(server), json={**ASK, **more})


async def events(server: LoopbackServer) -> list[Json]:
    response = await post(server, stream=True)
    data = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in data if line != "[DONE]"]


async def fragments(turn: Turn) -> list[Json]:
    """Return the tool call deltas of an OpenAI stream."""
    found = await events(OpenAIServer(Script([turn])))
    return [d for event in found for d in event["choices"][0]["delta"].get("tool_calls", ())]


async def test_an_openai_stream_starts_with_the_role_and_ends_with_done() -> None:
    response = await post(OpenAIServer(Script([Turn(Say("hello there"))])), stream=True)
    lines = [line for line in response.text.split("\n\n") if line]
    chunks = [json.loads(line[6:]) for line in lines[:-1]]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0]["role"] == "assistant"
    assert [delta["content"] for delta in deltas[1:-1]] == ["hello th", "ere"]
    assert (deltas[-1], chunks[-1]["choices"][0]["finish_reason"]) == ({}, "stop")
    assert lines[-1] == "data: [DONE]"
    assert response.headers["content-type"].startswith("text/event-stream")


async def test_the_id_and_name_of_a_call_precede_its_argument_fragments() -> None:
    found = await fragments(Turn(*TWO, fragment=4))
    first, *rest = [delta for delta in found if delta["index"] == 0]
    assert first["function"] == {"name": "read", "arguments": ""}
    assert "".join(delta["function"]["arguments"] for delta in rest) == '{"p":1}'
    assert all(delta.keys() == {"index", "function"} for delta in rest)
    assert {delta["index"] for delta in found} == {0, 1}


async def test_backends_that_break_the_call_protocol_can_be_scripted() -> None:
    zero = await fragments(Turn(*TWO, index="zero", repeat_id=True, ids="restart"))
    assert {delta["index"] for delta in zero} == {0}
    assert {delta["id"] for delta in zero} == {"call_0", "call_1"}
    assert all(delta["function"]["name"] for delta in zero)
    missing = await fragments(Turn(*TWO, index="missing", ids="blank"))
    assert all("index" not in delta for delta in missing)
    assert {delta.get("id", "") for delta in missing} == {""}
    whole = await fragments(Turn(*TWO, whole_calls=True))
    assert [delta["function"]["arguments"] for delta in whole] == ['{"p":1}', '{"c":"x"}']
    half = await fragments(Turn(Call("read", raw='{"path":"/a', id="mine")))
    assert "".join(delta["function"]["arguments"] for delta in half) == '{"path":"/a'
    assert half[0]["id"] == "mine"


async def test_wrong_stop_reasons_and_unknown_fields_can_be_scripted() -> None:
    turn = Turn(Think("t"), *TWO, stop="stop", extra={"novel": 1})
    plain = (await post(OpenAIServer(Script([turn])))).json()["choices"][0]
    assert plain["finish_reason"] == "stop"
    assert (plain["message"]["novel"], plain["message"]["reasoning_content"]) == (1, "t")
    assert len(plain["message"]["tool_calls"]) == 2
    lying = Turn(*TWO, stop="max_tokens", ids="restart", extra={"novel": 1})
    message = (await post(AnthropicServer(Script([lying])))).json()
    assert (message["stop_reason"], message["novel"]) == ("max_tokens", 1)
    assert [block["id"] for block in message["content"]] == ["call_0", "call_1"]


async def test_an_anthropic_stream_names_its_events_and_closes_each_block() -> None:
    turn = Turn(Think("hm"), Say("a"), Call("read", raw='{"p": 1'))
    found = await events(AnthropicServer(Script([turn])))
    kinds = [event["type"] for event in found]
    assert kinds[:3] == ["message_start", "content_block_start", "ping"]
    assert kinds[-2:] == ["message_delta", "message_stop"]
    deltas = [event["delta"] for event in found if event["type"] == "content_block_delta"]
    assert [delta["type"] for delta in deltas][:3] == ["thinking_delta", "signature_delta", "text_delta"]
    assert "".join(delta.get("partial_json", "") for delta in deltas) == '{"p": 1'
    assert [e["index"] for e in found if e["type"] == "content_block_stop"] == [0, 1, 2]


async def test_the_turns_of_a_script_are_served_in_order_and_then_the_default() -> None:
    server = OpenAIServer(Script([Turn(Say("one")), Turn(Say("two"))], default=Turn(Say("more"))))
    async with client(server) as http:
        replies = [(await http.post(path(server), json=ASK)).json() for _ in range(4)]
    said = [reply["choices"][0]["message"]["content"] for reply in replies]
    assert said == ["one", "two", "more", "more"]
    assert len({reply["id"] for reply in replies}) == 4


async def test_a_script_may_answer_according_to_the_request() -> None:
    server = OpenAIServer(Script(lambda request: Turn(Say(request["model"]))))
    assert (await post(server)).json()["choices"][0]["message"]["content"] == "m"


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("cut", [None, 0, 30])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_scripted_disconnect_breaks_the_response_at_the_given_byte(
    streamed: bool, cut: int | None, reset: bool
) -> None:
    server = OpenAIServer(faults={0: Disconnect(after_bytes=cut, reset=reset)})
    with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
        await post(server, stream=streamed)
    assert server.requests[0].status == (0 if cut is None else 200)


async def collect(http: httpx2.AsyncClient, url: str, received: bytearray) -> None:
    async with http.stream("POST", url, json={**ASK, "stream": True}) as response:
        async for chunk in response.aiter_raw():
            received += chunk


async def test_a_client_gets_exactly_the_bytes_before_a_scripted_cut() -> None:
    server = AnthropicServer(faults={0: Disconnect(after_bytes=30)})
    received = bytearray()
    async with client(server) as http:
        with pytest.raises(httpx2.RemoteProtocolError):
            await collect(http, path(server), received)
    whole = (await post(AnthropicServer(), stream=True)).content
    assert bytes(received) == whole[:30]


@pytest.mark.parametrize("after", [None, 10])
async def test_a_stalled_response_ends_when_the_server_stops(after: int | None) -> None:
    arrived, failures = anyio.Event(), []

    def stall(number: int, request: Json) -> InjectedFault:
        arrived.set()
        return Stall(after_bytes=after)

    async def wait_for_ever(url: str) -> None:
        async with httpx2.AsyncClient(timeout=None) as http:
            try:
                await collect(http, url, bytearray())
            except httpx2.HTTPError as error:
                failures.append(error)

    server = OpenAIServer(faults=stall)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks, serve(server):
            tasks.start_soon(wait_for_ever, server.base_url + path(server))
            await arrived.wait()
    assert len(failures) == 1


async def test_a_stalled_response_ends_when_the_client_disconnects() -> None:
    arrived = anyio.Event()

    def stall_once(number: int, request: Json) -> InjectedFault | None:
        arrived.set()
        return Stall() if number == 0 else None

    server = OpenAIServer(faults=stall_once, limits=ServerLimits(connections=1))
    async with client(server) as http:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: http.post(path(server), json=ASK))
            await arrived.wait()
            tasks.cancel_scope.cancel()
        # This would wait forever if the only slot were not free again.
        assert (await http.post(path(server), json=ASK)).status_code == 200


@pytest.mark.parametrize("server_class", [OpenAIServer, AnthropicServer])
async def test_scripted_garbage_and_malformed_events_arrive_verbatim(
    server_class: type[OpenAIServer] | type[AnthropicServer],
) -> None:
    faults: dict[int, InjectedFault] = {0: Garbage(b"\x00junk"), 1: MalformedEvent(1, b"data: {oops\n\n")}
    server = server_class(faults=faults)
    async with client(server) as http:
        garbage = await http.post(path(server), json=ASK)
        malformed = await http.post(path(server), json={**ASK, "stream": True})
        sound = await http.post(path(server), json={**ASK, "stream": True})
    assert (garbage.status_code, garbage.content) == (200, b"\x00junk")
    assert malformed.text.count("\n\n") == sound.text.count("\n\n") + 1
    assert malformed.text.split("\n\n")[1] == "data: {oops"


async def test_a_scripted_status_carries_its_headers_and_body() -> None:
    date = "Wed, 21 Oct 2026 07:28:00 GMT"
    faults: dict[int, InjectedFault] = {
        0: Status(429, retry_after=date, retry_after_ms="20", should_retry="false"),
        1: Status(503, body=b""),
        2: Status(529),
    }
    server = AnthropicServer(faults=faults)
    async with client(server) as http:
        limited, empty, overloaded = [await http.post(path(server), json=ASK) for _ in range(3)]
    assert limited.headers["retry-after"] == date
    assert (limited.headers["retry-after-ms"], limited.headers["x-should-retry"]) == ("20", "false")
    assert limited.json()["error"]["type"] == "rate_limit_error"
    assert (empty.status_code, empty.content) == (503, b"")
    assert overloaded.json()["error"] == {"type": "overloaded_error", "message": "Overloaded"}


async def test_scripted_faults_may_depend_on_the_request() -> None:
    server = OpenAIServer(faults=lambda number, request: Status(503) if request["model"] == "m" else None)
    async with client(server) as http:
        statuses = [
            (await http.post(path(server), json={**ASK, "model": model})).status_code for model in "mn"
        ]
    assert statuses == [503, 200]


async def test_a_server_with_configured_models_rejects_other_models() -> None:
    openai = OpenAIServer([Turn(Say("hi"))], settings=OpenAISettings(models={"m": OpenAIProfile()}))
    anthropic = AnthropicServer(
        [Turn(Say("hi"))], settings=AnthropicSettings(models={"m": AnthropicProfile()})
    )
    for server, kind in ((openai, "invalid_request_error"), (anthropic, "not_found_error")):
        async with client(server) as http:
            known = await http.post(path(server), json=ASK)
            unknown = await http.post(path(server), json={**ASK, "model": "n"})
        assert (known.status_code, unknown.status_code) == (200, 404)
        assert "hi" in known.text
        assert unknown.json()["error"]["type"] == kind


async def test_rejections_have_the_error_bodies_of_the_provider() -> None:
    wrong = {"model": "m", "max_tokens": 10, "messages": []}
    openai, anthropic = OpenAIServer(), AnthropicServer()
    async with client(openai) as http:
        first = await http.post(path(openai), json=wrong)
    async with client(anthropic) as http:
        second = await http.post(path(anthropic), json=wrong)
    assert first.json() == {
        "error": {
            "message": "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an "
            "empty array instead.",
            "type": "invalid_request_error",
            "param": "messages",
            "code": "empty_array",
        }
    }
    message = "messages: at least one message is required"
    assert second.json() == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": message},
        "request_id": "req_0",
    }


async def test_exchanges_are_recorded_without_credentials() -> None:
    server = AnthropicServer(api_key="secret-key")
    headers = {"x-api-key": "secret-key", "authorization": "Bearer secret-key", "anthropic-version": "x"}
    async with client(server) as http:
        await http.post(path(server), json=ASK, headers=headers)
        denied = await http.post(path(server), json=ASK, headers={"x-api-key": "wrong"})
        unversioned = await http.post(path(server), json=ASK, headers={"x-api-key": "secret-key"})
    assert json.loads(server.requests[0].body) == ASK
    assert ("anthropic-version", "x") in server.requests[0].headers
    assert "secret-key" not in repr([exchange.headers for exchange in server.requests])
    assert [exchange.status for exchange in server.requests] == [200, 401, 400]
    assert denied.json()["error"]["type"] == "authentication_error"
    assert unversioned.json()["error"]["message"] == "anthropic-version: header is required"


async def test_a_repeated_request_after_a_truncated_answer_gets_the_same_scripted_turn() -> None:
    script = Script([Turn(Say("one")), Turn(Say("two"))])
    server = OpenAIServer(script, faults={0: Disconnect(after_bytes=5), 1: Garbage()})
    async with client(server) as http:
        with pytest.raises(httpx2.RemoteProtocolError):
            await http.post(path(server), json=ASK)
        replies = [await http.post(path(server), json=ASK) for _ in range(3)]
    said = [reply.json()["choices"][0]["message"]["content"] for reply in replies[1:]]
    assert said == ["one", "two"]


async def test_connections_beyond_the_bound_wait_until_one_closes() -> None:
    server = OpenAIServer(limits=ServerLimits(connections=1))

    async def second(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        assert server.port is not None
        async with await anyio.connect_tcp("127.0.0.1", server.port) as stream:
            await stream.send(b"GET /second HTTP/1.1\r\nhost: x\r\n\r\n")
            task_status.started()
            await stream.receive()

    with anyio.fail_after(60):
        async with (
            serve(server),
            anyio.create_task_group() as tasks,
            httpx2.AsyncClient(base_url=server.base_url) as first,
        ):
            await first.get("/first")
            await tasks.start(second)
            for _ in range(5):
                await first.get("/first")
    order = [exchange.path for exchange in server.requests]
    assert order == ["/v1/first"] * 6 + ["/second"]


async def test_request_bodies_and_recorded_exchanges_are_bounded() -> None:
    server = OpenAIServer(limits=ServerLimits(body=100, recordings=2))
    async with client(server) as http:
        large = await http.post(path(server), content=b"x" * 1000)
        for _ in range(3):
            assert (await http.post(path(server), json=ASK)).status_code == 200
    assert large.status_code == 413
    assert (server.received, len(server.requests)) == (4, 2)


async def raw(server: LoopbackServer, head: str, body: bytes = b"") -> bytes:
    """Send bytes and return the response up to the end of the connection."""
    with anyio.fail_after(60):
        async with serve(server):
            assert server.port is not None
            async with await anyio.connect_tcp("127.0.0.1", server.port) as stream:
                await stream.send(f"POST /v1/messages HTTP/1.1\r\nhost: x\r\n{head}\r\n\r\n".encode() + body)
                return b"".join([piece async for piece in stream])


async def test_a_body_that_announces_too_large_a_size_is_rejected_unread() -> None:
    server = AnthropicServer()
    answer = await raw(server, "content-length: 32000001")
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"request_too_large" in answer
    assert b"connection: close" in answer.lower()
    assert [exchange.status for exchange in server.requests] == [413]


async def test_a_chunked_body_is_rejected_once_it_is_too_large() -> None:
    server = AnthropicServer(limits=ServerLimits(body=1000))
    piece = b"400\r\n" + b"x" * 0x400 + b"\r\n"
    answer = await raw(server, "transfer-encoding: chunked", piece * 3)  # without the final chunk
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert server.requests[0].body == b""


async def test_a_client_can_read_the_rejection_of_a_slightly_too_large_body() -> None:
    server = AnthropicServer(limits=ServerLimits(body=4_000_000))
    async with client(server) as http:
        large = await http.post("/v1/messages", content=b"x" * 7_000_000)
        assert (large.status_code, large.json()["error"]["type"]) == (413, "request_too_large")
        assert (await http.post("/v1/messages", json=ASK)).status_code == 200


@pytest.mark.parametrize("made", [OpenAIServer, AnthropicServer])
async def test_a_deeply_nested_body_is_rejected_and_the_server_continues(
    made: type[OpenAIServer] | type[AnthropicServer],
) -> None:
    server = made()
    deep = b'{"model": "m", "max_tokens": 10, "messages": ' + b"[" * 20_000 + b"]" * 20_000 + b"}"
    async with client(server) as http:
        for _ in range(2):
            refused = await http.post(
                path(server), content=deep, headers={"content-type": "application/json"}
            )
            assert refused.status_code == 400
            assert (await http.post(path(server), json=ASK)).status_code == 200


async def test_a_connection_serves_many_requests_and_survives_invalid_requests() -> None:
    server = OpenAIServer()
    async with client(server) as http:
        statuses = [
            (await http.get(path(server))).status_code,
            (await http.head(path(server))).status_code,
            (await http.post("/elsewhere", json=ASK)).status_code,
            (await http.post(path(server), content=b"{")).status_code,
            (await http.post(path(server), json=ASK)).status_code,
        ]
    assert statuses == [405, 405, 404, 400, 200]


async def test_a_peer_that_does_not_speak_http_gets_an_error_and_is_closed() -> None:
    server = OpenAIServer()
    with anyio.fail_after(60):
        async with serve(server):
            assert server.port is not None
            async with await anyio.connect_tcp("127.0.0.1", server.port) as stream:
                await stream.send(b"EHLO there\r\n\r\n")
                received = b"".join([chunk async for chunk in stream])
    assert received.startswith(b"HTTP/1.1 400 ")
    assert server.received == 0


async def test_several_servers_run_concurrently_and_free_their_ports() -> None:
    async with serve(OpenAIServer(), AnthropicServer()) as running:
        ports = {server.port for server in running}
        assert len(ports) == 2
        assert running[0].base_url.endswith("/v1")
        assert not running[1].base_url.endswith("/")
    with pytest.raises(RuntimeError, match="serve"):
        _ = running[0].base_url
    for port in ports:
        assert port is not None
        with pytest.raises(OSError, match=r"refused|failed|connect"):
            await anyio.connect_tcp("127.0.0.1", port)


async def test_an_error_inside_the_serve_block_propagates_unwrapped() -> None:
    with pytest.raises(KeyError):
        async with serve(OpenAIServer()):
            raise KeyError("mine")


def test_importing_actors_testing_imports_no_test_tool_and_no_vendor_client() -> None:
    code = (
        "import sys, actors.testing as t; [getattr(t, name) for name in t.__all__]; "
        "bad = {'pytest', 'hypothesis', 'openai', 'anthropic'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_the_strict_rules_share_no_code_with_the_renderer_or_the_checker_or_the_adapters() -> None:
    package = Path(str(actors.strict.__file__)).parent
    sources = [file.read_text() for file in package.rglob("*.py")]
    imports = {line.split()[1] for source in sources for line in source.splitlines() if line[:5] == "from "}
    assert {name for name in imports if name.startswith("actors.")} >= {"actors.strict.rules.base"}
    assert all(name.startswith("actors.strict") for name in imports if name.startswith("actors"))
