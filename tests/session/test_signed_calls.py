"""Google's copy of Chat Completions signs calls in their `extra_content`: a profile of one's own sends that back."""

import json
import tomllib
from pathlib import Path

import anyio
import pytest

from actors import Runtime
from actors.adapters.adapter import adapter
from actors.adapters.codec import decode
from actors.adapters.request import Settings
from actors.config.dialects import custom_dialect
from actors.core.check import check
from actors.core.data.jsonio import quote
from actors.core.data.record import replace
from actors.core.dialects.profiles import PROFILES
from actors.core.ledger import Ledger
from actors.core.values.content import Block, Message, ProviderState, Text, Thinking
from actors.testing import (
    AnthropicServer,
    Call,
    CompatibleProfile,
    CompatibleServer,
    CompatibleSettings,
    Say,
    Think,
    Turn,
    serve,
    validate,
)
from actors.transcripts import History, encode, render
from tests.adapters.wire_streams import chunk, dumped, openai_stream, run
from tests.commands.at_scale import share
from tests.generated.histories import READERS, history

ACTORS_TOML = """
[dialects.google_chat]
base = "openai_compatible"
reasoning.carrier = "extra_content"
reasoning.binding = "model"
reasoning.first = false
reasoning.required = "before_calls"
reasoning.placeholder = "skip_thought_signature_validator"
"""
COPY = custom_dialect("google_chat", tomllib.loads(ACTORS_TOML)["dialects"]["google_chat"])
MODEL = CompatibleProfile(signed_calls=True)
ME = replace(READERS["openai_compatible"], dialect="google_chat")
SIGNED = {"google": {"thought_signature": "c2ln"}}
FUNCTION = {"name": "read", "arguments": "{}"}
CALL = {"index": 0, "id": "x", "type": "function", "function": FUNCTION, "extra_content": SIGNED}


def answered(*, whole: bool = False) -> Message:
    stream = openai_stream(chunk({"tool_calls": [CALL]}), chunk({}, "tool_calls"))
    body = {"choices": [{"message": {"tool_calls": [CALL]}, "finish_reason": "tool_calls"}]}
    decoder = decode(COPY, ME, stream=not whole)
    _, message = run(decoder, [dumped(body) if whole else stream])
    assert isinstance(message, Message)
    assert decoder.left_out == {}
    return message


def sent(*blocks: Block) -> list[dict[str, object]]:
    """The calls that are sent of what this copy answered, first the words of another."""
    said = Message("assistant", blocks, origin=ME)
    rendered = render(History([Message("user", [Text("u")]), said]), Ledger(), COPY, binding=ME)
    assert check(encode(rendered, model="m"), COPY) == []
    calls: list[dict[str, object]] = json.loads(rendered.transcript)[1]["tool_calls"]
    return calls


@pytest.mark.parametrize("whole", [False, True])
def test_a_signature_goes_back_in_its_call(whole: bool) -> None:
    message = answered(whole=whole)
    seal = ProviderState("extra_content", quote("c2ln"), ME)
    assert message.blocks[:-1] == (Thinking("", seal),)
    assert [call.get("extra_content") for call in sent(*message.blocks)] == [SIGNED]


def test_a_call_of_another_has_the_placeholder_and_no_other_call_of_its_message() -> None:
    (call,) = answered().calls
    made = sent(call, replace(call, id="c2"))
    held = {"google": {"thought_signature": COPY.reasoning.placeholder}}
    assert [call.get("extra_content") for call in made] == [held, None]


def test_the_judge_misses_a_signature_and_the_official_profile_takes_none() -> None:
    (call,) = answered().calls
    messages = [Message("user", [Text("u")]), Message("assistant", [call])]
    bare = encode(render(History(messages), Ledger(), PROFILES["openai_compatible"]), model="m")
    assert [fault.rule for fault in check(bare, COPY)] == ["GEM-04"]
    refusal = validate(bare, "openai_compatible", settings=CompatibleSettings(MODEL))
    assert refusal is not None
    assert refusal.rule == "GEM-04"
    signed = encode(render(History(messages), Ledger(), COPY, binding=ME), model="m")
    assert check(signed, PROFILES["openai_compatible"]) != []
    assert validate(signed, "openai_compatible", settings=CompatibleSettings(MODEL)) is None
    assert validate(signed, "openai_compatible") is not None


def test_no_generated_history_is_refused_by_the_copy() -> None:
    trusting = CompatibleSettings(MODEL, signatures="trust")
    for seed in range(share(1500)):
        messages, ledger = history(seed)
        rendered = render(History(messages, ledger), ledger, COPY, binding=ME if seed % 2 else None)
        body = adapter(COPY).request(rendered._segments, Settings(model="m"), rendered._facts).body
        assert check(body, COPY) == [], seed
        refusal = validate(body, "openai_compatible", settings=trusting)
        assert refusal is None, (seed, refusal)


def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 4 C"


@pytest.mark.anyio
@pytest.mark.parametrize("whole_calls", [False, True])
async def test_a_session_goes_to_the_copy_and_back_and_its_signatures_hold(
    tmp_path: Path, whole_calls: bool
) -> None:
    calls = Call("weather", {"city": "Rome"}), Call("weather", {"city": "Bern"})
    copy = CompatibleServer(
        [Turn(Say("Look."), *calls, whole_calls=whole_calls), Turn(Say("Mild.")), Turn(Say("Again."))],
        vendor="openai_compatible",
        settings=CompatibleSettings(MODEL),
    )
    other = AnthropicServer([Turn(Think("hm"), Call("weather", {"city": "Oslo"})), Turn(Say("Cold."))])
    path = tmp_path / "actors.toml"
    with anyio.fail_after(60):
        async with serve(copy, other):
            path.write_text(
                f'{ACTORS_TOML}\n[backends.copy]\nkind = "openai_compatible"\nmodel = "m"\n'
                f'dialect = "google_chat"\nbase_url = "{copy.endpoint}"\n'
                f'[backends.other]\nkind = "anthropic"\nmodel = "m"\nbase_url = "{other.base_url}"\n'
            )
            async with Runtime(path, environ={}) as runtime:
                session = await runtime.open("copy", tools=[weather])
                assert (await session.ask("Weather?")).text == "Mild."
                await session.switch("other")
                assert (await session.ask("And in Oslo?")).text == "Cold."
                await session.switch("copy")
                assert (await session.ask("Thanks.")).text == "Again."
    assert copy.refusals == other.refusals == []
    last = json.loads(copy.requests[-1].body)["messages"]
    made = [call.get("extra_content") for message in last for call in message.get("tool_calls") or ()]
    placeholder = {"google": {"thought_signature": COPY.reasoning.placeholder}}
    assert made[1:] == [None, placeholder]
    assert made[0] not in (None, placeholder)
