"""Rules of AWS Bedrock Converse: a request that breaks each rule, and the nearest valid request."""

from typing import Any

from actors.core.data.record import replace
from actors.core.dialects.profiles import BEDROCK
from actors.strict.rules import BedrockProfile, BedrockSettings
from actors.testing.images import png_base64
from tests.rules.row import NOT_ASKED, UNSEEN, Answer, Json, Row, rows


def photo(width: int = 1, height: int = 1) -> Json:
    return {"image": {"format": "png", "source": {"bytes": png_base64(width, height)}}}


def document(name: Any) -> Json:  # Any: any value under test
    return {"document": {**DOCUMENT["document"], "name": name}}


def documents(count: int) -> list[Json]:
    return [document(f"d {number}") for number in range(count)]


def text(words: Any = "hi") -> Json:  # Any: any value under test
    return {"text": words}


def use(call_id: Any = "t1", name: Any = "read", given: Any = None, **more: Any) -> Json:  # Any: likewise
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": {} if given is None else given, **more}}


def answer(call_id: Any = "t1", *parts: Any, **more: Any) -> Json:  # Any: likewise
    return {"toolResult": {"toolUseId": call_id, "content": list(parts) or [text()], **more}}


def reasoning(signature: str = "sig") -> Json:
    return {"reasoningContent": {"reasoningText": {"text": "hm", "signature": signature}}}


def redacted_reasoning(data: Any = "c2Vj") -> Json:  # Any: likewise
    return {"reasoningContent": {"redactedContent": data}}


def user(*blocks: Any) -> Json:  # Any: likewise
    return {"role": "user", "content": list(blocks)}


def model(*blocks: Any) -> Json:  # Any: likewise
    return {"role": "assistant", "content": list(blocks)}


def body(*said: Any, **top: Any) -> Json:  # Any: likewise
    return {"toolConfig": {"tools": [TOOL]}, "messages": list(said), **top}


def choosing(**choice: Any) -> Json:  # Any: likewise
    return body(user(text()), toolConfig={"tools": [TOOL], "toolChoice": choice})


def spec(**more: Any) -> Json:  # Any: likewise
    return body(user(text()), toolConfig={"tools": [{"toolSpec": {**TOOL["toolSpec"], **more}}]})


def with_image(**more: Any) -> Json:  # Any: likewise
    """An image with other fields."""
    return body(user({"image": {**IMAGE["image"], **more}}))


def with_reasoning(content: Any) -> Json:  # Any: likewise
    return body(user(text()), model({"reasoningContent": content}, text()), user(text()))


def with_result(content: Any) -> Json:  # Any: likewise
    return body(*ROUND[:2], user({"toolResult": {"toolUseId": "t1", "content": content}}))


TOOL = {"toolSpec": {"name": "read", "inputSchema": {"json": {"type": "object"}}}}
IMAGE = {"image": {"format": "png", "source": {"bytes": png_base64()}}}
DOCUMENT = {"document": {"format": "pdf", "name": "d", "source": {"bytes": "aGk="}}}
OK = body(user(text()))
ROUND = (user(text()), model(use()), user(answer()))
FULL = body(*ROUND)
PAIR = (user(text()), model(use("t1"), use("t2")))
BOTH = body(*PAIR, user(answer("t1"), answer("t2"), text("go")))
NO_MEDIA = replace(BEDROCK, media=replace(BEDROCK.media, result_kinds=frozenset(), user_kinds=frozenset()))
NO_THINKING = replace(BEDROCK, reasoning=replace(BEDROCK.reasoning, carrier="none"))
MARKED = body(user(text(), {"cachePoint": {"type": "default", "ttl": "1h"}}))
WRAPPED = "The model returned the following errors: "
NULL = "1 validation error detected: Value null at '{}' failed to satisfy constraint: Member must not be null"
MALFORMED = "Malformed input request: #/{}, please reformat your input and try again."
NO_IMAGES = BedrockSettings(BedrockProfile(media=frozenset()))
SMALL = BedrockSettings(BedrockProfile(context_tokens=20))
ONE_IMAGE = BedrockSettings(BedrockProfile(attachments=1))
OTHER = BedrockSettings(models={"other": BedrockProfile()})


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
REGULAR = "regular expression pattern: "
PATTERN = (
    "1 validation error detected: Value '{}' at '{}' failed to satisfy constraint: Member must satisfy {}"
)
SPEC = TOOL["toolSpec"]
SAID = (user(text()), model(text("t")), user(text("go")))
PER_MESSAGE = replace(BEDROCK, ids=replace(BEDROCK.ids, unique_scope="message"))
ANYWHERE = replace(BEDROCK, reasoning=replace(BEDROCK.reasoning, must_be_first=False))


ROWS = rows(
    "bedrock",
    Row("ALL-02", body(user(text()), inferenceConfig={"maxTokens": 0}), body(user(text()), inferenceConfig={}),
        server="BED-S04"),
    Row("ALL-02", {"messages": "u"}, OK, server="BED-S02"),
    Row("ALL-02", body(3, user(text())), OK, server="BED-S02"),
    Row("ALL-02", body({"role": "system", "content": []}, user(text())), OK, server="BED-S03"),
    Row("ALL-02", body({"role": "user", "content": "u"}), OK, server="BED-S02"),
    Row("ALL-02", body(user("u")), OK, server="BED-S02"),
    Row("ALL-02", body(user({"text": "a", "image": {}})), OK, server="BED-S06"),
    Row("ALL-02", body(user(text()), model(redacted_reasoning("")), user(text())), OK, server="BED-10"),
    Row("ALL-02", body(*ROUND[:2], user({"toolResult": {"toolUseId": "t1", "content": []}})), FULL, server="BED-10"),
    Row("ALL-02", body(*ROUND[:2], user(answer("t1", {"json": 3}))),
        body(*ROUND[:2], user(answer("t1", {"json": {}}))), server="BED-S02"),
    Row("ALL-02", body(*ROUND[:2], user(answer(status="bad"))), body(*ROUND[:2], user(answer(status="error"))),
        server="BED-S03"),
    Row("ALL-02", body(user(text()), system="be brief"), body(user(text()), system=[text("be brief")]),
        server="BED-S02"),
    Row("ALL-02", body(user({"image": {"format": "png", "source": {}}})), body(user(IMAGE)), server="BED-S06"),
    Row("ALL-02", choosing(none={}), choosing(auto={}), server="BED-11"),
    Row("ALL-02", body(user(text(), {"cachePoint": 3})), MARKED, server="BED-S02"),
    Row("ALL-02", body(user(text(), {"cachePoint": {"type": "long"}})), MARKED, server="BED-S03"),
    Row("ALL-02", body(user(text(), {"cachePoint": {"type": "default", "ttl": "2h"}})), MARKED, server="BED-S03"),
    Row("ALL-02", with_reasoning({}), with_reasoning({"reasoningText": {"text": "hm"}}), server=NOT_ASKED),
    Row("ALL-02", with_reasoning({**reasoning()["reasoningContent"], "redactedContent": "c2Vj"}),
        with_reasoning({"redactedContent": "c2Vj"}), server="BED-S06"),
    Row("ALL-02", with_reasoning({"redactedContent": 3}), with_reasoning({"redactedContent": "c2Vj"}),
        server="BED-S02"),
    Row("ALL-02", with_reasoning({"reasoningText": {"text": 3}}), with_reasoning({"reasoningText": {"text": ""}}),
        server=NOT_ASKED),
    Row("ALL-02", with_reasoning({"reasoningText": {"text": "hm", "signature": 3}}),
        with_reasoning({"reasoningText": {"text": "hm"}}), server=NOT_ASKED),
    Row("ALL-02", with_reasoning({"reasoningText": 3}), with_reasoning({"reasoningText": {"text": "hm"}}),
        server=NOT_ASKED),
    Row("ALL-02", with_result("ok"), with_result([text()]), server="BED-S02"),
    Row("ALL-02", with_result([{**text(), **IMAGE}]), with_result([text(), IMAGE]), server="BED-S06"),
    Row("ALL-02", with_result(["ok"]), with_result([text()]), server="BED-S02"),
    Row("ALL-02", with_image(source={"bytes": ""}), with_image(source={"bytes": "aGk="}), server="BED-S04"),
    Row("ALL-02", with_image(source={"bytes": 3}), with_image(source={"s3Location": {"uri": "s3://a/b"}}),
        server="BED-S02"),
    Row("ALL-02", with_image(source={"bytes": "aGk=", "s3Location": {}}), with_image(), server="BED-S06"),
    Row("ALL-02", with_image(source=3), with_image(), server="BED-S02"),
    Row("ALL-02", body(user(text()), inferenceConfig=3), body(user(text()), inferenceConfig={"maxTokens": 1}),
        server="BED-S02"),
    Row("ALL-02", body(user(text()), inferenceConfig={"maxTokens": True}), OK, server="BED-S02"),
    Row("ALL-02", body(user(text()), system=["s"]), body(user(text()), system=[{"cachePoint": {"type": "default"}}]),
        server="BED-S02"),
    Row("ALL-02", body(user(text()), system=[text(3)]), OK, server="BED-S02"),
    Row("ALL-02", body(user(text()), toolConfig={"tools": [TOOL, 3]}), body(user(text()), toolConfig={"tools": [TOOL,
        {"systemTool": {"name": "n"}}, {"cachePoint": {"type": "default"}}]}), server="BED-S02"),
    Row("ALL-02", spec(inputSchema={"type": "object"}), spec(), server="BED-11"),
    Row("ALL-02", spec(inputSchema={"json": {"type": "object"}, "zzz": 1}), spec(), server="BED-11"),
    Row("ALL-02", spec(inputSchema={"json": {"type": "string"}}), spec(), server="BED-10"),
    Row("ALL-02", spec(inputSchema={"json": {"type": "object", "oneOf": []}}), spec(), server="BED-10"),
    Row("ALL-02", spec(description=""), spec(description="d"), server="BED-S04"),
    Row("ALL-02", spec(description=3), spec(description="d"), server="BED-S02"),
    Row("ALL-02", choosing(auto={}, any={}), choosing(any={}), server="BED-S06"),
    Row("ALL-02", body(user(text()), toolConfig={"tools": [TOOL], "toolChoice": "auto"}), choosing(auto={}),
        server="BED-S02"),
    Row("ALL-02", body(*ROUND[:2], user(answer(3))), FULL, judge="ALL-02 BED-01", server="BED-S02"),
    Row("ALL-02", body(user({"image": 3})), body(user(IMAGE)), judge="ALL-02 ALL-10", server="BED-S02"),
    Row("ALL-02", body(user(text()), toolConfig=3), OK, server="BED-S02"),
    Row("ALL-02", body(user(text()), toolConfig={"tools": [TOOL, {"toolSpec": 3}]}), OK, judge="ALL-02 BED-08",
        server="BED-S02"),
    Row("ALL-04", body(*ROUND, *ROUND[1:]), body(*ROUND, model(use("t2")), user(answer("t2"))), server="BED-10"),
    Row("ALL-04", body(user(text()), model(use(), use()), user(answer())), body(*ROUND, *ROUND[1:]), server=NOT_ASKED,
        profile=PER_MESSAGE),
    Row("ALL-06", body(user(text()), model(use(given=[])), user(answer())), FULL, server="BED-S02"),
    Row("ALL-08", body(user(text(), reasoning())), OK, server="BED-S07"),
    Row("ALL-08", body(user(text()), model(answer()), user(text())), OK, server="BED-S07"),
    Row("ALL-08", body(user(text()), model(IMAGE), user(text())), OK, server="BED-S07"),
    Row("ALL-08", body(user(text(), use())), OK, server="BED-S07"),
    Row("ALL-08", body(user(reasoning())), body(user(text()), model(text(), reasoning()), user(text())),
        server=NOT_ASKED, profile=ANYWHERE),
    Row("ALL-08", body(user(text()), model(reasoning()), user(text())), OK, server=NOT_ASKED, profile=NO_THINKING),
    Row("ALL-10", body(user({"image": {**IMAGE["image"], "format": "bmp"}})), body(user(IMAGE)), server="BED-S03"),
    Row("ALL-10", with_image(format=3), with_image(format="webp", source={"bytes": "aGk="}), server="BED-S03"),
    Row("ALL-10", body(user(text(), {"document": {**DOCUMENT["document"], "format": "png"}})),
        body(user(text(), DOCUMENT)), server="BED-S03"),
    Row("ALL-13", body(user(text()), toolConfig={"tools": [TOOL, TOOL]}), OK, server="BED-10"),
    Row("ALL-14", choosing(tool=3), choosing(tool={"name": "read"}), server="BED-S02"),
    Row("ALL-14", choosing(tool={"name": {}}), choosing(tool={"name": "read"}), server="BED-S09"),
    Row("BED-01", body(*PAIR, user(answer("t2"))), BOTH, EXPECTED + "t1"),
    Row("BED-01", body(*PAIR, user(text("go"))), BOTH, EXPECTED + "t1, t2"),
    Row("BED-01", body(*PAIR), BOTH, EXPECTED + "t1, t2", judge="BED-01 ALL-05"),
    Row("BED-01", body(*PAIR, user(answer("t1")), user(answer("t2"))), BOTH, EXPECTED + "t2", judge="BED-06"),
    Row("BED-01", body(*PAIR, user(answer("t1")), model(text()), user(text())), BOTH),
    Row("BED-02", body(user(answer())), OK, EXCEEDS.format(0)),
    Row("BED-02", body(*ROUND[:2], user(answer(), answer())), FULL, EXCEEDS.format(2)),
    Row("BED-02", body(*ROUND, model(text()), user(answer())), FULL, EXCEEDS.format(4)),
    Row("BED-02", {"messages": [user(answer())]}, OK, judge="BED-02 BED-03"),
    Row("BED-03", {"messages": list(ROUND)}, FULL,
        "The toolConfig field must be defined when using toolUse and toolResult content blocks."),
    Row("BED-03", {"messages": [*ROUND[:2]]}, FULL, judge="BED-03 ALL-05 BED-01", server="BED-01"),
    Row("BED-04", body(user(text(" \n"))), OK, BLANK.format("messages.0.content.0")),
    Row("BED-04", body(*ROUND[:2], user(answer("t1", text("")))), FULL,
        BLANK.format("messages.2.content.0.toolResult.content.0")),
    Row("BED-04", body(user(text()), system=[text("")]), OK, BLANK.format("system.0")),
    Row("BED-05", body(user(text()), model(), user(text())), body(*SAID),
        "The content field in the Message object at messages.1 is empty. Add a ContentBlock object to the "
        "content field and try again."),
    Row("BED-05", body(user()), OK),
    Row("BED-05", body(user(text()), model()), OK, judge="BED-05 ALL-05"),
    Row("BED-06", body(user(text()), user(text())), OK, ALTERNATE),
    Row("BED-06", body(user(text()), model(text()), model(text()), user(text())), body(*SAID), ALTERNATE),
    Row("BED-07", body(model(text()), user(text())), OK, START),
    Row("BED-07", body(), OK, START),
    Row("BED-08", body(user(text()), model(use("a b")), user(answer("a b"))),
        body(user(text()), model(use("a.b:0")), user(answer("a.b:0"))),
        PATTERN.format("a b", "messages.1.content.0.toolUse.toolUseId", f"{REGULAR}[a-zA-Z0-9_.:-]+")),
    Row("BED-08", body(user(text()), model(use(name="functions.read")), user(answer())), FULL,
        PATTERN.format("functions.read", "messages.1.content.0.toolUse.name", f"{REGULAR}[a-zA-Z0-9_-]+")),
    Row("BED-08", body(user(text()), toolConfig={"tools": [{"toolSpec": {**SPEC, "name": ""}}]}), OK,
        PATTERN.format("", "toolConfig.tools.0.toolSpec.name", f"{REGULAR}[a-zA-Z0-9_-]+")),
    Row("BED-08", body(user(text()), model(use("x" * 65)), user(answer("x" * 65))), FULL, server="BED-08-length"),
    Row("BED-08", body(user(text()), toolConfig={"tools": [{"toolSpec": {**TOOL["toolSpec"], "name": "a b"}}]}), OK),
    Row("BED-08", spec(name=3), spec(), server="BED-S02"),
    Row("BED-08", body(user(text()), model(use(3)), user(text())), FULL, server="BED-S02"),
    Row("BED-08", body(user(text()), model(use(name=3)), user(answer())), FULL, server="BED-S02"),
    Row("BED-08-length", body(user(text()), model(use("x" * 65)), user(answer("x" * 65))),
        body(user(text()), model(use("x" * 64)), user(answer("x" * 64))),
        f"1 validation error detected: Value '{'x' * 65}' at 'messages.1.content.0.toolUse.toolUseId' failed "
        f"to satisfy constraint: Member must have length less than or equal to 64", judge="BED-08",
        read="transcript BED-08"),
    Row("BED-09", body(user({"video": {"format": "mp4", "source": {}}})), OK,
        "This model doesn't support the video content block that you provided.", judge="BED-11"),
    Row("BED-09", body(*ROUND[:2], user(answer("t1", IMAGE))), FULL,
        "This model doesn't support the image content block that you provided.", judge=UNSEEN, read="media BED-09",
        settings=NO_IMAGES),
    Row("BED-09", body(user(text(), IMAGE)), OK, server=NOT_ASKED, profile=NO_MEDIA),
    Row("BED-09", body(*ROUND[:2], user(answer("t1", IMAGE))), FULL, server=NOT_ASKED, profile=NO_MEDIA),
    Row("BED-10", body(*ROUND[:2], user(text(), answer())), FULL,
        WRAPPED + "messages.2: Did not find 1 `tool_result` block(s) at the beginning of this message. Messages "
        "following `tool_use` blocks must begin with a matching number of `tool_result` blocks.",
        read="transcript ANT-03"),
    Row("BED-10", body(user(text()), model(reasoning("forged")), user(text())), body(*SAID),
        WRAPPED + "messages.1.content.0: Invalid `signature` in `thinking` block", judge=UNSEEN,
        read="transcript ANT-42", settings=BedrockSettings()),
    Row("BED-10", body(user(text()), model(text("t"), redacted_reasoning()), user(text())),
        body(user(text()), model(redacted_reasoning(), text("t")), user(text())),
        WRAPPED + "messages.1.content.0: If an assistant message contains any thinking blocks, the first block must be "
        "`thinking` or `redacted_thinking`. Found `text`.", read="transcript ANT-39"),
    Row("BED-10", body(user(text()), model(text("t"))), body(*SAID),
        WRAPPED + "This model does not support assistant message prefill. The conversation must end with a user "
        "message.", judge="ALL-05", read="transcript ANT-27"),
    Row("BED-10", body(user(text()), additionalModelRequestFields={"zzz": 1}),
        body(user(text()), additionalModelRequestFields={"thinking": {"type": "adaptive"}}),
        WRAPPED + "zzz: Extra inputs are not permitted", judge=UNSEEN, read="transcript ANT-28"),
    Row("BED-10", body(user(text()), model(text(), reasoning()), user(text())),
        body(user(text()), model(reasoning(), text(), redacted_reasoning()), user(text())), server=NOT_ASKED),
    Row("BED-10", body(user(photo(8001, 9))), body(user(photo(8000, 9)))),
    Row("BED-10", body(user({"image": {**photo()["image"], "format": "jpeg"}})), body(user(photo()))),
    Row("BED-10", body(*ROUND[:2], user(IMAGE, answer())), body(*ROUND[:2], user(answer(), IMAGE))),
    Row("BED-10", body(*ROUND[:2], user(DOCUMENT, answer(), text())),
        body(*ROUND[:2], user(answer(), DOCUMENT, text()))),
    Row("BED-10",
        body(user(text()), model(reasoning(), text()), user(text()), model(text(), reasoning()), user(text())),
        body(user(text()), model(reasoning(), text()), user(text()), model(reasoning(), text()), user(text()))),
    Row("BED-10", body(user(text()), model(text(), reasoning()), user(text())),
        body(user(text()), model(reasoning(), text()), user(text()))),
    Row("BED-11", {**OK, "model": "m"}, OK, MALFORMED.format(": extraneous key [model] is not permitted")),
    Row("BED-11", body({**user(text()), "toolResult": {}}), OK,
        MALFORMED.format("messages/0: extraneous key [toolResult] is not permitted")),
    Row("BED-11", body(user({"zzz": {}})), OK,
        MALFORMED.format("messages/0/content/0: extraneous key [zzz] is not permitted")),
    Row("BED-11", body(user(text()), model(use(zzz=1)), user(answer())), FULL),
    Row("BED-11", body({**user(text()), "name": "bob"}), OK),
    Row("BED-11", body(user(text(), {"cachePoint": {"type": "default", "zzz": 1}})), MARKED),
    Row("BED-11", with_reasoning({"reasoningText": {"text": "hm", "zzz": 1}}),
        with_reasoning({"reasoningText": {"text": "hm"}}), server=NOT_ASKED),
    Row("BED-11", with_result([{"zzz": 1}]), with_result([text()])),
    Row("BED-11", body(*ROUND[:2], user(answer(zzz=1))), FULL),
    Row("BED-11", with_image(zzz=1), with_image()),
    Row("BED-11", body(user(text()), inferenceConfig={"max_tokens": 9}), OK),
    Row("BED-11", body(user(text()), system=[{**text(), "zzz": 1}]), OK),
    Row("BED-11", body(user(text()), toolConfig={"tools": [TOOL], "zzz": 1}), OK),
    Row("BED-11", body(user(text()), toolConfig={"tools": [TOOL, {"zzz": {}}]}), OK),
    Row("BED-11", spec(zzz=1), spec(strict=True)),
    Row("BED-11", with_image(source={"bytes": "aGk=", "zzz": 1}), with_image(), judge="BED-11 ALL-02"),
    Row("BED-11", with_reasoning({"zzz": 1}), with_reasoning({"redactedContent": "c2Vj"})),
    Row("BED-12", body(user(text("x" * 200))), {"messages": [user(text())]}, "Input is too long for requested model.",
        judge=UNSEEN, settings=SMALL),
    Row("BED-13", body(user(DOCUMENT)), body(user(DOCUMENT, text())),
        "messages.0.content: a document block needs a text block beside it.", read="transcript"),
    Row("BED-13", body(user(DOCUMENT), model(text()), user(text())), body(user(DOCUMENT, text()), *ROUND[1:])),
    Row("BED-13", body(user(text()), model(text()), user(DOCUMENT)),
        body(user(text()), model(text()), user(text(), DOCUMENT))),
    Row("BED-13", body(user(DOCUMENT, IMAGE)), body(user(text(), DOCUMENT, IMAGE))),
    Row("BED-13", body(*ROUND[:2], user(answer(), DOCUMENT)), body(*ROUND[:2], user(answer(), DOCUMENT, text()))),
    Row("BED-15", body(user(text(), DOCUMENT, DOCUMENT)), body(user(text(), *documents(2))), TWICE),
    Row("BED-15", body(*ROUND[:2], user(answer("t1", text(), DOCUMENT)), model(text()), user(text(), DOCUMENT)),
        body(*ROUND[:2], user(answer("t1", text(), DOCUMENT)), model(text()), user(text(), document("e"))), TWICE),
    Row("BED-15", body(user(text(), document("a"), document("a"))), body(user(text(), document("a"), document("A")))),
    Row("BED-15", body(*ROUND[:2], user(answer("t1", text(), DOCUMENT), text(), DOCUMENT)),
        body(*ROUND[:2], user(answer("t1", text(), DOCUMENT), text(), document("e")))),
    Row("BED-16", body(user(text(), *documents(6))), body(user(text(), *documents(5))),
        "You can't include more than 5 documents in a request.", read="media BED-16"),
    Row("BED-16", body(user(text(), *documents(6))), body(user(text(), *documents(5)))),
    Row("BED-16", body(user(text(), *documents(5)), model(text()), user(text(), document("late"))),
        body(user(text(), *documents(4)), model(text()), user(text(), document("late")))),
    Row("BED-17", body(user(text(), *documents(5), *[IMAGE] * 14), *ROUND[1:2], user(answer("t1", IMAGE, IMAGE))),
        body(user(text(), *documents(5), *[IMAGE] * 14), *ROUND[1:2], user(answer("t1", IMAGE))),
        WRAPPED + "too many images and documents: 16 + 5 > 20", read="media BED-17"),
    Row("BED-17", body(user(*[IMAGE] * 2)), OK, WRAPPED + "too many images and documents: 2 + 0 > 1", judge=UNSEEN,
        read="media BED-17", settings=ONE_IMAGE),
    Row("BED-17", body(user(*[IMAGE] * 21)), body(user(*[IMAGE] * 20))),
    Row("BED-17", body(user(text(), *documents(5), *[IMAGE] * 16)), body(user(text(), *documents(5), *[IMAGE] * 15))),
    Row("BED-17", body(user(*[IMAGE] * 20), *ROUND[1:2], user(answer("t1", IMAGE))),
        body(user(*[IMAGE] * 19), *ROUND[1:2], user(answer("t1", IMAGE)))),
    Row("BED-18", body(user(text(), document("a.pdf"))), body(user(text(), document("a pdf"))), TITLE),
    Row("BED-18", body(user(text(), document("a  b"))), body(user(text(), document("a b"))), TITLE),
    Row("BED-18", body(user(text(), document(""))), body(user(text(), document("a"))), TITLE),
    Row("BED-18", body(user(text(), document("d" * 201))), body(user(text(), document("d" * 200))), TITLE),
    Row("BED-18", body(user(text(), document("é"))), body(user(text(), document("[(e-1)]")))),
    Row("BED-18", body(user(text(), document(3))), body(user(text(), document("3"))), server="BED-S02"),
    Row("BED-18", body(user(text(), document("a\n"))), body(user(text(), document("a")))),
    Row("BED-S01", {"toolConfig": {"tools": [TOOL]}}, OK, NULL.format("messages"), judge="ALL-02"),
    Row("BED-S01", body(*ROUND[:2], user({"toolResult": {"toolUseId": "t1"}})), FULL,
        NULL.format("messages.2.content.0.toolResult.content"), judge="ALL-02"),
    Row("BED-S02", body(user(text(3))), OK,
        MALFORMED.format("messages/0/content/0/text: expected type: String, found: Integer"), judge="ALL-02"),
    Row("BED-S02", b"[]", OK, MALFORMED.format(": expected type: JSONObject, found: JSONArray"), judge="ALL-01"),
    Row("BED-S02", body(user(text()), model(use(given="{}")), user(answer())), FULL,
        MALFORMED.format("messages/1/content/0/toolUse/input: expected type: JSONObject, found: String"),
        judge="ALL-06"),
    Row("BED-S03", body({"role": "tool", "content": []}), OK,
        "1 validation error detected: Value 'tool' at 'messages.0.role' failed to satisfy constraint: Member "
        "must satisfy enum value set: [user, assistant]", judge="ALL-02 BED-07", read="transcript BED-08"),
    Row("BED-S04", body(user(text()), toolConfig={"tools": []}), OK,
        "1 validation error detected: Value [] at 'toolConfig.tools' failed to satisfy constraint: Member "
        "must have length greater than or equal to 1", judge="ALL-02", read="parameter BED-08"),
    Row("BED-S05", b"{", OK, "The request body is not valid JSON: EOF while parsing an object at line 1 column 1",
        judge="ALL-01", answer=Answer(type="SerializationException")),
    Row("BED-S06", body(user({**text(), **IMAGE})), OK,
        MALFORMED.format("messages/0/content/0: 2 subschemas matched instead of one"), judge="ALL-02"),
    Row("BED-S07", body(user(use())), OK,
        "The toolUse block at messages.0.content.0 cannot be in a message of role user.", judge="ALL-08"),
    Row("BED-S08", body(user(text()), inferenceConfig={"temperature": 2}),
        body(user(text()), inferenceConfig={"temperature": 1, "maxTokens": 9}),
        "1 validation error detected: Value 2 at 'inferenceConfig.temperature' failed to satisfy constraint: "
        "Member must be between 0 and 1", judge=UNSEEN, read="parameter"),
    Row("BED-S09", choosing(tool={"name": "other"}), choosing(tool={"name": "read"}),
        "The tool other of toolChoice is not among the tools of toolConfig.", judge="ALL-14", read="parameter"),
    Row("BED-S12", choosing(tool={"name": "read"}), choosing(any={}),
        "This model doesn't support the toolConfig.toolChoice.tool field. Remove toolConfig.toolChoice.tool "
        "and try again.", judge=UNSEEN, read="parameter",
        settings=BedrockSettings(profile=BedrockProfile(choices=frozenset({"auto", "any"})))),
    answer=Answer(type="ValidationException"),
)  # fmt: skip
