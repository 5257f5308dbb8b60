"""Check the configuration entries suggested for facts learned from rejections."""

import tomllib

import pytest

from actors.adapters.settings import DEFAULTS
from actors.config import FileSettings
from actors.core.models.facts import ModelFacts, override_facts
from actors.core.values.identity import Binding
from actors.provider.backend import FIELDS, model_overrides, models_entry

HERE = Binding("house", "openai_chat", model="m[1]*")
BACKEND = {"kind": "openai_compatible", "model": "m", "base_url": "http://127.0.0.1/v1"}


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_config_entry_suggested_for_each_rejected_parameter_is_valid(name: str) -> None:
    tables = tomllib.loads(models_entry(HERE, [name]))
    assert [*tables["models"]] == ["house:m[[]1][*]"]
    FileSettings.model_validate({**tables, "backends": {"house": BACKEND}})
    accepting = ModelFacts(display=True, verbosity=True, service_tier=True)
    assert (override_facts(accepting, model_overrides([name])) != accepting) == (name in FIELDS)


def test_a_suggested_config_entry_has_all_learned_facts_or_a_comment_for_facts_without_a_field() -> None:
    assert models_entry(
        Binding("house", "openai_chat", model="m"), ["temperature", "top_p", "stream_options"]
    ) == (
        '[models."house:m"]\nsampling = "never"\n# stream_options was rejected, but no field can express that'
    )
