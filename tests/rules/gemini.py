"""Rules of Gemini `generateContent`: a request that breaks each rule, and the nearest valid request."""

from typing import Any

from actors.core.data.record import replace
from actors.core.dialects.profiles import GEMINI
from actors.strict.rules import GeminiProfile, GeminiSettings
from actors.strict.rules.gemini import sign
from tests.rules.row import ACCEPTED, NOT_ASKED, UNSEEN, Answer, Json, Row, rows

SENTINEL = "skip_thought_signature_validator"
"""The documented signature of a call that Gemini did not make: every host takes it for a first call."""


def text(words: Any, **more: Any) -> Json:  # Any: a row may break a body in any way
    return {"text": words, **more}


def user(*parts: Any) -> Json:  # Any: likewise
    return {"role": "user", "parts": [text(part) if isinstance(part, str) else part for part in parts]}


def model(*parts: Any) -> Json:  # Any: likewise
    return {**user(*parts), "role": "model"}


def call(
    name: Any = "read", args: Any = None, *, signature: Any = SENTINEL, **more: Any
) -> Json:  # Any: likewise
    part = {"functionCall": {"name": name, "args": {} if args is None else args, **more}}
    return part if signature is None else {**part, "thoughtSignature": signature}


def plain(name: str = "read", **more: Any) -> Json:  # Any: likewise
    """Return a call without a signature."""
    return call(name, signature=None, **more)


def signed_call(settings: GeminiSettings, **more: Any) -> Json:  # Any: likewise
    """Return a call that this host signed."""
    return {**plain(**more), "thoughtSignature": sign(plain(**more), settings)}


def result(name: Any = "read", response: Any = None, **more: Any) -> Json:  # Any: likewise
    told = {"output": "ok"} if response is None else response
    return {"functionResponse": {"name": name, "response": told, **more}}


def body(*contents: Any, **top: Any) -> Json:  # Any: likewise
    return {"contents": list(contents), **top}


def tools(*declared: Json) -> list[Json]:
    return [{"functionDeclarations": list(declared or [{"name": "read"}])}]


def calling(mode: str = "ANY", **more: Any) -> Json:  # Any: likewise
    return {"functionCallingConfig": {"mode": mode, **more}}


def with_parts(*parts: Any) -> Json:  # Any: likewise
    """Return a request with a result of these parts in addition to its text."""
    return body(U, CALLED, user(result(parts=list(parts))))


HOST = GeminiSettings(model="gemini-test")
VERTEX_HOST = GeminiSettings(model="gemini-test", vertex=True)
UNKNOWN = "Invalid JSON payload received. Unknown name {name}: Cannot find field."
NUMBER = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)
U, GO = user("u"), user("go")
CALLED = model(call())
ONE = body(U, CALLED, user(result()))
BATCH = model(call(), plain("run"))
ANSWERED = user(result(), result("run"))
GOOD = body(U, BATCH, ANSWERED, model("said"), GO)
IMAGE = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
DECLARED = tools()
ONE_IMAGE = replace(GEMINI, media=replace(GEMINI.media, max_count=1))


ROWS = rows(
    "gemini",
    Row("ALL-02", body(U, {"role": "model", "parts": "t"}, GO), GOOD, server="GEM-S02"),
    Row("ALL-02", body(U, BATCH, user(result(response="text"), result("run"))), GOOD, server="GEM-S02"),
    Row("ALL-02", body(U, systemInstruction="s"), body(U, systemInstruction={"parts": [text("s")]}), server="GEM-S02"),
    Row("ALL-02", with_parts(), with_parts(IMAGE), server=ACCEPTED),
    Row("ALL-02", with_parts({"inlineData": {"mimeType": "image/png", "data": ""}}), with_parts(IMAGE),
        server=ACCEPTED),
    Row("ALL-03", body(U, model(call(id="a b")), user(result(id="a b"))), GOOD, server=ACCEPTED),
    Row("ALL-04", body(U, model(call(id="a"), plain(id="a")), user(result(id="a"), result(id="a"))),
        body(U, model(call(id="a"), plain(id="b")), user(result(id="a"), result(id="b"))), server=ACCEPTED),
    Row("ALL-06", body(U, model(call(args="{}")), user(result())), GOOD, server="GEM-S02"),
    Row("ALL-08", body(user(text("u", thoughtSignature=SENTINEL))), GOOD, server="GEM-05", hosted=False),
    Row("ALL-08", body(U, model(text("t", thought=True)), GO), body(U, model("t"), GO), server=ACCEPTED),
    Row("ALL-08", body(user("u", plain())), GOOD, server="GEM-02"),
    Row("ALL-08", body(U, model(result()), GO), GOOD, server="GEM-03"),
    Row("ALL-10", body(user({"inlineData": {"mimeType": "audio/wav", "data": "aGk="}})), body(user(IMAGE)),
        server=ACCEPTED),
    Row("ALL-10", body(user({"fileData": {"fileUri": "https://x.example/a.png"}})), body(user(IMAGE)),
        server=ACCEPTED),
    Row("ALL-10", with_parts(IMAGE), body(U, CALLED, user(result(), IMAGE)), server=ACCEPTED, dialect="gemini_2"),
    Row("ALL-10", with_parts({"inlineData": {**IMAGE["inlineData"], "mimeType": "application/pdf"}}),
        with_parts(IMAGE), server=ACCEPTED),
    Row("ALL-13", body(U, tools=tools({"name": "a"}, {"name": "a"})), body(U, tools=tools({"name": "a"})),
        server="GEM-S05"),
    Row("ALL-15", body(user(IMAGE, IMAGE)), body(user(IMAGE)), server=NOT_ASKED, profile=ONE_IMAGE),
    Row("GEM-01", body(U, model(call(), plain()), user(result())),
        body(U, model(call(), plain()), user(result(), result())), NUMBER),
    Row("GEM-01", body(U, CALLED, GO), body(U, CALLED, user(result(), "go")), NUMBER),
    Row("GEM-01", body(U, CALLED), ONE, NUMBER, judge="GEM-01 ALL-05"),
    Row("GEM-01", body(U, BATCH, user(result())), body(U, BATCH, ANSWERED)),
    Row("GEM-01", body(U, BATCH, user("go")), body(U, BATCH, user(result(), result("run"), "go"))),
    Row("GEM-01", body(U, BATCH, user(result(), result("run"), result())), body(U, BATCH, ANSWERED)),
    Row("GEM-02", body(CALLED, user(result())), ONE, "Please ensure that function call turn comes immediately…",
        judge="GEM-02 ALL-09"),
    Row("GEM-03", body(user(result())), ONE, "Please ensure that function response turn comes immediately after…"),
    Row("GEM-03", body(U, CALLED, user("so", result())), body(U, CALLED, user(result(), "so")),
        "Please ensure that function response turn…"),
    Row("GEM-03", body(user(result(), "go")), GOOD),
    Row("GEM-03", body(U, model("t"), user(result())), GOOD),
    Row("GEM-03", body(U, BATCH, user(result()), user(result("run"))), GOOD, judge="GEM-03 GEM-01 GEM-18",
        server="GEM-01"),
    Row("GEM-04", body(U, model(plain("run")), user(result("run"))), body(U, model(call("run")), user(result("run"))),
        "…Additional data, function call `default_api:run` , position 2. Please refer to…"),
    Row("GEM-04", body(U, model(plain("run")), user(result("run")), model("done"), GO),
        body(U, model(call("run")), user(result("run")), model("done"), GO),
        "…function call `default_api:run` , position 2.…", hosted=False),
    Row("GEM-04", body(U, model(plain(), call("run")), ANSWERED), body(U, BATCH, ANSWERED)),
    Row("GEM-04", body(U, model(plain()), user(result())), ONE, dialect="vertex"),
    Row("GEM-05", body(U, model(signed_call(GeminiSettings(model="gemini-other"))), user(result())),
        body(U, model(signed_call(HOST)), user(result())), "Corrupted thought…", judge=UNSEEN, settings=HOST),
    Row("GEM-05",
        body(U, model(signed_call(GeminiSettings(model="gemini-test", account="account-2"))), user(result())),
        body(U, model(signed_call(HOST)), user(result())), "Corrupted thought…", judge=UNSEEN, settings=HOST),
    Row("GEM-05", body(U, model(signed_call(VERTEX_HOST)), user(result())),
        body(U, model(signed_call(HOST)), user(result())), "Corrupted thought…", judge=UNSEEN, settings=HOST),
    Row("GEM-05", body(U, model(signed_call(GeminiSettings(model="gemini-test", secret=b"another"))), user(result())),
        body(U, model(signed_call(HOST)), user(result())), "Corrupted thought…", judge=UNSEEN, settings=HOST),
    Row("GEM-05", body(U, model({**call(args={"a": 1}), "thoughtSignature": sign(call(), HOST)}), user(result())), ONE,
        "Corrupted thought signature.", judge=UNSEEN),
    Row("GEM-05", body(U, model(call(), call()), user(result(), result())),
        body(U, model(call(), plain()), user(result(), result())), "Corrupted thought signature.", judge=UNSEEN,
        hosted=False),
    Row("GEM-05-vertex", body(U, model(signed_call(HOST)), user(result())),
        body(U, model(signed_call(VERTEX_HOST)), user(result())),
        "Unable to submit request because Thought signature is not valid..", judge=UNSEEN, read="transcript GEM-05",
        settings=VERTEX_HOST),
    Row("GEM-06", body(U, model(call(signature="no!")), user(result())), ONE,
        "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed…"),
    Row("GEM-06", body(U, model(call(signature="not base64!")), user(result())), GOOD),
    Row("GEM-07", body(), body(U), "* GenerateContentRequest.contents: contents is not specified\n"),
    Row("GEM-07", body(), GOOD),
    Row("GEM-08", body({**U, "role": "tool"}), body({**U, "role": "user"}),
        "Role 'tool' is not supported. Please use a valid role: SYSTEM,…", judge="GEM-08 GEM-07"),
    Row("GEM-08", body(U, {"role": "assistant", "parts": [text("t")]}), GOOD),
    Row("GEM-08", body({"role": "system", "parts": [text("t")]}, U), GOOD),
    Row("GEM-08-vertex", body({**U, "role": "tool"}), body({**U, "role": "user"}),
        "Please use a valid role: user, model.", judge="GEM-07 GEM-08", read="transcript GEM-08",
        settings=VERTEX_HOST),
    Row("GEM-09", body(U, model(call(id="a")), user(result(id="a"))), ONE,
        "Invalid JSON payload received. Unknown name \"id\" at 'contents[1].parts[0].function_call': Cannot "
        "find field.\nInvalid JSON payload received. Unknown name \"id\" at "
        "'contents[2].parts[0].function_response'…", judge=UNSEEN,
        settings=GeminiSettings(GeminiProfile(call_ids=False), vertex=True)),
    Row("GEM-09", body(U, model(call(id="a")), user(result())), GOOD, server=ACCEPTED, dialect="vertex"),
    Row("GEM-09", body(U, CALLED, user(result(id="a"))), GOOD, server=ACCEPTED, dialect="vertex"),
    Row("GEM-10", body(U, messages=[]), body(U), UNKNOWN.format(name='"messages"')),
    Row("GEM-10", body(user(text("u", x=1))), body(U), UNKNOWN.format(name="\"x\" at 'contents[0].parts[0]'")),
    Row("GEM-10", body(U, model(call(args={}, type="x")), user(result())), ONE, '…Unknown name "type"…'),
    Row("GEM-10", body(U, CALLED, user(result(parts=[{"text": "t"}]))), with_parts(IMAGE), '…Unknown name "text"…'),
    Row("GEM-10", body(U, tools=tools({"name": "a", "parameters": {"type": "OBJECT", "oneOf": []}})),
        body(U, tools=tools({"name": "a", "parameters": {"type": "OBJECT"}})),
        "…Unknown name \"oneOf\" at 'tools[0].function_declarations[0].parameters'…"),
    Row("GEM-10", body(U, model(call(type="function")), user(result())), GOOD),
    Row("GEM-10", body(user(text("u", cacheControl={}))), GOOD),
    Row("GEM-10", body(U, messages=[]), GOOD),
    Row("GEM-10",
        body(U, tools=tools({"name": "read", "parameters": {"type": "OBJECT", "additionalProperties": False}})),
        body(U, tools=tools({"name": "read", "parametersJsonSchema": {"additionalProperties": False}}))),
    Row("GEM-10", body(U, generationConfig={"max_tokens": 5}), body(U, generationConfig={"maxOutputTokens": 5})),
    Row("GEM-11", body({"role": "user", "parts": []}), body(U), "…must include at least one parts field…"),
    Row("GEM-11", body(user({"thought": True})), body(U), "…must include at least one parts field…",
        judge="GEM-11 ALL-08"),
    Row("GEM-11", body(U, model(), GO), GOOD),
    Row("GEM-11", body(user({})), body(user(""))),
    Row("GEM-11", body(user({**text("u"), **IMAGE})), body(user("u", IMAGE)), server="GEM-S12"),
    Row("GEM-11", body(U, model({**text("t"), **call()}), GO), GOOD, server="GEM-S12"),
    Row("GEM-12", body(user("x" * 100)), body(user("x")), "…exceeds the maximum number of tokens allowed (20).",
        judge=UNSEEN, settings=GeminiSettings(GeminiProfile(context_tokens=20))),
    Row("GEM-16", body(U, BATCH, user(result("run"), result())), body(U, BATCH, ANSWERED), server="GEM-S08",
        hosted=False),
    Row("GEM-16", body(U, model(call(id="a")), user(result(id="b"))), body(U, model(call(id="a")), user(result())),
        server="GEM-S08", hosted=False),
    Row("GEM-17", body(U, tools=tools({"name": "a b"})), body(U, tools=tools({"name": "a_b"})), server="GEM-S04"),
    Row("GEM-S01", b"{", body(U), "Invalid JSON payload received.…", judge="ALL-01"),
    Row("GEM-S01", b"[]", body(U), "…Root element must be a message.", judge="ALL-01"),
    Row("GEM-S02", body(user({"text": 5})), body(user("5")),
        "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 5", judge="ALL-02"),
    Row("GEM-S02", body(U, CALLED, user({"functionResponse": {"name": "read", "response": "ok"}})), ONE,
        "Invalid value at 'contents[2].parts[0].function_response.response'…", judge="ALL-02"),
    Row("GEM-S03", body(U, model(call("")), user(result(""))), ONE, "…Name cannot be empty.…", judge="GEM-17"),
    Row("GEM-S04", body(U, model(call("1a")), user(result("1a"))), body(U, model(call("_1a")), user(result("_1a"))),
        "…Must start with a letter or an underscore.…", judge="GEM-17"),
    Row("GEM-S05", body(U, tools=[*DECLARED, *DECLARED]), body(U, tools=DECLARED),
        "Duplicate function declaration found: read", judge="ALL-13"),
    Row("GEM-S06", body(U, GO), body(user("u", "go")), "…multiturn requests alternate between user and model.",
        judge="GEM-18", hosted=False),
    Row("GEM-S06", body(model("t"), GO), body(U, model("t"), GO), "…multiturn requests alternate between…",
        judge="ALL-09", hosted=False),
    Row("GEM-S07", body(U, model("t")), body(U, model("t"), GO), "…end with a user turn or a function response turn.",
        judge="ALL-05"),
    Row("GEM-S08", body(U, CALLED, user(result("run"))), ONE, "…the name or id of the…", judge="GEM-16", hosted=False),
    Row("GEM-S08", body(U, model(call(id="a")), user(result(id="b"))),
        body(U, model(call(id="a")), user(result(id="a"))), "…the name or id of the…", judge="GEM-16", hosted=False),
    Row("GEM-S09", body(U, toolConfig=calling()), body(U, tools=DECLARED, toolConfig=calling()),
        "…set without function_declarations…", judge="ALL-14"),
    Row("GEM-S10", body(U, tools=tools({"name": "a", "parameters": {"title": "x"}})),
        body(U, tools=tools({"name": "a", "parameters": {"title": "x", "type": "OBJECT"}})),
        "…schema didn't specify the schema type field.", judge=UNSEEN),
    Row("GEM-S11", body(U, generationConfig={"thinkingConfig": {"thinkingBudget": 1, "thinkingLevel": "LOW"}}),
        body(U, generationConfig={"thinkingConfig": {"thinkingLevel": "LOW"}}),
        "…only one of thinking budget and thinking level…", judge="ALL-02", read="parameter"),
    Row("GEM-S12", body(user({**text("u"), **result()})), body(U), "…one of the fields of `data` must be…",
        judge="GEM-11"),
    Row("GEM-S21", body(U, tools=DECLARED, toolConfig=calling("ANY", allowedFunctionNames=["run"])),
        body(U, tools=DECLARED, toolConfig=calling("ANY", allowedFunctionNames=["read"])),
        "…run is not among the function declarations.…", judge="ALL-14", read="parameter"),
    Row("GEM-S21", body(U, tools=DECLARED, toolConfig=calling("AUTO", allowedFunctionNames=["read"])),
        body(U, tools=DECLARED, toolConfig=calling("ANY", allowedFunctionNames=["read"])),
        "…only be set when the function calling mode is ANY.…", judge=UNSEEN, read="parameter"),
    answer=Answer(type="INVALID_ARGUMENT"),
)  # fmt: skip
