"""Check DeepSeek requests. DeepSeek pairs calls and results differently from OpenAI, and requires reasoning in turns
with calls.

Theory of operation. The state is the set of ids of open calls. A result removes its id, so a second result for the same
call finds no open call. A result with an unknown id is counted, but not refused immediately. After the last result for
the calls of a message, DeepSeek reports a fault if there are too few results. It reports a different fault if the
number is right but a call has no result. This behaviour was observed at DeepSeek's endpoint.
"""

from dataclasses import replace

from actors.strict.rules.base import RECALLED, CompatibleProfile, Json, ServerRule, object_at, rules_by_id
from actors.strict.rules.host import RequestContext, VendorHost, check_reasoning_present
from actors.strict.rules.openai_chat import KEYS, OPENAI, object_schema_fault, without_answer_rules
from actors.strict.rules.openai_messages import MESSAGE_KEYS

_CODE = "invalid_request_error"
_UNREADABLE = "Failed to deserialize the JSON body into the target type: "
_FOLLOWED = "An assistant message with 'tool_calls' must be followed by tool messages responding to each "

RULES = rules_by_id(
    ServerRule(
        "DSK-01",
        "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
        code=_CODE,
    ),
    ServerRule(
        "DSK-02",
        _FOLLOWED + "'tool_call_id'. (insufficient tool messages following tool_calls message)",
        code=_CODE,
    ),
    ServerRule(
        "DSK-03",
        _FOLLOWED + "'tool_call_id'. The following tool_call_ids did not have response messages: {ids}",
        code=_CODE,
    ),
    ServerRule("DSK-04", _UNREADABLE + "{parent}: missing field `{key}`", status=422, code=_CODE),
    ServerRule(
        "DSK-05",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        code=_CODE,
    ),
    ServerRule("DSK-08", "deepseek-reasoner does not support this tool_choice", RECALLED, code=_CODE),
    ServerRule(
        "DSK-09",
        "This model's maximum context length is {limit} tokens. However, you requested {tokens} tokens "
        "({tokens} in the messages, 0 in the completion). Please reduce the length of the messages or completion.",
        code=_CODE,
    ),
    ServerRule("DSK-10", "This response_format type is unavailable now", code=_CODE),
    ServerRule(
        "DSK-11",
        "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'.",
        code=_CODE,
    ),
    ServerRule("DSK-S01", _UNREADABLE + "{path}: expected {expected}", RECALLED, status=422, code=_CODE),
    ServerRule(
        "DSK-S02",
        _UNREADABLE + "{path}: unknown variant `{value}`, expected {values}",
        RECALLED,
        422,
        code=_CODE,
    ),
    ServerRule(
        "DSK-S03",
        "The `reasoning_content` of messages[{at}] is not the one that was returned.",
        RECALLED,
        code=_CODE,
        strict_only=True,
    ),
)


def check(messages: list[Json], context: RequestContext) -> None:
    """Check the sequence of calls and results in the messages of one request."""
    waiting: list[str] = []
    made: list[str] = []
    strays = 0
    for message in messages:
        if message["role"] != "tool":
            _close_group(waiting, strays)
            made, strays = [call["id"] for call in message.get("tool_calls") or ()], 0
            waiting = made.copy()
        elif message["tool_call_id"] in waiting:
            waiting.remove(message["tool_call_id"])
        elif len(waiting) > strays and message["tool_call_id"] not in made:
            strays += 1
        else:
            raise RULES["DSK-01"].refuse()
    _close_group(waiting, strays)


def _close_group(open_ids: list[str], stray_count: int) -> None:
    """Check the results for a message with calls, after its last result has been read."""
    if len(open_ids) > stray_count:
        raise RULES["DSK-02"].refuse()
    if open_ids:
        raise RULES["DSK-03"].refuse(ids=", ".join(open_ids))
    if stray_count:
        raise RULES["DSK-01"].refuse()


def _check_answer_format(request: Json, context: RequestContext) -> None:
    if object_at(request, "response_format").get("type") == "json_schema":
        raise RULES["DSK-10"].refuse()


DEEPSEEK: VendorHost = replace(
    without_answer_rules(OPENAI),
    name="deepseek",
    rules=RULES,
    replacement_rules={
        "OAC-05": "DSK-S01",
        "OAC-06": "DSK-S02",
        "OAC-07": "DSK-04",
        "OAC-15": "DSK-09",
        "OAC-S14": "DSK-11",
    },
    error_code=_CODE,
    lacks=frozenset({"OAC-S15"}),
    keys=KEYS | {"thinking"},
    unknown_keys="ignore",
    message_keys={
        role: keys | {"reasoning_content", "prefix"}
        for role, keys in MESSAGE_KEYS.items()
        if role != "developer"
    },
    tool_types=("function",),
    schema=object_schema_fault,
    sequence=check,
    checks=(check_reasoning_present, _check_answer_format),
    reasoning="DSK-05",
    reasoning_scope="open",
    forced="DSK-08",
    profile=CompatibleProfile(id_length=64, thinking="on"),
)
