"""Import generated transcripts with repeated ids and late, duplicate and missing results in every format.

Each real result has a content of its own. After the import it appears exactly once: as the result of its own call, or
in a note. No call has the result of another call.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from re import findall
from typing import NamedTuple, TypeAlias

import pytest

from actors.core.log.call_events import result_of
from actors.core.values.content import Text
from actors.core.values.identity import RUNTIME
from actors.transcripts import Ledger, check, dialect, encode, from_wire, render
from tests.commands.at_scale import share

Wire: TypeAlias = dict[str, object]
IDS = ("call_0", "call_1")  # few, so that most repeat


class Called(NamedTuple):
    number: int  # unique, and the argument that identifies the call
    tool: str
    id: str


class Answered(NamedTuple):
    call: Called
    content: str  # R<number>.<letter>.


Step: TypeAlias = str | list[Called] | list[Answered]


def steps(seed: int, *, has_names: bool, width: int = 2) -> list[Step]:
    """Return a conversation of user texts, model messages with calls, and results.

    Results follow their calls directly, or late, after a user text. A call may be answered twice, with the same or with
    other content, or not at all. If results have no names, calls of one message that share an id are answered once and
    in order, and a second result directly follows the first, because no protocol can express more.
    """
    draw, numbers, late = Random(seed), iter(range(1, 100)), list[Answered]()
    said: list[Step] = ["go"]
    for _ in range(draw.randint(1, 5)):
        count, alike = draw.randint(1, width), draw.randrange(4) == 0
        ids = [draw.choice(IDS)] * count if alike else draw.sample(IDS, count)
        tools = draw.sample("fgh", count)
        calls = [Called(next(numbers), tool, key) for tool, key in zip(tools, ids, strict=True)]
        fates = ("direct",) if alike and not has_names else ("direct", "twice", "changed", "late", "missing")
        direct: list[Answered] = []
        for call in calls:
            fate, first = draw.choice(fates), Answered(call, f"R{call.number}.a.")
            changed = Answered(call, f"R{call.number}.b.")
            late += [first] if fate == "late" else []
            direct += {"direct": [first], "twice": [first, first], "changed": [first, changed]}.get(fate, [])
        if has_names:
            draw.shuffle(direct)
        said += [calls, direct, "so"]
        if late and draw.randrange(2):
            said += [[late.pop(draw.randrange(len(late)))], "so"]
    return [step for step in [*said, late, "end"] if step]


# ---- the formats


def chat(said: list[Step], *, name: bool) -> Wire:
    messages: list[Wire] = []
    for step in said:
        if isinstance(step, str):
            messages.append({"role": "user", "content": step})
        elif calls := [each for each in step if isinstance(each, Called)]:
            made = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.tool, "arguments": f'{{"n":{call.number}}}'},
                }
                for call in calls
            ]
            messages.append({"role": "assistant", "content": None, "tool_calls": made})
        for each in results(step):
            named = {"name": each.call.tool} if name else {}
            messages.append({"role": "tool", "tool_call_id": each.call.id, **named, "content": each.content})
    return {"messages": messages}


def functions(said: list[Step]) -> Wire:
    messages: list[Wire] = []
    for step in said:
        if isinstance(step, str):
            messages.append({"role": "user", "content": step})
        for call in (each for each in step if isinstance(each, Called)):
            made = {"name": call.tool, "arguments": f'{{"n":{call.number}}}'}
            messages.append({"role": "assistant", "content": None, "function_call": made})
        messages += [
            {"role": "function", "name": each.call.tool, "content": each.content} for each in results(step)
        ]
    return {"messages": messages}


def anthropic(said: list[Step]) -> Wire:
    messages: list[Wire] = []
    for step in said:
        if isinstance(step, str):
            messages.append({"role": "user", "content": step})
        elif calls := [each for each in step if isinstance(each, Called)]:
            made = [
                {"type": "tool_use", "id": each.id, "name": each.tool, "input": {"n": each.number}}
                for each in calls
            ]
            messages.append({"role": "assistant", "content": made})
        elif given := results(step):
            blocks = [
                {"type": "tool_result", "tool_use_id": each.call.id, "content": each.content}
                for each in given
            ]
            messages.append({"role": "user", "content": blocks})
    return {"messages": messages}


def converse(said: list[Step]) -> Wire:
    messages: list[Wire] = []
    for step in said:
        if isinstance(step, str):
            messages.append({"role": "user", "content": [{"text": step}]})
        elif calls := [each for each in step if isinstance(each, Called)]:
            made = [
                {"toolUse": {"toolUseId": each.id, "name": each.tool, "input": {"n": each.number}}}
                for each in calls
            ]
            messages.append({"role": "assistant", "content": made})
        elif given := results(step):
            blocks = [
                {"toolResult": {"toolUseId": each.call.id, "content": [{"text": each.content}]}}
                for each in given
            ]
            messages.append({"role": "user", "content": blocks})
    return {"messages": messages}


def responses(said: list[Step]) -> Wire:
    items: list[Wire] = []
    for step in said:
        if isinstance(step, str):
            items.append({"type": "message", "role": "user", "content": step})
        for call in (each for each in step if isinstance(each, Called)):
            arguments = f'{{"n":{call.number}}}'
            items.append(
                {"type": "function_call", "call_id": call.id, "name": call.tool, "arguments": arguments}
            )
        items += [
            {"type": "function_call_output", "call_id": each.call.id, "output": each.content}
            for each in results(step)
        ]
    return {"input": items}


def gemini(said: list[Step], *, has_ids: bool) -> Wire:
    contents: list[Wire] = []
    for step in said:
        if isinstance(step, str):
            contents.append({"role": "user", "parts": [{"text": step}]})
        elif calls := [each for each in step if isinstance(each, Called)]:
            parts = [_function(each, has_ids, "args", {"n": each.number}) for each in calls]
            contents.append({"role": "model", "parts": [{"functionCall": part} for part in parts]})
        elif given := results(step):
            parts = [_function(each.call, has_ids, "response", {"output": each.content}) for each in given]
            contents.append({"role": "user", "parts": [{"functionResponse": part} for part in parts]})
    return {"contents": contents}


def _function(call: Called, has_ids: bool, key: str, value: Wire) -> Wire:
    return {**({"id": call.id} if has_ids else {}), "name": call.tool, key: value}


def results(step: Step) -> list[Answered]:
    return [] if isinstance(step, str) else [each for each in step if isinstance(each, Answered)]


FORMATS: dict[str, tuple[str, bool, Callable[[list[Step]], Wire]]] = {
    "chat": ("openai_chat", False, lambda said: chat(said, name=False)),
    "chat with names": ("openai_chat", True, lambda said: chat(said, name=True)),
    "functions of the old protocol": ("openai_chat", True, functions),
    "anthropic": ("anthropic", False, anthropic),
    "converse": ("bedrock", False, converse),
    "responses": ("openai_responses", False, responses),
    "gemini": ("gemini", True, lambda said: gemini(said, has_ids=True)),
    "gemini without ids": ("gemini_2", True, lambda said: gemini(said, has_ids=False)),
}
"""By name: the dialect, whether results give the name of their tool, and the writer."""


def transcript(name: str, seed: int) -> tuple[str, Wire]:
    source, has_names, write = FORMATS[name]
    width = 1 if write is functions else 2  # the old protocol has one call in a message
    return source, write(steps(seed, has_names=has_names, width=width))


# ---- imports


def results_by_call(ledger: Ledger) -> Iterator[tuple[str, str]]:
    """Yield the number of each call, from its arguments, with the content of each of its results."""
    for known in ledger.interactions():
        (number,) = findall(r"\d+", (known.arguments or b"").decode())
        ends = [] if known.end is None else [result_of(known.end)]
        for end in (*ends, *known.duplicates):
            yield number, str(end.content)


@pytest.mark.requirement("REQ-915-014", "REQ-915-022", "PROMISE-2")
@pytest.mark.parametrize("name", FORMATS)
def test_each_imported_result_appears_once_and_with_its_own_call(name: str) -> None:
    for seed in range(share(1600)):
        source, body = transcript(name, seed)
        given = set(findall(r"R\d+\.[ab]\.", str(body)))
        history, ledger = from_wire(body, source)
        pairs = list(results_by_call(ledger))
        assert [pair for pair in pairs if not pair[1].startswith(f"R{pair[0]}.")] == [], seed
        notes = [
            block.text
            for message in history
            if message.origin == RUNTIME
            for block in message.blocks
            if isinstance(block, Text)
        ]
        appearances = Counter([content for _, content in pairs] + findall(r"R\d+\.[ab]\.", " ".join(notes)))
        assert appearances == Counter(given), seed


@pytest.mark.parametrize("name", FORMATS)
def test_a_result_directly_after_its_only_open_call_is_always_paired(name: str) -> None:
    source, _, write = FORMATS[name]
    made = [Called(number, "f", IDS[0]) for number in range(1, 5)]
    said: list[Step] = [step for call in made for step in ([call], [Answered(call, f"R{call.number}.a.")])]
    history, ledger = from_wire(write(["go", *said]), source)
    assert list(results_by_call(ledger)) == [(str(number), f"R{number}.a.") for number in range(1, 5)]
    assert history.report.notes == ()


@pytest.mark.requirement("PROMISE-1")
@pytest.mark.parametrize("name", FORMATS)
def test_an_import_with_repeated_ids_renders_to_a_valid_request(name: str) -> None:
    for seed in range(share(256)):
        source, body = transcript(name, seed)
        history, ledger = from_wire(body, source)
        for target in ("openai_chat", "anthropic", "gemini", "bedrock"):
            rules = dialect(target)
            sent = encode(render(history, ledger, rules), model="m")
            assert check(sent, rules) == [], (seed, target)


def test_generated_conversations_have_every_kind_of_fault() -> None:
    seen: Counter[str] = Counter()
    for seed in range(300):
        said = steps(seed, has_names=False)
        calls = [call for step in said if isinstance(step, list) for call in step if isinstance(call, Called)]
        given = [
            each for step in said if isinstance(step, list) for each in step if isinstance(each, Answered)
        ]
        answered = Counter(each.call.number for each in given)
        seen["reused"] += len({call.id for call in calls}) < len(calls)
        seen["missing"] += any(call.number not in answered for call in calls)
        seen["double"] += any(count > 1 for count in answered.values())
        seen["late"] += any(
            each.call.number < given[at - 1].call.number for at, each in enumerate(given) if at
        )
    assert min(seen[kind] for kind in ("reused", "missing", "double", "late")) > 50, seen
