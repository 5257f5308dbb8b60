"""Each rule of the Bedrock judge refuses its fault in the provider's words, and nothing next to it."""

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

from actors.strict.rules import BEDROCK_RULES, AnthropicProfile, BedrockProfile, BedrockSettings, validate
from actors.strict.rules.bedrock_upstream import sign_reasoning
from tests.core.converse_rows import (
    DOCUMENT,
    FULL,
    IMAGE,
    OK,
    ROUND,
    TOOL,
    Json,
    answer,
    body,
    choosing,
    document,
    documents,
    model,
    redacted,
    text,
    thought,
    use,
    user,
)
from tests.strict.cases_answers import shown

WRAPPED = "The model returned the following errors: "
NULL = "1 validation error detected: Value null at '{}' failed to satisfy constraint: Member must not be null"
MALFORMED = "Malformed input request: #/{}, please reformat your input and try again."
DEFAULT = BedrockSettings()
TRUSTING = BedrockSettings(signatures="trust")
NO_IMAGES = BedrockSettings(BedrockProfile(media=frozenset()))
SMALL = BedrockSettings(BedrockProfile(context_tokens=20))
ONE_IMAGE = BedrockSettings(BedrockProfile(attachments=1))
OTHER = BedrockSettings(models={"other": BedrockProfile()})


@dataclass(frozen=True)
class Case:
    rule: str
    refused: Json | bytes
    message: str
    accepted: Json
    settings: BedrockSettings = DEFAULT
    type: str = "ValidationException"


TWO = (user(text()), model(use("t1"), use("t2")))
BOTH = body(*TWO, user(answer("t1"), answer("t2"), text("go")))
EXPECTED = "Expected toolResult blocks at messages.2.content for the following Ids: "
EXCEEDS = (
    "The number of toolResult blocks at messages.{}.content exceeds the number of toolUse blocks of previous "
    "turn."
)
ALTERNATE = (
    "A conversation must alternate between user and assistant roles. Make sure the conversation alternates "
    "between user and assistant roles and try again."
)
START = (
    "A conversation must start with a user message. Try again with a conversation that starts with a user "
    "message."
)
TWICE = "Messages can't contain duplicate document names. Rename the document and retry your request."
TITLE = (
    "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, "
    "and square brackets. The name can't contain more than one consecutive whitespace character. Check that the file "
    "name conforms to these restrictions and retry your request."
)
BLANK = "The text field in the ContentBlock object at {} is blank. Add text to the text field, and try again."
PATTERN = (
    "1 validation error detected: Value '{}' at '{}' failed to satisfy constraint: Member must satisfy {}"
)
SPEC = TOOL["toolSpec"]
SAID = (user(text()), model(text("t")), user(text("go")))

CASES = [
    Case("BED-01", body(*TWO, user(answer("t2"))), EXPECTED + "t1", BOTH),
    Case("BED-01", body(*TWO, user(text("go"))), EXPECTED + "t1, t2", BOTH),
    Case("BED-01", body(*TWO), EXPECTED + "t1, t2", BOTH),
    Case("BED-01", body(*TWO, user(answer("t1")), user(answer("t2"))), EXPECTED + "t2", BOTH),
    Case("BED-02", body(user(answer())), EXCEEDS.format(0), OK),
    Case("BED-02", body(*ROUND[:2], user(answer(), answer())), EXCEEDS.format(2), FULL),
    Case("BED-02", body(*ROUND, model(text()), user(answer())), EXCEEDS.format(4), FULL),
    Case(
        "BED-03",
        {"messages": list(ROUND)},
        "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
        FULL,
    ),
    Case("BED-04", body(user(text(" \n"))), BLANK.format("messages.0.content.0"), OK),
    Case(
        "BED-04",
        body(*ROUND[:2], user(answer("t1", text("")))),
        BLANK.format("messages.2.content.0.toolResult.content.0"),
        FULL,
    ),
    Case("BED-04", body(user(text()), system=[text("")]), BLANK.format("system.0"), OK),
    Case(
        "BED-05",
        body(user(text()), model(), user(text())),
        "The content field in the Message object at messages.1 is empty. Add a ContentBlock object to the content "
        "field and try again.",
        body(*SAID),
    ),
    Case("BED-06", body(user(text()), user(text())), ALTERNATE, OK),
    Case("BED-06", body(user(text()), model(text()), model(text()), user(text())), ALTERNATE, body(*SAID)),
    Case("BED-07", body(model(text()), user(text())), START, OK),
    Case("BED-07", body(), START, OK),
    Case(
        "BED-08",
        body(user(text()), model(use("a b")), user(answer("a b"))),
        PATTERN.format(
            "a b",
            "messages.1.content.0.toolUse.toolUseId",
            "regular expression pattern: [a-zA-Z0-9_.:-]+",
        ),
        body(user(text()), model(use("a.b:0")), user(answer("a.b:0"))),
    ),
    Case(
        "BED-08",
        body(user(text()), model(use(name="functions.read")), user(answer())),
        PATTERN.format(
            "functions.read",
            "messages.1.content.0.toolUse.name",
            "regular expression pattern: [a-zA-Z0-9_-]+",
        ),
        FULL,
    ),
    Case(
        "BED-08",
        body(user(text()), toolConfig={"tools": [{"toolSpec": {**SPEC, "name": ""}}]}),
        PATTERN.format("", "toolConfig.tools.0.toolSpec.name", "regular expression pattern: [a-zA-Z0-9_-]+"),
        OK,
    ),
    Case(
        "BED-08-length",
        body(user(text()), model(use("x" * 65)), user(answer("x" * 65))),
        f"1 validation error detected: Value '{'x' * 65}' at 'messages.1.content.0.toolUse.toolUseId' failed to "
        "satisfy constraint: Member must have length less than or equal to 64",
        body(user(text()), model(use("x" * 64)), user(answer("x" * 64))),
    ),
    Case(
        "BED-09",
        body(user({"video": {"format": "mp4", "source": {}}})),
        "This model doesn't support the video content block that you provided.",
        OK,
    ),
    Case(
        "BED-09",
        body(*ROUND[:2], user(answer("t1", IMAGE))),
        "This model doesn't support the image content block that you provided.",
        FULL,
        NO_IMAGES,
    ),
    Case(
        "BED-10",
        body(*ROUND[:2], user(text(), answer())),
        WRAPPED
        + "messages.2: Did not find 1 `tool_result` block(s) at the beginning of this message. Messages "
        "following `tool_use` blocks must begin with a matching number of `tool_result` blocks.",
        FULL,
    ),
    Case(
        "BED-10",
        body(user(text()), model(thought("forged")), user(text())),
        WRAPPED + "messages.1.content.0: Invalid `signature` in `thinking` block",
        body(*SAID),
    ),
    Case(
        "BED-10",
        body(user(text()), model(text("t"), redacted()), user(text())),
        WRAPPED
        + "messages.1.content.0: If an assistant message contains any thinking blocks, the first block must "
        "be `thinking` or `redacted_thinking`. Found `text`.",
        body(user(text()), model(redacted(), text("t")), user(text())),
        TRUSTING,
    ),
    Case(
        "BED-10",
        body(user(text()), model(text("t"))),
        WRAPPED
        + "This model does not support assistant message prefill. The conversation must end with a user "
        "message.",
        body(*SAID),
    ),
    Case(
        "BED-10",
        body(user(text()), additionalModelRequestFields={"zzz": 1}),
        WRAPPED + "zzz: Extra inputs are not permitted",
        body(user(text()), additionalModelRequestFields={"thinking": {"type": "adaptive"}}),
    ),
    Case("BED-11", {**OK, "model": "m"}, MALFORMED.format(": extraneous key [model] is not permitted"), OK),
    Case(
        "BED-11",
        body({**user(text()), "toolResult": {}}),
        MALFORMED.format("messages/0: extraneous key [toolResult] is not permitted"),
        OK,
    ),
    Case(
        "BED-11",
        body(user({"zzz": {}})),
        MALFORMED.format("messages/0/content/0: extraneous key [zzz] is not permitted"),
        OK,
    ),
    Case(
        "BED-12",
        body(user(text("x" * 200))),
        "Input is too long for requested model.",
        {"messages": [user(text())]},
        SMALL,
    ),
    Case(
        "BED-13",
        body(user(DOCUMENT)),
        "messages.0.content: a document block needs a text block beside it.",
        body(user(DOCUMENT, text())),
    ),
    Case("BED-15", body(user(text(), DOCUMENT, DOCUMENT)), TWICE, body(user(text(), *documents(2)))),
    Case(
        "BED-15",
        body(*ROUND[:2], user(answer("t1", text(), DOCUMENT)), model(text()), user(text(), DOCUMENT)),
        TWICE,
        body(*ROUND[:2], user(answer("t1", text(), DOCUMENT)), model(text()), user(text(), document("e"))),
    ),
    Case(
        "BED-16",
        body(user(text(), *documents(6))),
        "You can't include more than 5 documents in a request.",
        body(user(text(), *documents(5))),
    ),
    Case(
        "BED-17",
        body(user(text(), *documents(5), *[IMAGE] * 14), *ROUND[1:2], user(answer("t1", IMAGE, IMAGE))),
        WRAPPED + "too many images and documents: 16 + 5 > 20",
        body(user(text(), *documents(5), *[IMAGE] * 14), *ROUND[1:2], user(answer("t1", IMAGE))),
    ),
    Case(
        "BED-17",
        body(user(*[IMAGE] * 2)),
        WRAPPED + "too many images and documents: 2 + 0 > 1",
        OK,
        ONE_IMAGE,
    ),
    *(
        Case("BED-18", body(user(text(), document(name))), TITLE, body(user(text(), document(sanitised))))
        for name, sanitised in (("a.pdf", "a pdf"), ("a  b", "a b"), ("", "a"), ("d" * 201, "d" * 200))
    ),
    Case("BED-14", OK, "The provided model identifier is invalid.", OK, OTHER),
    Case("BED-S01", {"toolConfig": {"tools": [TOOL]}}, NULL.format("messages"), OK),
    Case(
        "BED-S01",
        body(*ROUND[:2], user({"toolResult": {"toolUseId": "t1"}})),
        NULL.format("messages.2.content.0.toolResult.content"),
        FULL,
    ),
    Case(
        "BED-S02",
        body(user(text(3))),
        MALFORMED.format("messages/0/content/0/text: expected type: String, found: Integer"),
        OK,
    ),
    Case("BED-S02", b"[]", MALFORMED.format(": expected type: JSONObject, found: JSONArray"), OK),
    Case(
        "BED-S02",
        body(user(text()), model(use(given="{}")), user(answer())),
        MALFORMED.format("messages/1/content/0/toolUse/input: expected type: JSONObject, found: String"),
        FULL,
    ),
    Case(
        "BED-S03",
        body({"role": "tool", "content": []}),
        "1 validation error detected: Value 'tool' at 'messages.0.role' failed to satisfy constraint: Member must "
        "satisfy enum value set: [user, assistant]",
        OK,
    ),
    Case(
        "BED-S04",
        body(user(text()), toolConfig={"tools": []}),
        "1 validation error detected: Value [] at 'toolConfig.tools' failed to satisfy constraint: Member must "
        "have length greater than or equal to 1",
        OK,
    ),
    Case(
        "BED-S05",
        b"{",
        "The request body is not valid JSON: EOF while parsing an object at line 1 column 1",
        OK,
        type="SerializationException",
    ),
    Case(
        "BED-S06",
        body(user({**text(), **IMAGE})),
        MALFORMED.format("messages/0/content/0: 2 subschemas matched instead of one"),
        OK,
    ),
    Case(
        "BED-S07",
        body(user(use())),
        "The toolUse block at messages.0.content.0 cannot be in a message of role user.",
        OK,
    ),
    Case(
        "BED-S08",
        body(user(text()), inferenceConfig={"temperature": 2}),
        "1 validation error detected: Value 2 at 'inferenceConfig.temperature' failed to satisfy constraint: Member "
        "must be between 0 and 1",
        body(user(text()), inferenceConfig={"temperature": 1, "maxTokens": 9}),
    ),
    Case(
        "BED-S09",
        choosing(tool={"name": "other"}),
        "The tool other of toolChoice is not among the tools of toolConfig.",
        choosing(tool={"name": "read"}),
    ),
    Case(
        "BED-S12",
        choosing(tool={"name": "read"}),
        "This model doesn't support the toolConfig.toolChoice.tool field. Remove toolConfig.toolChoice.tool and try "
        "again.",
        choosing(any={}),
        settings=BedrockSettings(profile=BedrockProfile(choices=frozenset({"auto", "any"}))),
    ),
]

IDS = [f"{case.rule}-{number}" for number, case in enumerate(CASES)]


def encoded(value: Json | bytes) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


@pytest.mark.requirement("REQ-915-036")
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_broken_rule_is_refused_in_the_providers_words(case: Case) -> None:
    refusal = validate(encoded(case.refused), "bedrock", settings=case.settings)
    assert refusal is not None
    assert (refusal.rule, refusal.message) == (case.rule, case.message)
    assert (refusal.status, refusal.type) == (400, case.type)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_what_stands_next_to_the_fault_is_accepted(case: Case) -> None:
    settings = replace(case.settings, model="other") if case.settings is OTHER else case.settings
    assert validate(encoded(case.accepted), "bedrock", settings=settings) is None
    assert validate(encoded(case.accepted), "bedrock", mode="hosted", settings=settings) is None


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} | shown(BEDROCK_RULES) == set(BEDROCK_RULES)


def conversation(**more: Any) -> Json:  # Any: any key may be under test
    """A request whose reasoning was signed for its first message."""
    asked = body(user(text()))
    sig = sign_reasoning(asked, [], "hm", replace(DEFAULT, **more), "strict")
    return body(user(text()), model(thought(sig), text("t")), user(text("go")))


def test_reasoning_signed_for_the_same_organisation_and_model_is_accepted() -> None:
    assert validate(encoded(conversation()), "bedrock", settings=DEFAULT) is None


@pytest.mark.parametrize(
    "more", [{"organisation": "other"}, {"secret": b"other"}, {"model": "anthropic.other"}]
)
def test_reasoning_of_another_organisation_host_or_model_is_refused(more: dict[str, Any]) -> None:
    refusal = validate(encoded(conversation(**more)), "bedrock", settings=DEFAULT)
    assert refusal is not None
    assert refusal.rule == "BED-10"
    assert "Invalid `signature`" in refusal.message


def test_reasoning_that_is_bound_to_its_prefix_is_refused_behind_another() -> None:
    bound = BedrockSettings(BedrockProfile(AnthropicProfile(prefix_bound=True)))
    request = conversation()
    assert validate(encoded(request), "bedrock", settings=bound) is None
    changed = {**request, "messages": [user(text("other")), *request["messages"][1:]]}
    refusal = validate(encoded(changed), "bedrock", settings=bound)
    assert refusal is not None
    assert "bound to a different conversation" in refusal.message


def test_a_model_of_another_vendor_may_be_asked_to_go_on_with_its_own_words() -> None:
    nova = BedrockSettings(BedrockProfile(upstream=None))
    assert validate(encoded(body(user(text()), model(text("t")))), "bedrock", settings=nova) is None
