"""Check the strict Responses rules for encrypted reasoning and compatible hosts."""

import json
from typing import Any

import pytest

from actors.strict.rules import ResponsesProfile, ResponsesSettings, validate
from actors.strict.rules.responses import encrypt
from actors.strict.script import Call, Say, Think, Turn
from actors.strict.wires.responses import ResponsesWire
from tests.rules.responses import SAID, USER, body, call, model, output, reasoning
from tests.rules.row import Json, encode_request

TRUST = model()


def test_only_the_official_host_accepts_outputs_that_do_not_follow_their_calls() -> None:
    apart = encode_request(body(USER, call(), USER, output()))
    assert validate(apart, "openai_responses", mode="hosted") is None
    refusal = validate(apart, "openai_responses", mode="hosted", settings=model(adjacent=True))
    assert refusal is not None
    assert refusal.rule == "OAR-14"


# ---- encrypted reasoning

OWN = ResponsesSettings()
BOUND = ResponsesSettings(ResponsesProfile(prefix_bound=True))


def answered_request(settings: ResponsesSettings, **more: Any) -> Json:  # any key of a request
    """Return a request with reasoning, its call and the result, for the host that made the reasoning."""
    request = body(USER, include=["reasoning.encrypted_content"], **more)
    turn = Turn(Think("Hm."), Call("read"))
    response = json.loads(ResponsesWire(settings).encode_response(turn, request, 0))
    request["input"] += [*response["output"], output(response["output"][1]["call_id"])]
    return request


def verdict(request: Json, settings: ResponsesSettings, mode: Any = "strict") -> str | None:  # any mode
    refusal = validate(encode_request(request), "openai_responses", mode=mode, settings=settings)
    return None if refusal is None else refusal.rule


@pytest.mark.parametrize("settings", [OWN, BOUND])
def test_unchanged_encrypted_reasoning_is_accepted(settings: ResponsesSettings) -> None:
    assert verdict(answered_request(settings), settings) is None


def test_reasoning_of_another_account_host_or_model_is_rejected() -> None:
    request = answered_request(OWN)
    assert verdict(request, ResponsesSettings(account="account-2")) == "OAR-09"
    assert verdict(request, ResponsesSettings(secret=b"another")) == "OAR-09"
    assert verdict({**request, "model": "other"}, OWN) == "OAR-09"
    assert verdict({**request, "model": "other"}, OWN, mode="hosted") is None


def test_reasoning_with_a_changed_id_or_content_is_rejected() -> None:
    changes: list[Json] = [{"id": "rs_other"}, {"encrypted_content": "gAAA"}]
    for change in changes:
        request = answered_request(OWN)
        request["input"][2]["id"] = "fc_1"
        request["input"][1] |= change
        assert verdict(request, OWN) == "OAR-09"


def test_reasoning_may_omit_its_summary_and_may_omit_its_id_together_with_the_next_item() -> None:
    request = answered_request(OWN)
    request["input"][1]["summary"] = []
    assert verdict(request, OWN) is None
    for item in request["input"][1:3]:
        del item["id"]
    assert verdict(request, OWN) is None


def test_bound_reasoning_is_rejected_after_a_changed_prefix() -> None:
    request = answered_request(BOUND)
    assert verdict({**request, "instructions": "now"}, BOUND) == "OAR-09"
    assert verdict({**request, "instructions": "now"}, OWN) is None
    request["input"][0] = {**USER, "content": "other"}
    assert verdict(request, BOUND) == "OAR-09"


def test_simulated_encrypted_reasoning_depends_on_the_complete_prefix() -> None:
    request = body(USER)
    one = encrypt(request, [], "rs_1", OWN)
    assert one == encrypt(request, [reasoning()], "rs_1", OWN)
    assert one != encrypt(request, [SAID], "rs_1", OWN)


def test_item_ids_generated_by_the_server_encode_the_preceding_item() -> None:
    turn = Turn(Say("a"), Think("Hm."), Say("b"), Call("read"))
    items = json.loads(ResponsesWire(OWN).encode_response(turn, body(USER), 0))["output"]
    prefixes = [item["id"].partition("_")[0] for item in items]
    assert prefixes == ["msg", "rs", "msg", "fc"]
    items[1]["encrypted_content"] = "gAAA"
    request = body(USER, *items, output(items[3]["call_id"]))
    assert verdict(request, TRUST) is None
    request["input"].remove(items[1])
    assert verdict(request, TRUST) == "OAR-04"
