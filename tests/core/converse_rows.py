"""For each rule of Bedrock Converse that the judge can see: a request that breaks it, and the same mended."""

from typing import Any, TypeAlias

from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import BEDROCK
from actors.testing.images import png_base64

Json: TypeAlias = dict[str, Any]  # Any: wire bodies are built by hand, broken ones on purpose
ConverseRow: TypeAlias = tuple[str, Json, Json, Dialect, tuple[str, ...]]

TOOL: Json = {"toolSpec": {"name": "read", "inputSchema": {"json": {"type": "object"}}}}
IMAGE: Json = {"image": {"format": "png", "source": {"bytes": png_base64()}}}


def photo(width: int = 1, height: int = 1) -> Json:
    return {"image": {"format": "png", "source": {"bytes": png_base64(width, height)}}}


DOCUMENT: Json = {"document": {"format": "pdf", "name": "d", "source": {"bytes": "aGk="}}}


def document(name: Any) -> Json:  # Any: whatever the row wants to try
    return {"document": {**DOCUMENT["document"], "name": name}}


def documents(count: int) -> list[Json]:
    return [document(f"d {number}") for number in range(count)]


def text(words: Any = "hi") -> Json:  # Any: whatever the row wants to try
    return {"text": words}


def use(call_id: Any = "t1", name: Any = "read", given: Any = None, **more: Any) -> Json:  # Any: likewise
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": {} if given is None else given, **more}}


def answer(call_id: Any = "t1", *parts: Any, **more: Any) -> Json:  # Any: likewise
    return {"toolResult": {"toolUseId": call_id, "content": list(parts) or [text()], **more}}


def thought(signature: str = "sig") -> Json:
    return {"reasoningContent": {"reasoningText": {"text": "hm", "signature": signature}}}


def redacted(data: Any = "c2Vj") -> Json:  # Any: likewise
    return {"reasoningContent": {"redactedContent": data}}


def user(*blocks: Any) -> Json:  # Any: likewise
    return {"role": "user", "content": list(blocks)}


def model(*blocks: Any) -> Json:  # Any: likewise
    return {"role": "assistant", "content": list(blocks)}


def body(*said: Any, **top: Any) -> Json:  # Any: likewise
    return {"toolConfig": {"tools": [TOOL]}, "messages": list(said), **top}


def choosing(**choice: Any) -> Json:  # Any: likewise
    return body(user(text()), toolConfig={"tools": [TOOL], "toolChoice": choice})


OK = body(user(text()))
ROUND = (user(text()), model(use()), user(answer()))
FULL = body(*ROUND)
PAIR = (user(text()), model(use("t1"), use("t2")))
BOTH = body(*PAIR, user(answer("t1"), answer("t2"), text("go")))
NO_MEDIA = replace(BEDROCK, media=replace(BEDROCK.media, result_kinds=frozenset(), user_kinds=frozenset()))
NO_THINKING = replace(BEDROCK, reasoning=replace(BEDROCK.reasoning, carrier="none"))

_BROKEN: list[tuple[str, Json, Json]] = [
    ("ALL-02", body(user(text()), inferenceConfig={"maxTokens": 0}), body(user(text()), inferenceConfig={})),
    ("ALL-02", {"messages": "u"}, OK),
    ("ALL-02", body(3, user(text())), OK),
    ("ALL-02", body({"role": "system", "content": []}, user(text())), OK),
    ("ALL-02", body({"role": "user", "content": "u"}), OK),
    ("ALL-02", body(user("u")), OK),
    ("ALL-02", body(user({"text": "a", "image": {}})), OK),
    ("ALL-02", body(user(text(3))), OK),
    ("ALL-02", body(user(text()), model(redacted("")), user(text())), OK),
    ("ALL-02", body(*ROUND[:2], user({"toolResult": {"toolUseId": "t1", "content": []}})), FULL),
    ("ALL-02", body(*ROUND[:2], user(answer("t1", {"json": 3}))), body(*ROUND[:2], user(answer("t1", {"json": {}})))),
    ("ALL-02", body(*ROUND[:2], user(answer(status="bad"))), body(*ROUND[:2], user(answer(status="error")))),
    ("ALL-02", body(user(text()), toolConfig={"tools": []}), OK),
    ("ALL-02", body(user(text()), system="be brief"), body(user(text()), system=[text("be brief")])),
    ("ALL-02", body(user({"image": {"format": "png", "source": {}}})), body(user(IMAGE))),
    ("ALL-02", choosing(none={}), choosing(auto={})),
    ("ALL-04", body(*ROUND, *ROUND[1:]), body(*ROUND, model(use("t2")), user(answer("t2")))),
    ("ALL-05", body(user(text()), model(text())), OK),
    ("ALL-06", body(user(text()), model(use(given=[])), user(answer())), FULL),
    ("ALL-08", body(user(text(), thought())), OK),
    ("ALL-10", body(user({"image": {**IMAGE["image"], "format": "bmp"}})), body(user(IMAGE))),
    ("ALL-13", body(user(text()), toolConfig={"tools": [TOOL, TOOL]}), OK),
    ("ALL-14", choosing(tool={"name": "other"}), choosing(tool={"name": "read"})),
    ("BED-01", body(*PAIR, user(answer("t2"))), BOTH),
    ("BED-01", body(*PAIR, user(text("go"))), BOTH),
    ("BED-01", body(*PAIR, user(answer("t1")), model(text()), user(text())), BOTH),
    ("BED-02", body(*ROUND, model(text()), user(answer())), FULL),
    ("BED-02", body(*ROUND[:2], user(answer(), answer())), FULL),
    ("BED-02", body(user(answer())), OK),
    ("BED-03", {"messages": list(ROUND)}, FULL),
    ("BED-04", body(user(text(" \n"))), OK),
    ("BED-04", body(*ROUND[:2], user(answer("t1", text("")))), FULL),
    ("BED-04", body(user(text()), system=[text("")]), OK),
    ("BED-05", body(user(text()), model(), user(text())), body(user(text()), model(text()), user(text()))),
    ("BED-05", body(user()), OK),
    ("BED-06", body(user(text()), user(text())), OK),
    ("BED-06", body(user(text()), model(text()), model(text()), user(text())), OK),
    ("BED-07", body(model(text()), user(text())), OK),
    ("BED-07", body(), OK),
    ("BED-08", body(user(text()), model(use("a b")), user(answer("a b"))), FULL),
    ("BED-08", body(user(text()), model(use("x" * 65)), user(answer("x" * 65))), FULL),
    ("BED-08", body(user(text()), model(use(name="functions.read")), user(answer())), FULL),
    ("BED-08", body(user(text()), toolConfig={"tools": [{"toolSpec": {**TOOL["toolSpec"], "name": "a b"}}]}), OK),
    ("BED-10", body(*ROUND[:2], user(text(), answer())), FULL),
    ("BED-10", body(user(text()), model(text(), thought()), user(text())),
     body(user(text()), model(thought(), text(), redacted()), user(text()))),
    ("BED-11", {**OK, "model": "m"}, OK),
    ("BED-11", body(user({"zzz": {}})), OK),
    ("BED-11", body(user(text()), model(use(zzz=1)), user(answer())), FULL),
    ("BED-11", body({**user(text()), "name": "bob"}), OK),
    ("BED-13", body(user(DOCUMENT)), body(user(text(), DOCUMENT))),
    ("BED-15", body(user(text(), document("a"), document("a"))), body(user(text(), document("a"), document("A")))),
    ("BED-15", body(*ROUND[:2], user(answer("t1", text(), DOCUMENT), text(), DOCUMENT)),
     body(*ROUND[:2], user(answer("t1", text(), DOCUMENT), text(), document("e")))),
    ("BED-16", body(user(text(), *documents(6))), body(user(text(), *documents(5)))),
    ("BED-16", body(user(text(), *documents(5)), model(text()), user(text(), document("late"))),
     body(user(text(), *documents(4)), model(text()), user(text(), document("late")))),
    ("BED-17", body(user(*[IMAGE] * 21)), body(user(*[IMAGE] * 20))),
    ("BED-17", body(user(text(), *documents(5), *[IMAGE] * 16)), body(user(text(), *documents(5), *[IMAGE] * 15))),
    ("BED-17", body(user(*[IMAGE] * 20), *ROUND[1:2], user(answer("t1", IMAGE))),
     body(user(*[IMAGE] * 19), *ROUND[1:2], user(answer("t1", IMAGE)))),
    *(("BED-18", body(user(text(), document(name))), body(user(text(), document(sanitised))))
      for name, sanitised in (("a.pdf", "a pdf"), ("a  b", "a b"), ("", "a"), ("d" * 201, "d" * 200),
                           ("\u00e9", "[(e-1)]"), (3, "3"), ("a\n", "a"))),
]  # fmt: skip


def spec(**more: Any) -> Json:  # Any: likewise
    return body(user(text()), toolConfig={"tools": [{"toolSpec": {**TOOL["toolSpec"], **more}}]})


def held(**more: Any) -> Json:  # Any: likewise
    """An image with other fields."""
    return body(user({"image": {**IMAGE["image"], **more}}))


def reasoned(content: Any) -> Json:  # Any: likewise
    return body(user(text()), model({"reasoningContent": content}, text()), user(text()))


def gave(content: Any) -> Json:  # Any: likewise
    return body(*ROUND[:2], user({"toolResult": {"toolUseId": "t1", "content": content}}))


MARKED = body(user(text(), {"cachePoint": {"type": "default", "ttl": "1h"}}))
_SHAPES: list[tuple[str, Json, Json]] = [
    ("ALL-02", body(user(text(), {"cachePoint": 3})), MARKED),
    ("ALL-02", body(user(text(), {"cachePoint": {"type": "long"}})), MARKED),
    ("ALL-02", body(user(text(), {"cachePoint": {"type": "default", "ttl": "2h"}})), MARKED),
    ("BED-11", body(user(text(), {"cachePoint": {"type": "default", "zzz": 1}})), MARKED),
    ("ALL-02", reasoned({}), reasoned({"reasoningText": {"text": "hm"}})),
    ("ALL-02", reasoned({**thought()["reasoningContent"], "redactedContent": "c2Vj"}),
     reasoned({"redactedContent": "c2Vj"})),
    ("ALL-02", reasoned({"redactedContent": 3}), reasoned({"redactedContent": "c2Vj"})),
    ("ALL-02", reasoned({"reasoningText": {"text": 3}}), reasoned({"reasoningText": {"text": ""}})),
    ("ALL-02", reasoned({"reasoningText": {"text": "hm", "signature": 3}}),
     reasoned({"reasoningText": {"text": "hm"}})),
    ("ALL-02", reasoned({"reasoningText": 3}), reasoned({"reasoningText": {"text": "hm"}})),
    ("BED-11", reasoned({"reasoningText": {"text": "hm", "zzz": 1}}), reasoned({"reasoningText": {"text": "hm"}})),
    ("ALL-02", gave("ok"), gave([text()])),
    ("ALL-02", gave([{**text(), **IMAGE}]), gave([text(), IMAGE])),
    ("ALL-02", gave(["ok"]), gave([text()])),
    ("BED-11", gave([{"zzz": 1}]), gave([text()])),
    ("BED-11", body(*ROUND[:2], user(answer(zzz=1))), FULL),
    ("BED-11", held(zzz=1), held()),
    ("ALL-10", held(format=3), held(format="webp", source={"bytes": "aGk="})),
    ("ALL-10", body(user(text(), {"document": {**DOCUMENT["document"], "format": "png"}})),
     body(user(text(), DOCUMENT))),
    ("ALL-02", held(source={"bytes": ""}), held(source={"bytes": "aGk="})),
    ("ALL-02", held(source={"bytes": 3}), held(source={"s3Location": {"uri": "s3://a/b"}})),
    ("ALL-02", held(source={"bytes": "aGk=", "s3Location": {}}), held()),
    ("ALL-02", held(source=3), held()),
    ("ALL-02", body(user(text()), inferenceConfig=3), body(user(text()), inferenceConfig={"maxTokens": 1})),
    ("ALL-02", body(user(text()), inferenceConfig={"maxTokens": True}), OK),
    ("BED-11", body(user(text()), inferenceConfig={"max_tokens": 9}), OK),
    ("ALL-02", body(user(text()), system=["s"]), body(user(text()), system=[{"cachePoint": {"type": "default"}}])),
    ("BED-11", body(user(text()), system=[{**text(), "zzz": 1}]), OK),
    ("ALL-02", body(user(text()), system=[text(3)]), OK),
    ("BED-11", body(user(text()), toolConfig={"tools": [TOOL], "zzz": 1}), OK),
    ("BED-11", body(user(text()), toolConfig={"tools": [TOOL, {"zzz": {}}]}), OK),
    ("ALL-02", body(user(text()), toolConfig={"tools": [TOOL, 3]}),
     body(user(text()), toolConfig={"tools": [TOOL, {"systemTool": {"name": "n"}},
     {"cachePoint": {"type": "default"}}]})),
    ("BED-11", spec(zzz=1), spec(strict=True)),
    ("BED-08", spec(name=3), spec()),
    ("ALL-02", spec(inputSchema={"type": "object"}), spec()),
    ("ALL-02", spec(inputSchema={"json": {"type": "object"}, "zzz": 1}), spec()),
    ("ALL-02", spec(inputSchema={"json": {"type": "string"}}), spec()),
    ("ALL-02", spec(inputSchema={"json": {"type": "object", "oneOf": []}}), spec()),
    ("ALL-02", spec(description=""), spec(description="d")),
    ("ALL-02", spec(description=3), spec(description="d")),
    ("ALL-02", choosing(auto={}, any={}), choosing(any={})),
    ("ALL-02", body(user(text()), toolConfig={"tools": [TOOL], "toolChoice": "auto"}), choosing(auto={})),
    ("ALL-14", choosing(tool=3), choosing(tool={"name": "read"})),
    ("ALL-14", choosing(tool={"name": {}}), choosing(tool={"name": "read"})),
]  # fmt: skip
_PLACES: list[tuple[str, Json, Json]] = [
    ("ALL-08", body(user(text()), model(answer()), user(text())), OK),
    ("ALL-08", body(user(text()), model(IMAGE), user(text())), OK),
    ("ALL-08", body(user(text(), use())), OK),
    ("BED-06", body(*PAIR, user(answer("t1")), user(answer("t2"))), BOTH),
    ("BED-08", body(user(text()), model(use(3)), user(text())), FULL),
    ("BED-08", body(user(text()), model(use(name=3)), user(answer())), FULL),
    ("BED-10", body(user(photo(8001, 9))), body(user(photo(8000, 9)))),
    ("BED-10", body(user({"image": {**photo()["image"], "format": "jpeg"}})), body(user(photo()))),
    ("BED-10", body(*ROUND[:2], user(IMAGE, answer())), body(*ROUND[:2], user(answer(), IMAGE))),
    ("BED-10", body(*ROUND[:2], user(DOCUMENT, answer(), text())), body(*ROUND[:2], user(answer(), DOCUMENT, text()))),
    ("BED-10", body(user(text()), model(thought(), text()), user(text()), model(text(), thought()), user(text())),
     body(user(text()), model(thought(), text()), user(text()), model(thought(), text()), user(text()))),
    ("BED-13", body(user(DOCUMENT), model(text()), user(text())), body(user(DOCUMENT, text()), *ROUND[1:])),
    ("BED-13", body(user(text()), model(text()), user(DOCUMENT)),
     body(user(text()), model(text()), user(text(), DOCUMENT))),
    ("BED-13", body(user(DOCUMENT, IMAGE)), body(user(text(), DOCUMENT, IMAGE))),
    ("BED-13", body(*ROUND[:2], user(answer(), DOCUMENT)), body(*ROUND[:2], user(answer(), DOCUMENT, text()))),
]  # fmt: skip
PER_MESSAGE = replace(BEDROCK, ids=replace(BEDROCK.ids, unique_scope="message"))
ANYWHERE = replace(BEDROCK, reasoning=replace(BEDROCK.reasoning, first=False))

ROWS: list[ConverseRow] = [
    *((rule, broken, sanitised, BEDROCK, ()) for rule, broken, sanitised in (*_BROKEN, *_SHAPES, *_PLACES)),
    ("ALL-02", body(*ROUND[:2], user(answer(3))), FULL, BEDROCK, ("BED-01",)),
    ("ALL-02", body(user({"image": 3})), body(user(IMAGE)), BEDROCK, ("ALL-10",)),
    ("ALL-02", body(user(text()), toolConfig=3), OK, BEDROCK, ()),
    ("ALL-02", body(user(text()), toolConfig={"tools": [TOOL, {"toolSpec": 3}]}), OK, BEDROCK, ("BED-08",)),
    ("BED-11", held(source={"bytes": "aGk=", "zzz": 1}), held(), BEDROCK, ("ALL-02",)),
    ("BED-11", reasoned({"zzz": 1}), reasoned({"redactedContent": "c2Vj"}), BEDROCK, ()),
    ("BED-02", {"messages": [user(answer())]}, OK, BEDROCK, ("BED-03",)),
    ("BED-03", {"messages": [*ROUND[:2]]}, FULL, BEDROCK, ("BED-01", "ALL-05")),
    (
        "ALL-04",
        body(user(text()), model(use(), use()), user(answer())),
        body(*ROUND, *ROUND[1:]),
        PER_MESSAGE,
        (),
    ),
    ("BED-05", body(user(text()), model()), OK, BEDROCK, ("ALL-05",)),
    (
        "BED-10",
        body(user(text()), model(text(), thought()), user(text())),
        body(user(text()), model(thought(), text()), user(text())),
        BEDROCK,
        (),
    ),
    (
        "ALL-08",
        body(user(thought())),
        body(user(text()), model(text(), thought()), user(text())),
        ANYWHERE,
        (),
    ),
    ("BED-09", body(user(text(), IMAGE)), OK, NO_MEDIA, ()),
    ("BED-09", body(*ROUND[:2], user(answer("t1", IMAGE))), FULL, NO_MEDIA, ()),
    ("ALL-08", body(user(text()), model(thought()), user(text())), OK, NO_THINKING, ()),
]
