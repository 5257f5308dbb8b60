"""`replay_item_ids`: Responses items are sent back with the ids of their answer, or without any."""

import json
import tomllib
from pathlib import Path
from typing import Any

import anyio
import pytest

from actors import Runtime
from actors.adapters.adapter import adapter
from actors.adapters.request import Settings
from actors.config.dialects import custom_dialect
from actors.core.check import check
from actors.core.data.jsonio import quote
from actors.core.data.record import replace
from actors.core.history.history import History
from actors.core.lanes.lane import empty_lane
from actors.core.ledger import Ledger
from actors.core.log.events import EpochBegan
from actors.core.values.content import Block, Message, ProviderBlock, ProviderState, Text, Thinking, ToolCall
from actors.strict.rules import validate
from actors.testing import Call, ResponsesProfile, ResponsesServer, ResponsesSettings, Say, Think, Turn, serve
from actors.transcripts import render
from tests.commands.at_scale import share
from tests.generated.histories import READERS, history
from tests.runtime_support import bodies, log

ACTORS_TOML = """
[dialects.named]
base = "openai_responses"
reasoning.replay_item_ids = "all"
"""
NAMED = custom_dialect("named", tomllib.loads(ACTORS_TOML)["dialects"]["named"])
ME = READERS["openai_responses"]
HOST = ResponsesSettings(signatures="trust")
LOOKS_UP = ResponsesSettings(ResponsesProfile(looks_up_items=True))
TURNS = (
    Turn(Think("hm"), Say("Looking."), Call("weather", {"city": "Rome"}), Call("weather", {"city": "Oslo"})),
    Turn(Think("so"), Say("Mild.")),
    Turn(Say("Bye.")),
    Turn(Say("Still here.")),
)
_KINDS = ("reasoning", "message", "function_call", "custom_tool_call")


def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 4 C"


def with_item_ids(messages: list[Message], seed: int) -> list[Message]:
    """Return the messages with an id item before each block, as a host that assigns item ids reports them."""
    return [_with_item_ids(message, seed + at) for at, message in enumerate(messages)]


def _with_item_ids(message: Message, seed: int) -> Message:
    blocks: list[Block] = []
    for at, block in enumerate(message.blocks):
        if message.role == "assistant" and isinstance(block, (Text, ToolCall)) and (seed + at) % 5:
            kind = "fc" if isinstance(block, ToolCall) else "msg"
            number = 3 * seed + (at if seed % 4 else 0)  # an id sometimes occurs twice
            blocks.append(_item_id(f"{kind}_{number}"))
        blocks.append(block)
    return replace(message, blocks=tuple(blocks))


def model_items(body: dict[str, Any]) -> list[tuple[str, bool]]:
    """Return the type of each of the model's items in a request, and whether the item has an id."""
    return [
        (item["type"], "id" in item)
        for item in body["input"]
        if item["type"] in _KINDS and item.get("role") != "user"
    ]


FIRST = 150
"""The first seed of a range in which some histories have item ids."""


def test_no_generated_history_with_item_ids_is_refused() -> None:
    with_ids = 0
    for seed in range(FIRST, FIRST + share(1500)):
        messages, ledger = history(seed)
        rendered = render(History(with_item_ids(messages, seed), ledger), ledger, NAMED, binding=ME)
        body = adapter(NAMED).request(rendered._segments, Settings(model="m"), rendered._facts).body
        assert check(body, NAMED) == [], seed
        assert validate(body, "openai_responses", mode="strict", settings=HOST) is None, seed
        with_ids += any(has for kind, has in model_items(json.loads(body)) if kind != "reasoning")
    assert with_ids > share(1500) // 150


def test_items_after_reasoning_without_an_id_are_sent_without_ids() -> None:
    search = '{"type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}'
    own = ProviderBlock("web_search_call", ProviderState("part", quote(search), ME))
    assert _sent_items([_reasoning("rs_1"), own, _item_id("msg_1"), Text("Found.")]) == [
        ("reasoning", None),
        ("web_search_call", None),
        ("message", None),
    ]


def test_an_item_id_is_sent_only_once() -> None:
    said: list[Block] = [
        *(_reasoning("rs_1"), _item_id("msg_1"), Text("One.")),
        *(_reasoning("rs_2"), _item_id("msg_1"), Text("Two.")),
    ]
    assert [item_id for _, item_id in _sent_items(said)] == ["rs_1", "msg_1", None, None]


@pytest.mark.parametrize(("item_id", "refused"), [("msg_1", True), ("item 1", False)])
def test_reasoning_after_an_id_that_cannot_be_sent_is_still_sent(item_id: str, refused: bool) -> None:
    said: list[Block] = [
        *(_reasoning("rs_1"), _item_id(item_id), Text("One.")),
        *(_reasoning("rs_2"), _item_id("msg_2"), Text("Two.")),
    ]
    kinds = ["reasoning", "message", "reasoning", "message"]
    ids = [None] * 4 if refused else [None, None, "rs_2", "msg_2"]
    assert _sent_items(said, without_ids=refused) == list(zip(kinds, ids, strict=True))


def test_items_after_an_item_without_an_id_are_sent_without_ids() -> None:
    said: list[Block] = [
        _reasoning("rs_1"),
        _item_id("msg_1"),
        Text("One."),
        Text("Two."),
        _item_id("msg_3"),
        Text("Three."),
    ]
    assert [item_id for _, item_id in _sent_items(said)] == ["rs_1", "msg_1", None, None]


def _reasoning(item_id: str) -> Thinking:
    item = f'{{"type":"reasoning","id":"{item_id}","summary":[],"encrypted_content":"ZQ=="}}'
    return Thinking("", ProviderState("reasoning_item", quote(item), ME))


def _item_id(item_id: str) -> Thinking:
    return Thinking("", ProviderState("item", quote(item_id), ME))


def _sent_items(said: list[Block], *, without_ids: bool = False) -> list[tuple[str, str | None]]:
    """Return the kinds and ids of the items sent for an answer, in a lane that may have lost its ids."""
    lane = empty_lane(NAMED)
    lane = replace(lane, _state=lane._state._replace(without_ids=without_ids))
    asked = Message("user", (Text("Go."),))
    rendered = render(
        History([asked, Message("assistant", tuple(said))]), Ledger(), NAMED, binding=ME, lane=lane
    )
    assert rendered.report.faults == ()
    body = json.loads(adapter(NAMED).request(rendered._segments, Settings(model="m"), rendered._facts).body)
    return [(item["type"], item.get("id")) for item in body["input"] if item.get("role") != "user"]


@pytest.mark.anyio
@pytest.mark.parametrize("setting", ["all", "none"])
async def test_items_are_sent_back_with_all_of_their_ids_or_without_any(tmp_path: Path, setting: str) -> None:
    server = ResponsesServer(list(TURNS), settings=ResponsesSettings(ResponsesProfile(prefix_bound=True)))
    await _talk(server, tmp_path, setting)
    assert server.refusals == []
    sent = bodies(server)[2]
    went = dict.fromkeys(model_items(sent))
    assert set(went) == {(kind, setting == "all") for kind in ("reasoning", "message", "function_call")}


@pytest.mark.anyio
async def test_a_host_that_rejects_item_ids_receives_none_from_then_on(tmp_path: Path) -> None:
    server = ResponsesServer(list(TURNS), settings=LOOKS_UP)
    began = await _talk(server, tmp_path, "all")
    assert [(event.reason, event.plain) for event in began] == [("thinking", False)]
    assert [refusal.rule for refusal in server.refusals] == ["OAR-05"]
    _, refused, *later = bodies(server)
    assert any(has for _, has in model_items(refused))
    assert not any(has for body in later for _, has in model_items(body))
    assert ("reasoning", False) in model_items(later[-1])  # later reasoning is sent without its id


async def _talk(server: ResponsesServer, folder: Path, setting: str) -> list[EpochBegan]:
    """Ask three times; return the epochs that began."""
    path = folder / "actors.toml"
    with anyio.fail_after(60):
        async with serve(server):
            path.write_text(
                f'{ACTORS_TOML.replace("all", setting)}\n[backends.host]\nkind = "openai_responses"\nmodel = "m"\n'
                f'dialect = "named"\nbase_url = "{server.endpoint}"\n'
            )
            async with Runtime(path, environ={}) as runtime:
                session = await runtime.open("host", tools=[weather])
                for text in ("Mild.", "Bye.", "Still here."):
                    assert (await session.ask("Go on.")).text == text
                return [event for event in log(runtime, session) if isinstance(event, EpochBegan)]
