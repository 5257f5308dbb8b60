"""The `[models]` tables of `actors.toml`: precedence, errors, and their effect on requests."""

import json
from pathlib import Path

import pytest

from actors.config import load
from actors.core.models.facts import ModelFacts
from actors.core.values.identity import Binding
from actors.errors import ConfigError
from actors.runtime.runtime import Runtime
from actors.testing import OpenAIServer, Say, Turn, serve

BACKEND = '[backends.gpt]\nkind = "openai"\nmodel = "gpt-6-nova"\nbase_url = "https://a.example/v1"\n'


def facts(tmp_path: Path, tables: str, binding: Binding) -> ModelFacts:
    path = tmp_path / "actors.toml"
    path.write_text(BACKEND + tables)
    return load(path, {}).dialect_of(binding).model


NOVA = Binding("gpt", "openai_chat", model="gpt-6-nova")


@pytest.mark.parametrize("provider", ["gpt", "openai", "*"])
def test_a_table_of_models_applies_to_one_backend_or_one_kind_or_every_provider(
    tmp_path: Path, provider: str
) -> None:
    found = facts(tmp_path, f'[models."{provider}:gpt-6*"]\nchat_tools = "effort_none"\n', NOVA)
    assert (found.chat_tools, found.sampling) == ("effort_none", "never")


def test_each_field_has_the_value_of_the_most_specific_table_of_models(tmp_path: Path) -> None:
    tables = """
[models."openai:gpt-6-nova"]
chat_tools = "always"

[models."openai:*"]
chat_tools = "never"
sampling = "always"
stops = true

[models."openai:gpt-6*"]
sampling = "without_thinking"
"""
    found = facts(tmp_path, tables, NOVA)
    assert (found.chat_tools, found.sampling, found.stops) == ("always", "without_thinking", True)


def test_a_table_of_models_for_another_provider_or_model_has_no_effect(tmp_path: Path) -> None:
    plain = facts(tmp_path, "", NOVA)
    tables = '[models."anthropic:gpt-6*"]\nstops = true\n[models."openai:gpt-5*"]\nstops = true\n'
    assert facts(tmp_path, tables, NOVA) == plain


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('[models."gpt-6*"]\nstops = true', "must be named PROVIDER:MODEL"),
        (
            '[models."opneai:gpt-6*"]\nstops = true',
            "names an unknown backend, 'opneai'; did you mean 'openai'?",
        ),
        ('[models."openai:*"]\nstop = true', "has no field 'stop'; did you mean 'stops'?"),
        ('[models."openai:*"]\nstops = "yes"', "Expected `bool`, got `str` at stops"),
        ('[models."openai:*"]\nsampling = "no"', "Invalid enum value 'no' at sampling"),
        ('[models."openai:*"]\nimage_side = 0', "Expected `int` >= 1 at image_side"),
        ('[models."openai:*"]\ncache_minimum = -1', "Expected `int` >= 0 at cache_minimum"),
        (
            '[models."openai:*"]\nproperty_keys = "("',
            "property_keys: must be a regular expression (missing )",
        ),
        (
            '[models."openai:*"]\ndefault_effort = "hihg"',
            "default_effort: 'hihg' is not a level; did you mean 'high'?",
        ),
        ('[models."openai:*"]\nefforts = ["high", "low"]', "efforts: must be in ascending order"),
        ('[models."openai:*"]\nefforts = ["hihg"]', "efforts: 'hihg' is not a level; did you mean 'high'?"),
    ],
)
def test_an_invalid_table_of_models_is_rejected_with_a_one_line_error(
    tmp_path: Path, table: str, message: str
) -> None:
    path = tmp_path / "actors.toml"
    path.write_text(BACKEND + table + "\n")
    with pytest.raises(ConfigError) as rejected:
        load(path, {})
    assert message in str(rejected.value)
    assert "\n" not in str(rejected.value)


@pytest.mark.anyio
async def test_requests_follow_the_table_of_models_in_the_configuration_file(tmp_path: Path) -> None:
    def read() -> str:
        """Read."""
        return "read"

    server = OpenAIServer([Turn(Say("Done."))])
    async with serve(server):
        path = tmp_path / "actors.toml"
        backend = f'[backends.own]\nkind = "openai"\nmodel = "house-7"\nbase_url = "{server.endpoint}"\n'
        path.write_text(backend + '[models."own:house-*"]\nchat_tools = "effort_none"\nsampling = "never"\n')
        async with Runtime(str(path)) as runtime:
            session = await runtime.open("own", tools=[read])
            answer = await session.ask("Go.", temperature=0.2)
            assert answer.losses == {"temperature": 1}
    (request,) = server.requests
    assert json.loads(request.body)["reasoning_effort"] == "none"
    assert "temperature" not in json.loads(request.body)
