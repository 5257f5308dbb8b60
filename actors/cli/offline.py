"""Run the stand-ins of `--offline`: two strict servers on this machine whose models repeat the user's message.

`gpt` is an OpenAI Chat Completions server and `claude` an Anthropic Messages server, so a switch changes the wire
format. If a message contains the name of a tool, the model calls that tool. Without `--tools`, the only tool is `roll`.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from actors.adapters.importing import read_declarations
from actors.config import BackendSettings, Config, FileSettings
from actors.config.providers import kind_of
from actors.core.dialects.profiles import dialect
from actors.core.settings.spending import Price
from actors.errors import UnknownTarget
from actors.strict.server import LoopbackServer
from actors.testing import AnthropicServer, Call, OpenAIServer, Say, Think, Turn, serve
from actors.testing.standin import sample_arguments
from actors.tools import tool

Request = dict[str, Any]  # Any: a request body that the rules of its dialect have accepted

MODELS = {"gpt": "stand-in-gpt", "claude": "stand-in-claude"}
_MAX_REPEATED_CHARACTERS = 2000
"""Maximum number of characters of a message that the model repeats."""


@tool
def roll(sides: int = 6) -> int:
    """Roll a die."""
    return Random().randint(1, max(1, min(sides, 1000)))  # noqa: S311  a die


@asynccontextmanager
async def run_stand_ins(target: str | None) -> AsyncGenerator[tuple[Config, str]]:
    """Run the two servers; yield a configuration for them and the name of the backend to use (`gpt` by default).

    Raises:
        UnknownTarget: No stand-in has the name `target`.
    """
    name = target or "gpt"
    if name not in MODELS:
        raise UnknownTarget(f"Unknown offline model {name[:80]!r}; --offline supports {' and '.join(MODELS)}")
    servers = {"gpt": OpenAIServer(stand_in_answer), "claude": AnthropicServer(stand_in_answer)}
    async with serve(*servers.values()):
        backends = {name: _backend_settings(name, server) for name, server in servers.items()}
        prices = {model: Price(input=0.0, output=0.0) for model in MODELS.values()}
        yield Config(FileSettings(backends=backends, prices=prices), {}, "--offline"), name


def _backend_settings(name: str, server: LoopbackServer) -> BackendSettings:
    kind = kind_of(dialect(server.dialect))
    return BackendSettings(kind=kind, dialect=server.dialect, model=MODELS[name], base_url=server.endpoint)


def stand_in_answer(request: Request) -> Turn:
    """Return the scripted answer to a request: repeat the message or result, or call a tool that the message names."""
    kind, words = _last_message(request)
    if kind == "result":
        return Turn(Say(f"The result is: {words}"))
    for offered in read_declarations(request).tools:
        if offered.name in words.split():
            return Turn(Call(offered.name, sample_arguments(json.loads(offered.parameters))))
    thought = (Think("A stand-in only repeats."),) if _requests_thinking(request) else ()
    return Turn(*thought, Say(f"You said: {words}"))


def _requests_thinking(request: Request) -> bool:
    return request.get("thinking", {}).get("type") in ("enabled", "adaptive")


def _last_message(request: Request) -> tuple[str, str]:
    """Return the kind of the last message, `text` or `result`, and its text."""
    message = request["messages"][-1]
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    results = [block for block in blocks if block["type"] == "tool_result"]
    if message["role"] == "tool" or results:
        return "result", _joined_text(results or blocks)
    return "text", _joined_text(blocks)


def _joined_text(blocks: list[Request]) -> str:
    """Return the text of content blocks and of tool results inside them, cut to `_MAX_REPEATED_CHARACTERS`."""
    words: list[str] = []
    for block in blocks:
        inner = block.get("content") if block["type"] == "tool_result" else block.get("text", "")
        words.append(inner if isinstance(inner, str) else _joined_text(inner or []))
    return " ".join(words)[:_MAX_REPEATED_CHARACTERS]
