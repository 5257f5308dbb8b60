"""Random combinations of settings over generated conversations: no strict server refuses them."""

import json

import pytest

from actors.core.dialects.profiles import PROFILES, dialect
from actors.strict.rules import validate
from tests.adapters import wanted
from tests.commands.at_scale import extent
from tests.core.session_log import TRUSTING
from tests.generated.histories import READERS, history

MODELS = {"anthropic": "claude-sonnet-5", "bedrock": "anthropic.claude-sonnet-4-5"}


@pytest.mark.requirement("PROMISE-1", "REQ-915-036")
@pytest.mark.parametrize("name", PROFILES)
def test_no_server_refuses_random_settings_over_any_history(name: str) -> None:
    forms, count = 0, extent(25, 800)
    for seed in range(count):
        body = wanted.body(history, seed, dialect(name), READERS[name], model=MODELS.get(name, "m"))
        data = json.dumps(body)
        refusal = validate(data.encode(), name, settings=TRUSTING.get(name))
        assert refusal is None, f"history({seed}): {refusal}"
        forms += any(key in data for key in ("json_schema", "responseSchema", "give_final_answer"))
    uses_prompt = PROFILES[name].request.output == "prompt"
    assert (forms > count // 20) is not uses_prompt
