"""For each rule of Bedrock Converse that the judge can see: a request that breaks it, and the same mended."""

from typing import Any, TypeAlias

from actors.core.dialect import Dialect
from actors.core.profiles import BEDROCK

Json: TypeAlias = dict[str, Any]  # Any: wire bodies are built by hand, broken ones on purpose
ConverseRow: TypeAlias = tuple[str, Json, Json, Dialect, tuple[str, ...]]

TOOL: Json = {"toolSpec": {"name": "read", "inputSchema": {"json": {"type": "object"}}}}
IMAGE: Json = {"image": {"format": "png", "source": {"bytes": "aGk="}}}
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
NO_MEDIA = BEDROCK.derive(result_media=frozenset(), user_media=frozenset())
NO_THINKING = BEDROCK.derive(thinking_carrier="none")

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
    *(("BED-18", body(user(text(), document(name))), body(user(text(), document(mended))))
      for name, mended in (("a.pdf", "a pdf"), ("a  b", "a b"), ("", "a"), ("d" * 201, "d" * 200),
                           ("\u00e9", "[(e-1)]"), (3, "3"), ("a\n", "a"))),
]  # fmt: skip

ROWS: list[ConverseRow] = [
    *((rule, broken, mended, BEDROCK, ()) for rule, broken, mended in _BROKEN),
    ("BED-09", body(user(text(), IMAGE)), OK, NO_MEDIA, ()),
    ("BED-09", body(*ROUND[:2], user(answer("t1", IMAGE))), FULL, NO_MEDIA, ()),
    ("ALL-08", body(user(text()), model(thought()), user(text())), OK, NO_THINKING, ()),
]
