"""The strict Mistral rules and the vendor's own validator give the same verdict on the same transcripts.

The validator knows five generations of tokenizers. The transcripts here contain nothing for which the validator is
less strict than the hosted API (a user message after a tool message, a tool message at the beginning); other tests
cover these cases.
"""

import itertools
import json
from random import Random
from typing import Any

import pytest
from mistral_common.exceptions import MistralCommonException
from mistral_common.protocol.instruct.messages import UATS
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
from mistral_common.tokens.tokenizers.base import TokenizerVersion
from pydantic import ValidationError

from actors.strict.rules import CompatibleProfile, CompatibleSettings, validate
from tests.commands.at_scale import share

Json = dict[str, Any]  # a transcript under test may be anything

GENERATIONS = {
    3: TokenizerVersion.v3,
    7: TokenizerVersion.v7,
    11: TokenizerVersion.v11,
    13: TokenizerVersion.v13,
    15: TokenizerVersion.v15,
}
A, B = "aaaaaaaa1", "bbbbbbbb2"
USER: Json = {"role": "user", "content": "u"}
SYSTEM: Json = {"role": "system", "content": "s"}
SAID: Json = {"role": "assistant", "content": "a"}
IMAGE = {"type": "image_url", "image_url": "https://example.com/x.png"}


def calls(*ids: str, name: str = "read", arguments: Any = "{}", **more: Any) -> Json:  # any value under test
    made = [
        {"id": each, "type": "function", "function": {"name": name, "arguments": arguments}} for each in ids
    ]
    return {"role": "assistant", "tool_calls": made, **more}


def result(call_id: str = A, **more: Any) -> Json:  # any value under test
    return {"role": "tool", "tool_call_id": call_id, "content": "r", **more}


NAMELESS: Json = {"role": "assistant", "tool_calls": [{"function": {"name": "read", "arguments": "{}"}}]}
TABLE: dict[str, list[Json]] = {
    "golden": [SYSTEM, USER, calls(A, B), result(A), result(B), SAID, USER],
    "MIS-01": [USER, calls("call_abc123"), result("call_abc123")],
    "MIS-01 null": [USER, calls("null"), result("null")],
    "MIS-02 at the end": [USER, calls(A, B), result(A)],
    "MIS-02 user": [USER, calls(A, B), USER],
    "MIS-02 assistant": [USER, calls(A, B), result(A), SAID, USER],
    "MIS-03": [USER, calls(A), result(A), result(A)],
    "MIS-03 second for one": [USER, calls(A, B), result(A), result(A)],
    "MIS-04": [USER, calls(A, A), result(A), result(A)],
    "MIS-05": [USER, result(A)],
    "MIS-06": [USER, SAID, result(A)],
    "MIS-07": [USER, calls(A), result(B)],
    "MIS-08": [USER, calls(A, B), result(B), result(A)],
    "MIS-09": [USER, calls(A), USER, result(A)],
    "MIS-10": [USER, SAID],
    "MIS-11": [USER, {**SAID, "prefix": True}, USER],
    "MIS-11 last": [USER, {**SAID, "prefix": True}],
    "MIS-12 after tool": [USER, calls(A), result(A), SYSTEM],
    "MIS-12 after assistant": [USER, SAID, SYSTEM, USER],
    "MIS-13": [],
    "MIS-13 assistant alone": [SAID],
    "MIS-14": [USER, calls(A, name="a.b"), result(A)],
    "MIS-14 result": [USER, calls(A), result(A, name="a.b")],
    "MIS-15": [USER, calls(A), {"role": "tool", "content": "r"}],
    "MIS-16": [USER, NAMELESS, result(A)],
    "MIS-17 both": [USER, calls(A, content="t"), result(A)],
    "MIS-17 neither": [USER, {"role": "assistant", "content": ""}, USER],
    "MIS-18": [USER, calls(A), result(A, content=[IMAGE])],
    "MIS-19": [USER, calls(A, reasoning_content="t"), result(A)],
    "MIS-20 not JSON": [USER, calls(A, arguments="{"), result(A)],
    "MIS-20 object": [USER, calls(A, arguments={"p": 1}), result(A)],
    "MIS-22 id again": [USER, calls(A), result(A), SAID, USER, calls(A), result(A)],
    "MIS-22 two users": [USER, USER],
    "MIS-22 two assistants": [USER, SAID, SAID, USER],
    "MIS-22 assistant first": [SAID, USER],
    "MIS-22 calls first": [calls(A), result(A)],
    "MIS-22 system last": [USER, SYSTEM],
    "MIS-22 empty": [{"role": "user", "content": ""}, calls(A), result(A, content="")],
}


def validator_error(messages: list[Json], generation: int) -> str | None:
    """Return the error of the vendor's validator, or None."""
    try:
        made = {"model": "m", "messages": messages}
        request = ChatCompletionRequest[UATS].model_validate(made)  # type: ignore[type-arg]  # its own
        get_validator(GENERATIONS[generation], ValidationMode.serving).validate_request(request)
    except ValidationError as why:
        # The validator tries each role for a message, so its errors include those for the wrong roles.
        said = {error["type"]: str(error["msg"]) for error in why.errors()}
        return said.get("extra_forbidden", str(said))
    except MistralCommonException as why:
        return why.message
    return None


def ours(messages: list[Json], generation: int) -> str | None:
    settings = CompatibleSettings(CompatibleProfile(generation=generation))
    body = json.dumps({"model": "m", "messages": messages}).encode()
    refusal = validate(body, "mistral", mode="hosted", settings=settings)
    return None if refusal is None else refusal.message


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("transcript", TABLE)
def test_mistrals_own_validator_gives_the_same_verdict_and_message(transcript: str, generation: int) -> None:
    assert ours(TABLE[transcript], generation) == validator_error(TABLE[transcript], generation)


def test_each_generation_of_mistrals_validator_rejects_a_different_number_of_transcripts() -> None:
    refused = {
        generation: sum(validator_error(messages, generation) is not None for messages in TABLE.values())
        for generation in GENERATIONS
    }
    assert refused[11] > refused[7] > 10
    assert refused[15] < refused[13] < refused[11]


def random_transcript(seed: int) -> list[Json]:
    """Return a random, mostly invalid transcript without a user message after a tool message."""
    random = Random(seed)
    pieces = [USER, SAID, SYSTEM, calls(A), calls(A, B), result(A), result(B), {**SAID, "prefix": True}]
    weights = [6, 4, 1, 4, 4, 6, 4, 1]
    messages = [USER, *random.choices(pieces, weights, k=random.randrange(1, 7))]
    roles = itertools.pairwise(message["role"] for message in messages)
    return [USER] if ("tool", "user") in roles else messages


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_thousand_generated_transcripts_get_the_same_verdict(generation: int) -> None:
    verdicts = []
    for seed in range(share(1000)):
        messages = random_transcript(seed)
        verdict = validator_error(messages, generation)
        assert ours(messages, generation) == verdict, messages
        verdicts.append(verdict is None)
    assert verdicts.count(True) > share(100)
    assert verdicts.count(False) > share(100)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_requests_accepted_in_strict_mode_are_accepted_by_every_generation(
    generation: int,
) -> None:
    taken = 0
    for messages in [*TABLE.values(), *map(random_transcript, range(share(1000)))]:
        body = json.dumps({"model": "m", "messages": messages}).encode()
        if validate(body, "mistral") is None:
            taken += 1
            why = validator_error(messages, generation)
            assert why is None or (generation == 3 and "either content or tool_calls" in why)
    assert taken > share(200)
