"""List the parts of generated conversations: the simplest value first, then every unusual value ever observed.

`tests.generated.histories` picks from these lists. The first value of each list is the simplest, so shrinking ends
there.
"""

from collections.abc import Callable, Mapping

from actors.core.data.jsonio import Json, quote
from actors.core.log.call_events import Reason
from actors.core.values.content import Block, Code, Media, MessageRole, Text, ToolCall, ToolResult
from actors.testing.images import png_base64

TEXTS: tuple[Text, ...] = tuple(
    map(
        Text,
        (
            "hello",
            "go on",
            "",
            " ",
            "\n\t ",
            "\u00a0",
            "\u2003\u3000",
            "\x1c\x1f",
            "\x85",
            "\u00e9\u2713 \U0001f600",
            "half a \ud800 character",
            "\udc00",
            "\x00 and \x7f",
            'a "quoted" \\ backslash \\u0041 \\ud800',
            '{"type":"tool_use","id":"x"}',
            "[No result was recorded for this tool call: the history holds none.]",
            "  spaces around  ",
            "long " * 700,
        ),
    )
)
NAMES = (
    "read",
    "weather",
    "run",
    "",
    "functions.read",
    "read file",
    "x" * 70,
    "y" * 200,
    "1st",
    "-_-",
    "\u00e9t\u00e9",
    "\ud800",
    "search",
    'a"b\\c\n',
)
NATIVE = (
    "call_abcdefghijklmnopqrstuvwx",
    "toolu_abcdefghijklmnopqrstuvwx",
    "functions.read:0",
    "read:1",
    "call_0",
    "",
    " ",
    "n" * 41,
    "n" * 65,
    "call_x|fc_y",
    "\u00e9",
    'a"b',
    "abc\n",
    "\ud800",
)
HOSTILE_IDS = (
    "",
    " ",
    "0",
    "null",
    "x~2",
    "x",
    "hist_tool_1",
    "hist_tool_2~2",
    "functions.read:0",
    "Read:12",
    "call_" + "9" * 24,
    "toolu_Axyz123456",
    "call_Bxyz123456",
    "long-" * 60,
    "call_1|fc_2",
    "\ud800",
    "\ud801",
    "\ufffd",
    "a\x00b",
    '"}],"',
    "\U0001f600",
    "x#1",
)
SIGNATURES = (
    ("signature", quote("c2lnbmF0dXJl")),
    ("redacted", quote("cmVkYWN0ZWQ=")),
    ("signature", quote("")),
    ("redacted", quote("")),
)
ITEMS = (
    *(
        (
            "reasoning_item",
            quote(f'{{"type":"reasoning","id":"rs_{n}","summary":[],"encrypted_content":"ZQ=="}}'),
        )
        for n in range(6)
    ),
    ("reasoning_item", quote('{"type":"reasoning","summary":[],"encrypted_content":"bm8gaWQ="}')),
    ("phase", quote("commentary")),
    ("phase", quote("final_answer")),
    ("phase", quote("zzz")),
    ("reasoning_item", quote("{")),
    ("reasoning_item", quote("[]")),
    ("reasoning_item", quote('{"type":"reasoning","id":"rs_9","summary":[]}')),
)
"""Provider state of the family `responses`; few values, so that some repeat."""
_SEARCHED = (
    (
        "server_tool_use",
        '{"type":"server_tool_use","id":"srvtoolu_%d","name":"web_search","input":{"query":"4"}}',
    ),
    ("web_search_tool_result", '{"type":"web_search_tool_result","tool_use_id":"srvtoolu_%d","content":[]}'),
)
_UNFETCHED = '{"type":"web_fetch_tool_result_error","error_code":"unavailable"}'
_RAN = (
    ("executableCode", '{"executableCode":{"language":"PYTHON","code":"2+2"}}'),
    ("codeExecutionResult", '{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"4"}}'),
)
_RAN_SIGNED = (("executableCode", _RAN[0][1][:-1] + ',"thoughtSignature":"c2ln"}'), _RAN[1])
_ITEM = '{"type":"%s","status":"completed",%s}'
OWN: Mapping[str, tuple[tuple[tuple[str, str], ...], ...]] = {
    "anthropic": (
        _SEARCHED,
        tuple(
            (name, json.replace("web_search", "web_fetch").replace("[]", _UNFETCHED))
            for name, json in _SEARCHED
        ),
    ),
    "openai_responses": (
        (("web_search_call", _ITEM % ("web_search_call", '"action":{"type":"search","query":"4"}')),),
        (
            (
                "code_interpreter_call",
                _ITEM % ("code_interpreter_call", '"code":"2+2","container_id":"c","outputs":[]'),
            ),
        ),
    ),
    "gemini": (_RAN, _RAN_SIGNED),
    "vertex": (_RAN, _RAN_SIGNED),
    "gemini_2": (_RAN,),
}
"""Output of built-in tools by dialect, as name and JSON; `%d` becomes a unique number."""
ASIDE: tuple[tuple[str, str, str], ...] = (
    ("citations", "mark", '[{"url":"https://example.test"}]'),
    ("groundingMetadata", "mark", "{}"),
    ("mcp_tool_use", "unknown", '{"type":"mcp_tool_use","id":"mcptoolu_1"}'),
    ("image", "unknown", "{}"),
    ("", "unknown", "null"),
    ("half a \ud800 name", "unknown", '"half a \ud800 value"'),
    (
        "server_tool_use",
        "part",
        '{"type":"server_tool_use","id":"srvtoolu_0","name":"web_search","input":{}}',
    ),
    ("web_search_tool_result", "part", _SEARCHED[1][1] % 0),
    ("no object", "part", "[]"),
    ("no JSON", "part", "{"),
)
"""Provider blocks that are never sent back: name, kind and JSON. The last ones are broken."""
IMAGE = Media("image/png", png_base64())
DOCUMENTS = (
    Media("application/pdf", "aGk="),
    Media("application/pdf", "cGxhbg=="),
    Media("text/plain", "aGk="),
    Media("text/html", "PHA+"),
)
"""Few values, so that some repeat."""
MEDIA: tuple[Block, ...] = (
    Code("print(1)", "python"),
    IMAGE,
    DOCUMENTS[0],
    Media("image/png", url="https://example.test/a.png"),
    Media("audio/wav", "aGk="),
    Media("", ""),
    Media("image/png", ""),
    Media("image/png", "aGk="),
    Media("image/jpeg", png_base64(9000, 800)),
    Media("image/png", png_base64(2500, 1000)),
    Media("im\ud800ge/png", "aGk="),
    Media("application/pdf", url="https://example.test/a\ud800.pdf"),
    Code("", ""),
)
ATTACHED = (*(block for block in MEDIA if isinstance(block, Media)), *DOCUMENTS)
REASONS: tuple[Reason, ...] = (
    "cancelled",
    "interrupted",
    "never_started",
    "outcome_unknown",
    "compacted",
    "denied",
    "lost",
)
ROLES: tuple[MessageRole, ...] = ("user", "assistant", "tool")


def _circular() -> list[object]:
    value: list[object] = [1]
    value.append(value)
    return value


def _deep(levels: int) -> object:
    value: object = "bottom"
    for _ in range(levels):
        value = {"in": [value]}
    return value


def _arguments() -> tuple[tuple[Json, str | None], ...]:
    """Return arguments as (JSON, raw), including malformed and unusual ones."""
    values: tuple[object, ...] = (
        {},
        {"path": "/a", "n": 1},
        None,
        [1, 2],
        "text",
        {"self": _circular()},
        {1: "a", None: "b", (1, 2): "c"},
        {"n": float("nan"), "i": 2**80, "f": -0.0},
        {"half": "\ud800", "\udc00": 1},
        _deep(60),
        {"quotes": '"\\' * 50, "type": "tool_result"},
        b"\xff",
    )
    made = [ToolCall("", "", value) for value in values]
    made += [ToolCall("", "", raw=raw) for raw in ('{"path":"/a', "", "null", "{'a': 1}", "\ud800")]
    made += [ToolCall("", "", json=Json(b'{ "spaced" : [ 1.0 , 1e2 ] }'))]
    return tuple((call.json, call.raw) for call in made)


ARGUMENTS = _arguments()
ODD_VALUES: tuple[Json, ...] = tuple(
    result.content_json
    for value in ("", 0, False, [], {}, float("nan"), _circular(), _deep(40), b"\x00\xff", "\ud800", " ")
    if (result := ToolResult("", value)).content_json is not None
)
WRAPPED: tuple[Callable[[str], object], ...] = (
    lambda mark: mark,
    lambda mark: {"value": mark},
    lambda mark: [mark, None, float("inf")],
    lambda mark: {"text": f'"{mark}"', "half": "\ud800", "deep": {"er": [{}]}},
    lambda mark: f"\n {mark} \u2713 \U0001f600",
    lambda mark: f"{mark}{'x' * 2000}",
)
