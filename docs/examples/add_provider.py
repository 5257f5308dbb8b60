import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from actors import Binding, Dialect, History, Runtime, dialect, encode, from_wire, render
from actors.config.dialects import derived
from actors.testing import CompatibleProfile, CompatibleServer, CompatibleSettings, Say, Turn, serve, validate
from actors.testing.histories import history

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
HOUSE = derived("house", tomllib.loads(ACTORS_TOML)["dialects"]["house"])
TEMPLATED = CompatibleSettings(CompatibleProfile(template="alternate_around_tools"))
LEFT_BEHIND = [
    {"role": "user", "content": "Weather in Oslo?"},
    {"role": "user", "content": "Are you there?"},
]


def refused_by(profile: Dialect) -> set[str]:
    """Return the rules that refuse what this profile makes of 100 conversations in which everything went wrong."""
    reader = Binding("house", profile.name, "http://house.example/v1", "account-1", "ours")
    rules: set[str] = set()
    for number in range(100):
        messages, ledger = history(number)
        body = encode(render(History(messages, ledger), ledger, profile, binding=reader), model="ours")
        if refusal := validate(body, "vllm", settings=TEMPLATED):
            rules.add(refusal.rule)
    return rules


async def main(file: Path) -> None:
    print("openai_compatible breaks", refused_by(dialect("openai_compatible")) or "no rule")
    print("house breaks", refused_by(HOUSE) or "no rule")
    server = CompatibleServer([Turn(Say("I am."))], vendor="vllm", settings=TEMPLATED)
    async with serve(server):
        await anyio.Path(file).write_text(ACTORS_TOML.replace("URL", server.base_url))
        async with Runtime(file) as runtime:
            session = await runtime.open("house", messages=from_wire(LEFT_BEHIND, "openai")[0])
            print((await session.ask("Hello?")).text, "Refused:", server.refusals)


with TemporaryDirectory() as folder:
    anyio.run(main, Path(folder, "actors.toml"))
