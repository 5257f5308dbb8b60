"""MCP servers without the SDK: invalid messages and answers of any size, over both transports."""

import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from actors import ToolSource, mcp
from actors.config import load
from actors.errors import AnswerTooLarge, ToolDefinitionError, ToolsetFailed
from actors.testing import Call, Say, Turn
from actors.tools.mcp.answers import ServerToolError
from actors.tools.mcp.configured import configured_toolset
from actors.tools.toolsets import SessionTools
from tests.runtime_support import bodies, openai, results, runtime_with
from tests.scripted import scripted
from tests.tools.mcp_servers import raw
from tests.tools.mcp_servers.raw_http import RawHttp
from tests.tools.test_mcp import call, open_tools

pytestmark = [
    pytest.mark.anyio,
    # The SDK abandons the generators of an event stream after its answer, which trio warns about.
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]

Json = Any  # JSON

CASES = Path(__file__).parent / "mcp_servers" / "cases"
OBJECT = {"type": "object"}
WAYS = pytest.mark.parametrize("way", ["stdio", "json", "events"])


def table(*names: str, **answers: Json) -> Json:
    """Return the table of a server with tools of these names, and the result of each call."""
    tools = [{"name": name, "inputSchema": OBJECT} for name in names or answers]
    return {"tools/list": {"tools": tools}, "tools/call": answers}


def child_source(answers: Json, *args: str, **options: Any) -> ToolSource:  # Any: options of a server
    line = ["-I", "-S", raw.__file__, json.dumps(answers), *args]
    return mcp.stdio(sys.executable, line, name="raw", approval="allow", **options)


@asynccontextmanager
async def connect(
    answers: Json, way: str, **options: Any
) -> AsyncIterator[SessionTools]:  # Any: options of a server
    if way == "stdio":
        async with open_tools(child_source(answers, **options)) as offer:
            yield offer
        return
    server = RawHttp(answers, way)
    async with (
        server.serve(),
        open_tools(mcp.http(server.url, name="raw", approval="allow", **options)) as offer,
    ):
        yield offer


def case(name: str) -> Json:
    return json.loads((CASES / f"{name}.json").read_text())


# ---- cases from public reports


@WAYS
async def test_an_invalid_output_schema_of_one_tool_leaves_all_tools_usable(way: str) -> None:
    given = case("mcp-one-bad-tool")
    async with connect({**table(good={}, bad={}), "tools/list": given["tools/list"]}, way) as offer:
        assert offer.tools.names == ("good", "bad")


@WAYS
async def test_a_text_result_reaches_the_model_even_if_the_tool_promised_an_object(way: str) -> None:
    given = case("mcp-output-schema-unmet")
    answers = {"tools/list": {"tools": [given["tool"]]}, "tools/call": {"t": given["result"]}}
    async with connect(answers, way) as offer:
        assert await call(offer, "t") == "plain words only"


@WAYS
async def test_a_link_keeps_its_address_name_title_and_description(way: str) -> None:
    async with connect(table(t=case("mcp-link-described")["result"]), way) as offer:
        assert await call(offer, "t") == [
            "see:",
            "[Resource quarterly: reports://q3; title: Quarterly report; type: application/pdf; "
            "description: Revenue by region]",
        ]


# ---- other invalid messages


BAD_TOOLS: list[Json] = [
    7,
    {"inputSchema": OBJECT},
    {"name": 3, "inputSchema": OBJECT},
    {"name": "none"},
    {"name": "text", "inputSchema": "object"},
    {"name": "array", "inputSchema": {"type": "array"}},
    {"name": "words", "inputSchema": {"type": "object", "properties": {"a": "string"}}},
    {"name": "list", "inputSchema": {"type": "object", "properties": [1]}},
    {"name": "required", "inputSchema": {"type": "object", "required": "a"}},
    {"name": "remote", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "https://x.test/a"}}}},
]


@WAYS
async def test_invalid_mcp_tools_are_omitted_and_the_other_tools_work(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    odd = {
        "description": 3,
        "title": [],
        "annotations": {"readOnlyHint": "yes"},
        "icons": 1,
        "outputSchema": 2,
    }
    good = [{"name": "first", "inputSchema": {}, **odd}, {"name": "last", "inputSchema": OBJECT, "_meta": 1}]
    answers = {
        **table(last={"content": []}),
        "tools/list": {"tools": [good[0], *BAD_TOOLS, good[1]], "nextCursor": 7},
    }
    async with connect(answers, way) as offer:
        assert offer.tools.names == ("first", "last")
        assert await call(offer, "last") == ""
    named = [record.message for record in caplog.records if "tool_left_out" in record.message]
    assert len(named) == len(BAD_TOOLS)
    for tool in BAD_TOOLS[3:]:
        assert any(repr(tool["name"]) in line for line in named)


CONTENTS: dict[str, tuple[Json, Json]] = {
    "no content": ({}, ""),
    "structured content alone": ({"structuredContent": {"a": [1, True]}}, '{"a":[1,true]}'),
    "a list as structured content": ({"content": [], "structuredContent": [1, 2]}, "[1,2]"),
    "content that is a text": ({"content": "words"}, "words"),
    "content that is a block": ({"content": {"type": "text", "text": "words"}}, "words"),
    "a block of an unknown type": (
        {"content": [{"type": "video", "data": "x"}]},
        '{"type":"video","data":"x"}',
    ),
    "a block without its text": ({"content": [{"type": "text"}]}, '{"type":"text"}'),
    "an image without a type": (
        {"content": [{"type": "image", "data": "aGk="}]},
        '{"type":"image","data":"aGk="}',
    ),
    "odd annotations": ({"content": [{"type": "text", "text": "a", "annotations": 1, "_meta": []}]}, "a"),
    "a link without a name": (
        {"content": [{"type": "resource_link", "uri": "a://b"}]},
        "[Resource a://b: a://b]",
    ),
    "a resource without its content": (
        {"content": [{"type": "resource", "resource": {"uri": "a://b"}}]},
        '{"type":"resource","resource":{"uri":"a://b"}}',
    ),
    "a text that repeats the structured content": (
        {"content": [{"type": "text", "text": '{ "b": 1, "a": 2 }'}], "structuredContent": {"a": 2, "b": 1}},
        '{ "b": 1, "a": 2 }',
    ),
    "two texts that repeat it": (
        {"content": [{"type": "text", "text": '{"a":1}'}] * 2, "structuredContent": {"a": 1}},
        '{"a":1}',
    ),
    "a text for each value of a list": (
        {
            "content": [{"type": "text", "text": text} for text in ("x", "2")],
            "structuredContent": {"result": ["x", 2]},
        },
        ["x", "2"],
    ),
    "a text of another type": (
        {"content": [{"type": "text", "text": "1"}], "structuredContent": {"result": True}},
        ["1", '{"result":true}'],
    ),
    "an odd flag": ({"content": "fine", "isError": "no"}, "fine"),
}


@WAYS
async def test_results_of_any_shape_reach_the_model(way: str) -> None:
    answers = {f"t{number}": result for number, (result, _) in enumerate(CONTENTS.values())}
    async with connect(table(**answers), way) as offer:
        for number, (name, (_, expected)) in enumerate(CONTENTS.items()):
            assert await call(offer, f"t{number}") == expected, name


@WAYS
async def test_an_mcp_answer_that_is_not_json_rpc_fails_only_its_call(way: str) -> None:
    async with connect(table(t=[1, 2], u={"content": "fine"}), way) as offer:
        with pytest.raises(ServerToolError, match=r"JSON"):
            await call(offer, "t")
        assert await call(offer, "u") == "fine"


@WAYS
async def test_a_server_without_name_and_capabilities_is_usable(way: str) -> None:
    async with connect({**table(t={"content": "fine"}), "initialize": {"_meta": {}}}, way) as offer:
        assert await call(offer, "t") == "fine"


@WAYS
async def test_an_error_of_an_mcp_server_keeps_its_details(way: str) -> None:
    refused = {"error": {"code": -32602, "message": "bad date", "data": {"field": "from", "hint": "use ISO"}}}
    link = {"type": "resource_link", "uri": "log://1", "name": "log", "description": "all of it"}
    failed = {
        "isError": True,
        "content": [{"type": "text", "text": "no room"}, link],
        "structuredContent": {"left": 0},
    }
    silent = {"isError": True, "structuredContent": {"code": 7}}
    async with connect(table(refused=refused, failed=failed, silent=silent), way) as offer:
        with pytest.raises(ServerToolError) as raised:
            await call(offer, "refused")
        assert str(raised.value) == 'bad date (code -32602)\n{"field":"from","hint":"use ISO"}'
        with pytest.raises(ServerToolError) as raised:
            await call(offer, "failed")
        assert str(raised.value) == 'no room\n[Resource log: log://1; description: all of it]\n{"left":0}'
        with pytest.raises(ServerToolError, match=re.escape('{"code":7}')):
            await call(offer, "silent")


async def test_tool_names_do_not_depend_on_the_order_of_the_list() -> None:
    names = ["a.b", "a/b", "a_b", "ok", "x y", "x" * 70, "x" * 71, "3d", "raw__ok", "ok"]
    seen: set[frozenset[tuple[str, str]]] = set()
    for seed in range(4):
        Random(seed).shuffle(names)
        answers = {name: {"content": f"of {name}"} for name in names}
        async with open_tools(source_of_ok(), child_source(table(*names, **answers))) as offer:
            said = {tool: str(await call(offer, tool)) for tool in offer.tools.names}
            seen.add(frozenset(said.items()))
            assert sorted(said.values()) == sorted(["mine", *(f"of {name}" for name in set(names))])
    (mapping,) = seen
    found = {word: tool for tool, word in mapping}
    assert found["of a_b"] == "a_b"
    assert found["of x y"] == "x_y"
    assert found["of raw__ok"] == "raw__ok"


def source_of_ok() -> ToolSource:
    """Return a toolset that takes the name `ok` first."""
    return child_source(table(ok={"content": "mine"}), shared=False)


# ---- sizes


TOO_LARGE: dict[str, tuple[Json, dict[str, int]]] = {
    "max_bytes": ({"$bytes": 5_000}, {"max_bytes": 4_000}),
    "max_blocks": ({"$blocks": 20_000}, {}),
    "max_values": ({"$values": 150_000}, {}),
}


@pytest.mark.alternating
@WAYS
@pytest.mark.parametrize("setting", TOO_LARGE)
async def test_an_mcp_answer_above_a_limit_fails_only_its_call(setting: str, way: str) -> None:
    answer, options = TOO_LARGE[setting]
    async with connect(table(large=answer, small={"content": "fine"}), way, **options) as offer:
        with pytest.raises(AnswerTooLarge) as raised:
            await call(offer, "large")
        assert raised.value.setting == setting
        assert raised.value.value > raised.value.limit
        assert f"more than {setting}={raised.value.limit:,} allows" in str(raised.value)
        assert await call(offer, "small") == "fine"


@pytest.mark.alternating
@WAYS
async def test_an_mcp_answer_below_the_limits_is_read(way: str) -> None:
    async with connect(table(t={"$blocks": 1_000}, u={"$bytes": 2_000_000}), way) as offer:
        found = await call(offer, "t")
        assert isinstance(found, list)
        assert len(found) == 1_000
        assert await call(offer, "u") == "x" * 2_000_000


@pytest.mark.alternating
@WAYS
async def test_the_error_about_a_tool_list_above_a_limit_names_the_limit(way: str) -> None:
    with pytest.raises(
        ToolsetFailed, match=r"more than max_bytes=1,000 allows; request less data, or raise max_bytes"
    ):
        async with connect(table(*(f"tool_{number}" for number in range(100))), way, max_bytes=1_000):
            raise AssertionError


async def test_the_limits_of_mcp_answers_can_be_set_in_a_configuration_file(tmp_path: Path) -> None:
    line = ["-I", "-S", raw.__file__, json.dumps(table(t={"$blocks": 6}))]
    (tmp_path / "actors.toml").write_text(
        f"[mcp.raw]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(line)}\nmax_blocks = 5\n"
    )
    async with open_tools(configured_toolset(load(tmp_path / "actors.toml", {}), "raw")) as offer:
        with pytest.raises(AnswerTooLarge, match="has 6 blocks, more than max_blocks=5 allows"):
            await call(offer, "t")


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "many"])
def test_an_invalid_limit_of_mcp_answers_raises_a_typed_error(
    value: Any,
) -> None:  # Any: any value that a caller may pass
    with pytest.raises(ToolDefinitionError, match=r"max_bytes=.*; use a whole number above 0"):
        mcp.stdio("server", max_bytes=value)


async def test_a_compressed_answer_is_rejected_and_compression_is_not_requested() -> None:
    server = RawHttp(table(t={"$bytes": 10_000_000}))
    async with server.serve(), open_tools(mcp.http(server.url, name="raw")) as offer:
        server.form = "gzip"
        with pytest.raises(
            ServerToolError, match="an answer with the encoding 'gzip', which was not requested"
        ):
            await call(offer, "t")
        server.form = "json"
        with pytest.raises(AnswerTooLarge):
            await call(offer, "t")
    assert server.heads
    assert all(b"\r\naccept-encoding: identity\r\n" in head.lower() + b"\r\n" for head in server.heads)
    assert not any(b"gzip" in head for head in server.heads)


# ---- servers that do not start


async def test_the_error_of_a_program_that_dies_contains_its_last_output(
    tmp_path: Path,
) -> None:
    words = "".join(f"line {number}\n" for number in range(1000)) + "KeyError: 'DATABASE'\n"
    async with runtime_with(a=openai()) as runtime:
        with pytest.raises(ToolsetFailed) as raised:
            await runtime.open("a", tools=[child_source({"$stderr": words}, log=tmp_path / "log")])
    text = str(raised.value)
    assert text.startswith("Toolset 'raw' cannot be opened: ")
    assert "the program ended with exit code 3" in text
    assert text.endswith("line 997 | line 998 | line 999 | KeyError: 'DATABASE'")
    assert len(text) < 1_500
    assert "\n" not in text
    assert (tmp_path / "log").read_text() == words


async def test_secrets_in_the_standard_error_of_a_program_are_redacted() -> None:
    words = "env s3cret-value arg 4bcdef-token option hunter22, module no_such_module\n"
    env = {"TOKEN": "s3cret-value"}
    source = child_source(
        {"$stderr": words}, "4bcdef-token", "--password", "hunter22", "no_such_module", env=env
    )
    with pytest.raises(ToolsetFailed) as raised:
        async with open_tools(source):
            raise AssertionError
    assert str(raised.value).endswith("env *** arg *** option ***, module no_such_module")


@pytest.mark.parametrize(
    "status", ["401 Unauthorized", "403 Forbidden", "404 Not Found", "503 Service Unavailable"]
)
async def test_the_error_of_a_server_that_refuses_a_request_has_its_address_and_status(status: str) -> None:
    async with RawHttp({}, status=status).serve() as server:
        url = f"http://user:s3cret@127.0.0.1:{server.port}/mcp/k3y-of-somebody?token=s3cret"
        with pytest.raises(ToolsetFailed) as raised:
            async with open_tools(mcp.http(url, name="far")):
                raise AssertionError
    assert f"(HTTP {status[:3]} from http://127.0.0.1:{server.port}/mcp/***)" in str(raised.value)
    assert "s3cret" not in str(raised.value)


async def test_the_error_of_an_unreachable_server_contains_its_address() -> None:
    with pytest.raises(ToolsetFailed, match=r"\(http://127\.0\.0\.1:9/mcp\)$"):
        async with open_tools(mcp.http("http://127.0.0.1:9/mcp", name="far")):
            raise AssertionError


# ---- through a session


async def test_results_of_a_raw_server_reach_the_model_through_a_session() -> None:
    answers = table(good={"structuredContent": {"n": 1}}, large={"$blocks": 5_000})
    model = openai(Turn(Call("good", {}), Call("large", {})), Turn(Say("Done.")))
    async with scripted(model, tools=[child_source(answers)]) as (_, _, session):
        assert (await session.ask("Go.")).text == "Done."
        await session.close()
    good, large = results(bodies(model)[-1]).values()
    assert good == '{"n":1}'
    assert "more than max_blocks=1,000 allows" in large
