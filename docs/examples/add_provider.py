import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from actors import Runtime
from actors.config.dialects import custom_dialect
from actors.testing import CompatibleProfile, CompatibleServer, CompatibleSettings, Say, Turn, serve, validate
from actors.transcripts import Dialect, dialect, encode, from_wire, render

ACTORS_TOML = """
[dialects.house]
base = "openai_compatible"
turns.first_roles = ["user"]
turns.alternation = "fill"
turns.user_after_tool = "filler"

[backends.house]
kind = "openai_compatible"
dialect = "house"
model = "ours"
base_url = "URL"
"""
HOUSE = custom_dialect("house", tomllib.loads(ACTORS_TOML)["dialects"]["house"])
TEMPLATED = CompatibleSettings(CompatibleProfile(template="alternate_around_tools"))
UNANSWERED = [
    {"role": "user", "content": "Weather in Oslo?"},
    {"role": "user", "content": "Are you there?"},
]
CALLS = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": number, "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        for number in ("1", "2")
    ],
}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "4 C"}
QUESTION, ANSWER = {"role": "user", "content": "And in Rome?"}, {"role": "assistant", "content": "21 C."}
DAMAGED = (
    UNANSWERED,
    [*UNANSWERED[:1], CALLS, RESULT, QUESTION],  # a call without a result
    [*UNANSWERED[:1], RESULT, ANSWER, QUESTION],  # a result without a call
    [ANSWER, QUESTION],
)
"""Damaged conversations in the format of Chat Completions."""


def broken_rules(profile: Dialect) -> set[str]:
    """Return the server rules that requests for the damaged conversations break under this profile."""
    rules: set[str] = set()
    for messages in DAMAGED:
        history, ledger = from_wire(messages, "openai")
        body = encode(render(history, ledger, profile), model="ours")
        if refusal := validate(body, "vllm", settings=TEMPLATED):
            rules.add(refusal.rule)
    return rules


async def main(file: Path) -> None:
    print("openai_compatible breaks", broken_rules(dialect("openai_compatible")) or "no rule")
    print("house breaks", broken_rules(HOUSE) or "no rule")
    server = CompatibleServer([Turn(Say("I am."))], vendor="vllm", settings=TEMPLATED)
    async with serve(server):
        await anyio.Path(file).write_text(ACTORS_TOML.replace("URL", server.base_url))
        async with Runtime(file) as runtime:
            session = await runtime.open("house", messages=from_wire(UNANSWERED, "openai")[0])
            print((await session.ask("Hello?")).text, "Refused:", server.refusals)


with TemporaryDirectory() as folder:
    anyio.run(main, Path(folder, "actors.toml"))
