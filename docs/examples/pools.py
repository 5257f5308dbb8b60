from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from actors import Runtime
from actors.testing import OVERLOADED, AnthropicServer, OpenAIServer, Say, Turn, serve

ACTORS_TOML = """
[backends.gpt]
kind = "openai"
model = "gpt-5.2"
base_url = "{gpt}"
limits = {{ attempts = 1 }}

[backends.claude]
kind = "anthropic"
model = "claude-sonnet-5"
base_url = "{claude}"

[pools.main]
members = ["gpt", "claude"]
policy = "failover"
cooldown = 60
"""


async def main(file: Path) -> None:
    gpt = OpenAIServer(faults=lambda number, request: OVERLOADED)
    claude = AnthropicServer([Turn(Say("Here I am.")), Turn(Say("Here I stay."))])
    async with serve(gpt, claude):
        text = ACTORS_TOML.format(gpt=gpt.base_url, claude=claude.base_url)
        await anyio.Path(file).write_text(text)
        async with Runtime(file) as runtime:
            session = await runtime.open("main")
            for words in ("Is anybody there?", "And now?"):
                result = await session.ask(words)
                print(result.text)
                for attempt in result.attempts:
                    print("  ", attempt.binding, attempt.status, attempt.error)


with TemporaryDirectory() as folder:
    anyio.run(main, Path(folder, "actors.toml"))
