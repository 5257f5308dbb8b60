"""Malformed arguments and answers are repaired if exactly one reading fits; repairs are reported and counted."""

import json
from typing import Any, Literal

import pydantic
import pytest

from actors.cli.stats import recount_events
from actors.config import RuntimeLimits
from actors.core.data.jsonio import JsonValue
from actors.core.log.call_events import Refused, Scheduled
from actors.core.log.events import ApprovalAsked, TurnEnded
from actors.core.schemas.repair import Repair, RepairMode
from actors.core.session.publishing import Publisher
from actors.core.stats.stats import recount
from actors.core.stream_events.ask_events import AskResult, CompleteEvent
from actors.core.stream_events.event_json import event_json
from actors.core.stream_events.round_events import ApprovalRequestedEvent, CallRepairedEvent
from actors.errors import AskFailed, ConfigError
from actors.events import ApprovalDecision
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.session.output import output_of
from actors.testing import Call, Say, Turn
from actors.tools import Tool, tool
from tests.runtime.hosting_cases import case
from tests.runtime_support import anthropic, bodies, gather_events, log, openai, results
from tests.scripted import scripted
from tests.session.test_external_calls import PUT_AWAY, leave

pytestmark = pytest.mark.anyio

WORDS, AROUND = case("numbers-as-words"), case("answers-around-the-json")
RIGHT: dict[str, JsonValue] = {"count": 3, "paid": True, "tags": ["a"]}


class City(pydantic.BaseModel):
    name: str
    people: int


class Name(pydantic.BaseModel):
    name: str


class Visit(pydantic.BaseModel):
    who: Name


class Count(pydantic.BaseModel):
    count: int


class OrderTool:
    """A tool with the arguments that its approval rule saw, and those that it ran with."""

    def __init__(self, approval: Literal["allow", "ask"] = "allow") -> None:
        self.ran: list[dict[str, object]] = []
        self.judged: list[dict[str, object]] = []

        def judge(arguments: dict[str, JsonValue]) -> Literal["allow", "ask"]:
            self.judged.append(dict(arguments))
            return approval

        @tool(approval=judge)
        async def order(count: int, paid: bool, tags: list[str]) -> str:
            """Order something."""
            self.ran.append({"count": count, "paid": paid, "tags": tags})
            return "ordered"

        self.tool: Tool[..., Any] = order  # Any: any function


def order_turn(arguments: dict[str, JsonValue]) -> Turn:
    return Turn(Call("order", arguments))


def repair_counts(runtime: Runtime, session: Session) -> tuple[int, int]:
    """Return the numbers of repaired calls and answers, after checking that all counters agree."""
    events, publisher = log(runtime, session), Publisher()
    shown = [event_json(each) for event in events for each in publisher.publish(event)]
    ((backend, stats),) = runtime.stats().backends.items()
    assert recount(events)[backend] == stats.tools == recount_events(shown)[backend]
    return stats.tools.tool_calls_repaired, stats.tools.answers_repaired


@pytest.mark.parametrize("make_server", [openai, anthropic])
@pytest.mark.parametrize("arguments", WORDS["calls"], ids=["words", "list"])
async def test_faulty_arguments_with_only_one_interpretation_are_repaired_and_run(
    make_server: Any, arguments: dict[str, JsonValue]
) -> None:  # Any: a server
    orders, server = OrderTool(), make_server(order_turn(arguments), Turn(Say("Done.")))
    async with scripted(server, tools=[orders.tool]) as (_, runtime, session):
        events = await gather_events(session, "Order three.")
        assert isinstance(events[-1], CompleteEvent)
        answer = events[-1].result
        assert (answer.text, answer.rounds) == ("Done.", 2)
        assert orders.ran == orders.judged == [RIGHT]
        paths = tuple(sorted(name for name in RIGHT if arguments[name] != RIGHT[name]))
        wanted = tuple([Repair("text", path, answer.repaired[0].call_id) for path in paths])
        assert answer.repaired == wanted
        (shown,) = [each for each in events if isinstance(each, CallRepairedEvent)]
        assert (shown.name, shown.repaired) == ("order", wanted)
        (scheduled,) = [event for event in log(runtime, session) if isinstance(event, Scheduled)]
        assert (scheduled.repaired, json.loads(scheduled.arguments)) == (wanted, RIGHT)
        (known,) = (await session.ledger()).interactions()
        assert known.arguments is not None
        assert json.loads(known.arguments) == RIGHT
        assert repair_counts(runtime, session) == (1, 0)
    assert list(results(bodies(server)[-1]).values()) == ["ordered"]


@pytest.mark.parametrize("where", ["ask", "limits"])
async def test_strict_mode_rejects_arguments_that_could_be_repaired(where: str) -> None:
    orders = OrderTool()
    server = openai(
        order_turn(WORDS["calls"][0]),
        Turn(Call("order", raw='{"count": 3,}')),
        order_turn(RIGHT),
        Turn(Say("Done.")),
    )
    limits = RuntimeLimits(repair="strict" if where == "limits" else "unambiguous")
    async with scripted(server, tools=[orders.tool], limits=limits) as (_, runtime, session):
        asked: dict[str, Any] = {"repair": "strict"} if where == "ask" else {}  # Any: settings
        answer = await session.ask("Order three.", **asked)
        assert (answer.rounds, answer.repaired, orders.ran) == (4, (), [RIGHT])
        assert len([event for event in log(runtime, session) if isinstance(event, Refused)]) == 2
        assert repair_counts(runtime, session) == (0, 0)


async def test_an_unknown_repair_mode_raises_a_config_error() -> None:
    async with scripted("openai_chat", Turn(Say("Hi."))) as (_, _, session):
        with pytest.raises(ConfigError, match="repair is 'loose', but must be one of unambiguous, strict"):
            await session.ask("Hi.", repair="loose")  # type: ignore[call-overload]  # the mistake under test


async def test_a_string_is_not_repaired_if_a_union_accepts_it() -> None:
    seen: list[object] = []

    @tool
    async def note(key: int | str, size: int) -> str:
        """Note something."""
        seen.append((key, size))
        return "noted"

    server = openai(Turn(Call("note", {"key": "3", "size": "4"})), Turn(Say("Done.")))
    async with scripted(server, tools=[note]) as (_, _, session):
        answer = await session.ask("Note it.")
        assert seen == [("3", 4)]
        assert [each.path for each in answer.repaired] == ["size"]
    (call,) = bodies(server)[-1]["messages"][-2]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"key": "3", "size": "4"}


async def test_arguments_that_a_custom_validator_rejects_are_corrected() -> None:
    class Even(pydantic.BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def is_even(cls, n: int) -> int:
            if n % 2:
                raise ValueError("odd")
            return n

    @tool
    async def halve(even: Even) -> int:
        """Halve it."""
        return even.n // 2

    server = openai(Turn(Call("halve", {"even": '{"n": 3}'})), Turn(Say("Done.")))
    async with scripted(server, tools=[halve]) as (_, runtime, session):
        assert (await session.ask("Halve 3.")).repaired == ()
        assert repair_counts(runtime, session) == (0, 0)
    assert "invalid_arguments" in next(iter(results(bodies(server)[-1]).values()))


@pytest.mark.parametrize("raw", ['{"count": 3, "paid": true, "tags": ["a"],}', json.dumps(json.dumps(RIGHT))])
@PUT_AWAY
async def test_a_pending_call_is_reported_and_run_with_its_repaired_arguments(
    put_away: str, raw: str
) -> None:
    """The digest of the call covers the repaired arguments in the stream, in the result and after passivation."""
    orders, server = OrderTool("ask"), openai(Turn(Call("order", raw=raw)), Turn(Say("Done.")))
    async with scripted(server, tools=[orders.tool]) as (_, runtime, session):
        waiting = await session.ask("Order three.")
        assert [call.arguments for call in waiting.pending_calls] == [RIGHT]
        publisher = Publisher()
        (asked,) = [event for event in log(runtime, session) if isinstance(event, ApprovalAsked)]
        shown = [each for event in log(runtime, session) for each in publisher.publish(event)]
        pendings = [each.pending for each in shown if isinstance(each, ApprovalRequestedEvent)]
        leave(session, put_away)
        for pending in (*session.pending, *pendings):
            assert (pending.call.arguments, pending.digest) == (RIGHT, asked.digest)
        answer = await session.ask(
            approvals={waiting.pending_calls[0].id: ApprovalDecision("allow", digest=asked.digest)}
        )
        assert (answer.text, orders.ran) == ("Done.", [RIGHT])
        assert repair_counts(runtime, session) == (1, 0)


async def test_a_pending_external_call_is_reported_with_its_repaired_arguments() -> None:
    schema: dict[str, JsonValue] = {"type": "object", "properties": {"n": {"type": "integer"}}}
    server = openai(Turn(Call("draw", {"n": "3"})), Turn(Say("Done.")))
    async with scripted(server, tools=[Tool.external("draw", "Draw.", schema)]) as (_, _, session):
        waiting = await session.ask("Draw three.")
        assert [call.arguments for call in waiting.pending_calls] == [{"n": 3}]
        assert [each.call.arguments for each in session.pending] == [{"n": 3}]
        assert (await session.ask(results={waiting.pending_calls[0].id: "drawn"})).text == "Done."


async def test_arguments_of_a_call_by_the_program_are_repaired_too() -> None:
    orders = OrderTool()
    async with scripted("openai_chat", Turn(Say("Hi.")), tools=[orders.tool]) as (_, _, session):
        await session.call_tool("order", WORDS["calls"][0])
        assert orders.ran == [RIGHT]


ANSWERS: list[tuple[Any, str, object]] = [  # Any: a type
    (Count, WORDS["answers_for_output"][0], Count(count=3)),
    (Count, WORDS["answers_for_output"][1], Count(count=3)),
    (Visit, WORDS["answers_for_output"][2], Visit(who=Name(name="Oslo"))),
    (list[City], AROUND["answers"][0], [City(name="Oslo", people=7), City(name="Rome", people=3)]),
    (list[City], AROUND["answers"][1], [City(name="Oslo", people=7)]),
    *[(City, said, City(name="Oslo", people=7)) for said in AROUND["answers"][2:]],
]


@pytest.mark.parametrize(("asked", "said", "value"), ANSWERS, ids=[said for _, said, _ in ANSWERS])
async def test_a_faulty_answer_with_only_one_interpretation_is_accepted_at_once(
    asked: Any, said: str, value: object
) -> None:  # Any: a type
    async with scripted("openai_chat", Turn(Say(said))) as (_, runtime, session):
        answer: AskResult[Any] = await session.ask("Which?", output=asked)
        assert (answer.output, answer.rounds, answer.text) == (value, 1, said)
        assert answer.repaired
        (ended,) = [event for event in log(runtime, session) if isinstance(event, TurnEnded)]
        assert ended.repaired == answer.repaired
        assert repair_counts(runtime, session) == (0, 1)


@pytest.mark.parametrize(("asked", "said", "value"), ANSWERS, ids=[said for _, said, _ in ANSWERS])
async def test_strict_mode_rejects_an_answer_that_could_be_repaired(
    asked: Any, said: str, value: object
) -> None:  # Any: a type
    async with scripted("openai_chat", Turn(Say(said))) as (_, _, session):
        with pytest.raises(AskFailed, match="the answer does not have the required format"):
            await session.ask("Which?", output=asked, repair="strict", max_corrections=0)


OSLO, ROME = '{"name": "Oslo", "people": 7}', '{"name": "Rome", "people": 3}'


@pytest.mark.parametrize(
    ("asked", "said", "value"),
    [
        (City, f"~{OSLO}~", City(name="Oslo", people=7)),
        (City, f"```\n{OSLO}\n```\nor\n```json\n{OSLO}\n```", City(name="Oslo", people=7)),
        (City, f"See [1] and [2, 3].\n\n> ```json\n> {OSLO}\n> ```", City(name="Oslo", people=7)),
        (City, f":[ no. {OSLO}", City(name="Oslo", people=7)),
        (City, f"I think of {ROME}</think>{OSLO}", City(name="Oslo", people=7)),
        (City, f"<think>{ROME}</think>\n\n```json\n{OSLO}\n```", City(name="Oslo", people=7)),
        (City, f"[THINK]{ROME}[/THINK]{OSLO}", City(name="Oslo", people=7)),
        (City, f"<thinking>{ROME}</thinking>\n{OSLO}", City(name="Oslo", people=7)),
        (
            City,
            '{"name": "a ```json\\n{} b", "people": "7",} as asked',
            City(name="a ```json\n{} b", people=7),
        ),
        (City, 'Not {"name": "Oslo"}, but ' + OSLO, City(name="Oslo", people=7)),
        (list[int], "The numbers [1, 2,] it is.", [1, 2]),
        (list[int], 'All of them: "[1, 2]"', [1, 2]),
        (list[int], '"[1, 2]"', [1, 2]),
        (list[int], '"{\\"value\\": [1, 2]}"', [1, 2]),
        (list[int], '{"value": ["1", 2]}', [1, 2]),
        (int, "```json\n42\n```", 42),
        (int, "It is\n```json\n42\n```\nas you know.", 42),
        (int, '"42"', 42),
        (bool, '"true"', True),
        (int | None, '{"value": "null"}', None),
        (dict[str, int], 'Words {"a": "1"} around', {"a": 1}),
    ],
)
def test_a_faulty_answer_with_only_one_interpretation_is_repaired(
    asked: Any, said: str, value: object
) -> None:
    read = output_of(asked).parse(said, "unambiguous")
    assert isinstance(read, tuple), read
    assert read[0] == value
    assert read[1]
    assert not any(each.path.startswith("value") for each in read[1])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (City, f"First {ROME}, then {OSLO}"),
        (City, f"```json\n{ROME}\n```\n```json\n{OSLO}\n```"),
        (City, f"[{OSLO}, {ROME[:-9]}"),
        (City, f'{{"of": {OSLO}, oops}}'),
        (City, f"<think>{OSLO}"),
        (City, f'He said "{{" once: {OSLO}'),
        (City, f"{OSLO} and so on " + "[" * 2000),
        (City, "{" * 2000),
        (City, "[" * 2000 + OSLO),
        (City, "{'name': 'Oslo', 'people': 7}"),
        (list[int], "As in [1], they are [1, 2]."),
        (list[int], "{'a': [1, 2]}"),
        (int, "It is 42."),
        (int, "```\n42\n```\n```\n43\n```"),
        (str, "Oslo"),
        (list[City], f"{OSLO}\n{ROME}"),
    ],
)
def test_an_answer_with_no_interpretation_or_with_several_is_corrected(
    asked: Any, said: str
) -> None:  # Any: a type
    assert isinstance(output_of(asked).parse(said, "unambiguous"), list)


@pytest.mark.parametrize("repair", ["unambiguous", "strict"])
def test_a_valid_answer_is_never_changed(repair: RepairMode) -> None:
    for asked, said, value in [
        (int | str, '{"value": "3"}', "3"),
        (list[int], "[1]", [1]),
        (str, '"[1]"', "[1]"),
        (City, OSLO, City(name="Oslo", people=7)),
    ]:
        assert output_of(asked).parse(said, repair) == (value, ())


def test_the_search_for_json_in_a_hostile_answer_is_bounded() -> None:
    hostile = ("[" * 120_000, '{"a":' * 100_000, "[1," * 60_000, '"' * 120_000, "{a" * 60_000)
    for words in (*hostile, "```json\n[\n" * 40_000, '{"a' * 100_000):
        assert isinstance(output_of(City).parse(words, "unambiguous"), list)


def test_an_answer_with_more_opening_brackets_than_the_limit_has_no_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = f"[1] [2] [3] {OSLO}"
    assert output_of(City).parse(words, "unambiguous")[0] == City(name="Oslo", people=7)
    monkeypatch.setattr("actors.core.turn.output._MOST_OPENINGS", 3)
    assert isinstance(output_of(City).parse(words, "unambiguous"), list)


def test_unclosed_brackets_are_scanned_a_bounded_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = f"{'[x ' * 5}{OSLO}"
    assert output_of(City).parse(words, "unambiguous")[0] == City(name="Oslo", people=7)
    monkeypatch.setattr("actors.core.turn.output._MOST_SCANNED", 3 * len(words))
    assert isinstance(output_of(City).parse(words, "unambiguous"), list)
