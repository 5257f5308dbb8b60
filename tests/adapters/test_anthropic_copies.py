"""Check a custom profile for Anthropic-compatible hosts that require thinking with every call."""

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
from actors.core.data.jsonio import dump
from actors.core.data.record import replace
from actors.core.dialects.profiles import PROFILES
from actors.core.ledger import Ledger
from actors.core.values.content import Message, Text, ToolResult
from actors.core.values.identity import Binding
from actors.strict.rules import AnthropicProfile, AnthropicSettings, validate
from actors.testing import AnthropicServer, Call, OpenAIServer, Say, Think, Turn, serve
from actors.transcripts import History, encode, render
from tests.adapters.wire_streams import anthropic_stream, delta, dump_json, run, start, stop
from tests.commands.at_scale import share
from tests.generated.histories import READERS, history

ACTORS_TOML = """
[dialects.copy]
base = "anthropic"
ids.tool_name_pattern = "[a-zA-Z0-9_-]{1,64}"
media.result_kinds = []
media.user_kinds = []
reasoning.binding = "model"
reasoning.required = "with_calls"
reasoning.placeholder = "(No reasoning recorded.)"
"""
COPY = custom_dialect("copy", tomllib.loads(ACTORS_TOML)["dialects"]["copy"])
HOST = AnthropicSettings(AnthropicProfile(reasoning=True), signatures="trust")
ME = replace(READERS["anthropic"], dialect="copy")
ASKED = Message("user", (Text("Do it."),))


def test_no_generated_history_is_rejected_by_a_compatible_host() -> None:
    for seed in range(share(1500)):
        messages, ledger = history(seed)
        rendered = render(History(messages, ledger), ledger, COPY, binding=ME if seed % 2 else None)
        body = adapter(COPY).request(rendered._segments, Settings(model="m"), rendered._facts).body
        assert check(body, COPY) == [], seed
        refusal = validate(body, "anthropic", settings=HOST)
        assert refusal is None, (seed, refusal)


def test_only_compatible_hosts_get_placeholder_thinking_before_foreign_calls() -> None:
    message = _answer(signature=None, thinking=None)
    body = _sent_messages(message, binding=None)
    placeholder = b'{"type":"thinking","thinking":"(No reasoning recorded.)","signature":""}'
    assert body.count(placeholder) == 1
    assert validate(body, "anthropic", settings=HOST) is None
    official = validate(body, "anthropic", settings=AnthropicSettings(signatures="trust"))
    assert official is not None
    bare = encode(
        render(History([ASKED, message, _result(message)]), Ledger(), PROFILES["anthropic"]), model="m"
    )
    refused = validate(bare, "anthropic", settings=HOST)
    assert refused is not None
    assert refused.rule == "DSK-06"


@pytest.mark.parametrize("signature", ["", "c2ln"])
@pytest.mark.parametrize("whole", [False, True])
def test_thinking_of_a_compatible_host_is_sent_back_with_or_without_a_signature(
    signature: str, whole: bool
) -> None:
    message = _answer(signature=signature, thinking="Let me see…", whole=whole)
    block = bytes(dump({"type": "thinking", "thinking": "Let me see…", "signature": signature}))
    assert block in _sent_messages(message, binding=ME)
    assert block not in _sent_messages(message, binding=replace(ME, model="another"))


def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 4 C"


@pytest.mark.anyio
@pytest.mark.parametrize("signature", [None, ""])
async def test_a_session_with_thinking_can_switch_to_a_compatible_host_and_back(
    tmp_path: Path, signature: str | None
) -> None:
    copy = AnthropicServer(
        [Turn(Think("Hm.", signature), Call("weather", {"city": "Rome"})), Turn(Say("Mild."))],
        settings=AnthropicSettings(AnthropicProfile(reasoning=True)),
    )
    other = OpenAIServer([Turn(Call("weather", {"city": "Oslo"})), Turn(Say("Cold."))])
    path = tmp_path / "actors.toml"
    with anyio.fail_after(60):
        async with serve(copy, other):
            path.write_text(
                f'{ACTORS_TOML}\n[backends.copy]\nkind = "anthropic"\nmodel = "m"\ndialect = "copy"\n'
                f'base_url = "{copy.base_url}"\n'
                f'[backends.other]\nkind = "openai"\nmodel = "m"\nbase_url = "{other.base_url}"\n'
            )
            async with Runtime(path, environ={}) as runtime:
                session = await runtime.open("other", tools=[weather])
                await session.ask("Weather in Oslo?")
                await session.switch("copy")
                assert (await session.ask("And in Rome?")).text == "Mild."
                await session.switch("other")
                assert (await session.ask("Thanks.")).status == "complete"
    assert copy.refusals == other.refusals == []


def _answer(*, signature: str | None, thinking: str | None, whole: bool = False) -> Message:
    """Return an answer of a compatible host: optional thinking, and a call."""
    call = {"type": "tool_use", "id": "toolu_A", "name": "read", "input": {}}
    thought = {"type": "thinking", "thinking": thinking, "signature": signature}
    if whole:
        decoder = decode(COPY, ME, stream=False)
        decoder.feed(dump_json({"content": [thought, call]}))
        return decoder.close()
    shown = [start(0, type="thinking", thinking=""), delta(0, type="thinking_delta", thinking=thinking)]
    shown += [delta(0, type="signature_delta", signature=signature)] if signature else []
    begun = [*shown, stop(0)] if thinking else []
    _, message = run(decode(COPY, ME), [anthropic_stream(*begun, start(1, **call), stop(1))])
    assert isinstance(message, Message)
    return message


def _result(message: Message) -> Message:
    return Message("tool", (ToolResult(message.calls[0].id, "ok"),))


def _sent_messages(message: Message, binding: Binding | None) -> bytes:
    return encode(
        render(History([ASKED, message, _result(message)]), Ledger(), COPY, binding=binding), model="m"
    )
