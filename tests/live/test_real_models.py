"""A real model, where someone brings one: it is never refused, and every call it makes is closed.

    ACTORS_LIVE_OPENAI      base URL of a server of Chat Completions, as http://127.0.0.1:8080/v1
    ACTORS_LIVE_RESPONSES   base URL of OpenAI Responses, likewise
    ACTORS_LIVE_ANTHROPIC   base URL of Anthropic Messages, as http://127.0.0.1:8080
    ACTORS_LIVE_MODEL       the model's name at all of them

No key is sent. Without the variables these tests are skipped.
"""

import os

import pytest

from actors.config.providers import Kind
from tests.live.conversation import Live, hold

pytestmark = pytest.mark.anyio

VARIABLES: dict[str, Kind] = {
    "ACTORS_LIVE_OPENAI": "llama_cpp",
    "ACTORS_LIVE_RESPONSES": "openai_responses",
    "ACTORS_LIVE_ANTHROPIC": "anthropic",
}
MODEL = os.environ.get("ACTORS_LIVE_MODEL", "")


def server(variable: str) -> Live:
    """Return the server that a variable names; skip the test where it or the model's name is unset."""
    for name in (variable, "ACTORS_LIVE_MODEL"):
        if not os.environ.get(name):
            pytest.skip(f"{name} is not set: no real model to talk to")
    return Live(VARIABLES[variable], os.environ[variable].rstrip("/"), MODEL)


@pytest.mark.parametrize("variable", VARIABLES)
async def test_a_real_model_is_never_refused_and_every_call_is_closed(variable: str) -> None:
    await hold([server(variable)])


@pytest.mark.parametrize("other", ["ACTORS_LIVE_RESPONSES", "ACTORS_LIVE_ANTHROPIC"])
async def test_a_session_moves_between_the_protocols_of_a_real_server(other: str) -> None:
    await hold([server("ACTORS_LIVE_OPENAI"), server(other)])


async def test_a_session_moves_between_all_three_protocols_of_a_real_server() -> None:
    await hold([server(variable) for variable in VARIABLES], rounds=2)
