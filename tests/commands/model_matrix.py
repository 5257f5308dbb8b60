"""Every model of the table on every host that serves it: complete sessions over strict servers, without refusals.

    python -m tests.commands.model_matrix                 all models, on asyncio and on trio
    python -m tests.commands.model_matrix --share 16      every sixteenth, as in the tests

Each session has tools and asks with a forced tool, with thinking off, with a temperature, with an effort, and with all
of them together, streamed and not streamed.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import anyio

from actors import Runtime
from actors.config import Config
from actors.config.providers import kind_of
from actors.config.settings import BackendSettings, FileSettings
from actors.core.dialects.profiles import dialect
from actors.core.models.facts import ModelRow
from actors.core.models.table import ROWS
from actors.errors import ConfigError
from actors.testing import serve, standin, strict_server

HOSTS: dict[str, tuple[str, ...]] = {
    "openai": ("openai_chat", "openai_responses"),
    "anthropic": ("anthropic", "bedrock"),
    "google": ("gemini", "vertex"),
    "amazon": ("bedrock",),
}
"""The dialects that serve a maker's models; any other maker has one host of the same name."""

ASKS: tuple[dict[str, Any], ...] = (  # Any: settings of an ask
    {"tool_choice": "required"},
    {"thinking": "off"},
    {"temperature": 0.2},
    {"effort": "low"},
    {"tool_choice": "required", "thinking": "off", "temperature": 0.2, "effort": "low", "stop": ("END",)},
)


class Cell(NamedTuple):
    """One model on one host."""

    model: str
    host: str
    stream: bool

    def __str__(self) -> str:
        return f"{self.host} {self.model}{'' if self.stream else ' (not streamed)'}"


def hosts(row: ModelRow) -> tuple[str, ...]:
    """Return the dialects that serve the models of a row."""
    return HOSTS.get(row.maker, (row.maker,))


def cells() -> Iterator[Cell]:
    """Yield every model on every host, streamed and not streamed."""
    for row in ROWS:
        for host in hosts(row):
            for model in row.sample:
                for stream in (True, False):
                    yield Cell(model, host, stream)


def look() -> str:
    """Look."""
    return "seen"


async def refusals(cell: Cell) -> list[str]:
    """Return the problems of a session: the server's refusals, and asks that did not complete."""
    server = strict_server(cell.host, standin.model(cell.host))
    async with serve(server):
        settings = BackendSettings.model_validate(
            {
                "kind": kind_of(dialect(cell.host)),
                "dialect": cell.host,
                "model": cell.model,
                "base_url": server.endpoint,
                "stream": cell.stream,
            }
        )
        async with Runtime(Config(FileSettings(backends={"a": settings}), {})) as runtime:
            try:
                session = await runtime.open("a", tools=[look])
            except ConfigError as error:
                return [] if "openai_responses" in str(error) and cell.host == "openai_chat" else [str(error)]
            wrong = [f"{asked}: {answer.error}" for asked in ASKS
                     if (answer := await session.ask("Look.", check=False, **asked)).status != "complete"]  # fmt: skip
    return [*wrong, *(f"{refusal.rule}: {refusal.message}" for refusal in server.refusals)]


def main(arguments: Sequence[str]) -> int:
    """Run the matrix, print the refusals, and return 1 if there were any."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=int, default=1, help="run one cell in this many (1)")
    options = parser.parse_args(arguments)
    chosen = [*cells()][:: options.share]
    failed = 0
    for cell in chosen:
        for backend in ("asyncio", "trio"):
            found = anyio.run(refusals, cell, backend=backend)
            failed += bool(found)
            for line in found:
                sys.stdout.write(f"{cell} on {backend}: {line}" + "\n")
    sys.stdout.write(f"{len(chosen)} models on their hosts, on asyncio and trio: {failed} refused" + "\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
