"""Check requests of OpenAI Chat Completions, message by message.

The central rule is about groups of messages. An assistant message with tool calls opens a group, and each tool message
answers one of its calls. No other message may follow before all calls are answered. The other checks concern roles,
content, keys, ids, names and arguments. OpenAI accepts several system messages and successive messages with the same
role, and so does this module. The dialect contains the additional rules of compatible vendors.
"""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from actors.core.check.json_values import excerpt, kind_of, shape, value_at
from actors.core.check.messages import INPUT, ROOTLESS, CompleteMessagesState, non_object_reason
from actors.core.check.state import Unusual
from actors.core.data.jsonio import JsonValue
from actors.core.dialects.dialect import ChatDialect

_TOP = shape(
    """audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens
    messages metadata modalities model moderation n parallel_tool_calls prediction presence_penalty
    prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format
    safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools
    top_logprobs top_p user verbosity web_search_options"""
)
# the request key that turns thinking on or off, or pins an upstream, by `reasoning.switch` or `upstream_pin`
_SWITCH_KEYS = {"type": "thinking", "reasoning": "reasoning", "provider": "provider"}
_LONGEST_KEY = 64
_TOOL = {"function": shape("name description parameters strict"), "custom": shape("name description format")}
# the key that messages usually have in addition to role and content, by role
_USUAL_KEYS = {"assistant": "tool_calls", "tool": "tool_call_id"}
_PARTS = {"user": {"text", "image_url", "input_audio", "file"}, "assistant": {"text", "refusal"}}
_PART_KEYS = {kind: shape(f"type {kind} prompt_cache_breakpoint") for kind in (*_PARTS["user"], "refusal")}
_PART_KEYS["thinking"] = shape("type thinking signature closed")
_MEDIA = {"image_url": "image", "file": "document"}
_FIELDS = frozenset({"reasoning_content", "reasoning", "reasoning_details"})


class _UsualPart(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The base of usual messages and their parts. A message is usual if its content is one text, and its calls call
    functions.
    """


class _Function(_UsualPart):
    name: str
    arguments: str


class _Call(_UsualPart):
    id: str
    type: Literal["function"]
    function: _Function


class _User(_UsualPart, tag_field="role", tag="user"):
    content: str


class _Assistant(_UsualPart, tag_field="role", tag="assistant"):
    content: str | None = None
    tool_calls: list[_Call] | None = None


class _Result(_UsualPart, tag_field="role", tag="tool"):
    tool_call_id: str
    content: str


_Message: TypeAlias = _User | _Assistant | _Result | int
_USUAL = msgspec.json.Decoder(list[_Message])

_NAMED_SCHEMAS = {"properties", "patternProperties", "dependentSchemas", "$defs"}
_LISTED_SCHEMAS = {"anyOf", "oneOf", "allOf", "prefixItems"}
_ONE_SCHEMA = {"items", "contains", "not", "if", "then", "else"}


def _moonshot_faults(schema: JsonValue, path: str, *, is_root: bool = True) -> Iterator[str]:
    """Yield the path and the reason for each subschema of a tool's JSON Schema that Moonshot rejects (KIM-07)."""
    if type(schema) is not dict:
        yield f"{path}: a schema must be an object"
        return
    chosen = "anyOf" in schema or "$ref" in schema
    if not is_root and not chosen and "type" not in schema:
        yield f"{path}: a schema must have a type"
    if "type" in schema and chosen:
        yield f"{path}: a schema with anyOf or $ref must not have a type"
    reference = schema.get("$ref")
    if type(reference) is str and not reference.startswith("#/$defs/"):
        yield f"{path}.$ref: a reference must begin with #/$defs/"
    required, known = schema.get("required"), schema.get("properties")
    for name in required if type(required) is list else ():
        if type(name) is not str or type(known) is not dict or name not in known:
            yield f"{path}.required: {excerpt(name)} is not among the properties"
    for place, inner in _subschemas(schema):
        yield from _moonshot_faults(inner, f"{path}.{place}", is_root=False)


def _subschemas(schema: dict[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    for key, value in schema.items():
        if key in _NAMED_SCHEMAS and type(value) is dict:
            yield from ((f"{key}.{name}", item) for name, item in value.items())
        elif key in _LISTED_SCHEMAS and type(value) is list:
            yield from ((f"{key}[{at}]", item) for at, item in enumerate(value))
        elif key in _ONE_SCHEMA or (key == "additionalProperties" and type(value) is not bool):
            yield key, value


class OpenAIChat(CompleteMessagesState):
    """The check state of the family `openai_chat`.

    Attributes:
        reasoning_field: The name of the message field for reasoning; None if the dialect has none.
        message_keys: The accepted keys of a message, by role.
        usual_keys: By role, the key that messages usually have in addition to role and content; None if there is none.
        signature_keys: The key of a call's signature; empty if the dialect has no signatures.
        part_mark_keys: The key of a part's cache mark; empty if the dialect has no cache marks.
    """

    dialect: ChatDialect
    role: str | None
    message_count: int
    answered_calls: dict[str, None]

    def __init__(self, dialect: ChatDialect) -> None:
        super().__init__(dialect)
        carrier, named = dialect.reasoning.carrier, dialect.turns.message_keys
        field = dialect.reasoning.field if carrier == "reasoning_content" else carrier
        self.reasoning_field = field if field in _FIELDS else None
        self.signature_keys: frozenset[str] = frozenset({"extra_content"} & {carrier})
        self.part_mark_keys: dict[str, None] = (
            {"cache_control": None} if dialect.caching.marks == "part" else {}
        )
        plain = frozenset({"role", "content"}) | (named & {"name"})
        self.message_keys: dict[str, frozenset[str]] = {
            "system": plain,
            "user": plain,
            "assistant": plain | named | {"tool_calls"} | (_FIELDS & {field}),
        }
        self.message_keys["tool"] = frozenset({"role", "content", "tool_call_id", "name"})
        if dialect.turns.developer_role:
            self.message_keys["developer"] = plain
        if "function_call" in named:
            self.message_keys["function"] = plain
        self.usual_keys: dict[str, str | None] = {role: _USUAL_KEYS.get(role) for role in self.message_keys}

    def check_messages(self, messages: list[JsonValue], *, resumes: bool = False) -> None:
        for value in messages:
            self.message_count += 1
            role = value["role"] if type(value) is dict and "role" in value else None
            if type(value) is not dict or type(role) is not str or role not in self.message_keys:
                self._report_role(value)
                continue
            if role != "tool":
                self._begin_message(role)
            if len(value) != 1 + ("content" in value) + (self.usual_keys[role] in value):
                self._check_keys(value, role)
            content = value["content"] if "content" in value else None
            if (type(content) is not str or len(content) > self.max_length) and (
                content is not None or role != "assistant"
            ):
                self._check_content(content, role)
            if role == "assistant":
                self._check_assistant(value, content)
            elif role == "tool":
                self._check_result(value["tool_call_id"] if "tool_call_id" in value else None)
                self.role = role

    @property
    def usual_messages(self) -> msgspec.json.Decoder[list[_Message]] | None:
        reasoning = self.dialect.reasoning
        return _USUAL if reasoning.carrier == "none" and reasoning.required == "no" else None

    def check_usual(self, messages: list[_Message]) -> None:
        if self.message_count:
            del messages[0]
        for message in messages:
            self.message_count += 1
            if type(message) is _Result:
                self._check_result(message.tool_call_id)
                self.role = "tool"
            elif type(message) is _User:
                self._begin_message("user")
            elif type(message) is _Assistant:
                self._begin_message("assistant")
                self._check_usual_calls(message)
            else:
                raise Unusual
            if message.content is not None and len(message.content) > self.max_length:
                raise Unusual

    def _check_usual_calls(self, message: _Assistant) -> None:
        calls = message.tool_calls
        if calls is None and message.content:
            return
        if not calls or (len(calls) > 1 and not self.dialect.turns.calls_together):
            raise Unusual
        for call in calls:
            name, arguments = call.function.name, call.function.arguments
            if not self.is_name(name) or len(arguments) > self.max_length:
                raise Unusual
            if non_object_reason(arguments, strict=False):
                raise Unusual
            self.open_call(call.id)

    def _check_keys(self, message: dict[str, JsonValue], role: str) -> None:
        """Report the unknown keys of a message. Called only if the message has keys that are unusual for its role."""
        known = self.message_keys[role]
        for field in sorted(_FIELDS & (message.keys() - known)):
            self.fault(f"ALL-07 {field}", "", f"unknown key {field!r}")
        self.allow_only("", message, known | _FIELDS)

    def _report_role(self, message: JsonValue) -> None:
        if type(message) is not dict:
            self.reject_type("a message must be an object", "", message)
        elif "role" in message:
            self.fault("OAC-06", "", f"role {excerpt(message['role'])} does not exist")
        else:
            self.fault("OAC-07", "", "the message has no role")

    def _begin_message(self, role: str) -> None:
        """Begin a message other than a result: check that all calls are answered and that `role` may follow."""
        rules = self.dialect.turns
        if self.answered_calls:
            self.answered_calls = {}
        if self.open_calls:
            self.report_unanswered(f"before this {role} message")
        if role in ("system", "developer"):
            if not rules.system_anywhere and self.role in ("assistant", "tool"):
                self.fault("ALL-08 system", "", f"role {role} must not follow role {self.role}")
        elif role == "user" and self.role == "tool" and rules.user_after_tool == "filler":
            self.fault("CMP-01 after tool", "", "role user must not follow role tool")
        elif role == self.role and rules.alternation == "fill":
            self.fault("CMP-01", "", f"role {role} occurs twice in a row")
        elif self.role is None and role in ("user", "assistant") and role not in rules.first_roles:
            self.fault("ALL-09", "", f"a transcript cannot begin with role {role}")
        if role not in ("system", "developer") or self.role is not None:
            self.role = role

    def _check_result(self, call_id: JsonValue) -> None:
        if type(call_id) is not str:
            self.fault("ALL-02 tool_call_id", "", f"tool_call_id must be a string, not {kind_of(call_id)}")
        elif call_id in self.open_calls:
            del self.open_calls[call_id]
            self.answered_calls[call_id] = None
        elif call_id in self.answered_calls:
            self.fault("OAC-02 duplicate", "", f"a second result for tool call {excerpt(call_id)}", call_id)
        else:
            behind = self.role if self.role in ("assistant", "tool") else "user"
            case = "unknown" if self.open_calls else f"after {behind}"
            what = f"a result for {excerpt(call_id)}, but that call is not open"
            self.fault(f"OAC-02 {case}", "", what, call_id)

    def _check_assistant(self, message: dict[str, JsonValue], content: JsonValue) -> None:
        calls, rules = message["tool_calls"] if "tool_calls" in message else None, self.dialect
        if "prefix" in message and message["prefix"] and "prefix" in rules.turns.message_keys:
            # the last message may be a `prefix` for the answer, but our requests never end with an assistant message
            self.fault("MIS-11", "", "an assistant message must not have prefix")
        if calls is not None and type(calls) is not list:
            self.reject_type("must be a list of tool calls", ".tool_calls", calls)
            calls = []
        field = self.reasoning_field
        reasons = message[field] if field is not None and field in message else None
        if reasons is not None and type(reasons) is not (
            list if self.reasoning_field == "reasoning_details" else str
        ):
            self.fault("ALL-02", f".{self.reasoning_field}", f"reasoning must not be {kind_of(reasons)}")
        required = rules.reasoning.required
        if not reasons and (required == "every" or (calls and required == "with_calls")):
            what = "an assistant message with tool calls" if calls else "an assistant message"
            self.fault("ALL-02 reasoning", "", f"{what} must have {rules.reasoning.carrier}")
        if not calls:
            said = content is not None or bool(message.keys() & {"refusal", "audio", "function_call"})
            if not said or (content == "" and not rules.turns.empty_answers):
                self.fault("ALL-11 message", "", "an assistant message without tool calls must have content")
            if calls is not None and not rules.turns.empty_calls:
                self.fault("ALL-02", ".tool_calls", "the list of tool calls must not be empty")
            return
        if len(calls) > 1 and not rules.turns.calls_together:
            self.fault("CMP-02", ".tool_calls", f"{len(calls)} tool calls in one message, at most 1")
        for index, call in enumerate(calls):
            self._check_call(call, f".tool_calls[{index}]")
        if self.signature_keys:
            self._check_signatures(calls)

    def _check_signatures(self, calls: list[JsonValue]) -> None:
        demanded = self.dialect.reasoning.required == "before_calls"
        for index, call in enumerate(calls):
            signature = value_at(call, "extra_content", "google", "thought_signature")
            given = value_at(call, "extra_content") is not None or (demanded and not index)
            if given and (type(signature) is not str or not signature):
                self.fault("GEM-04", f".tool_calls[{index}]", "the call has no thought_signature")

    def _check_call(self, call: JsonValue, path: str) -> None:
        kind = self._tool_type(call)
        if type(call) is not dict or type(kind) is not str or kind not in INPUT:
            return self.fault("ALL-02", path, f"unknown tool call type {excerpt(kind)}")
        if kind != "function":
            self._check_tool_type(kind, path)
        call_id = call["id"] if "id" in call else None
        inner = call[kind] if kind in call else None
        if len(call) != 3 or call_id is None or inner is None:
            indexed: set[str] = {"index"} if self.dialect.request.untyped_functions else set()
            self.allow_only(path, call, {"id", "type", kind} | self.signature_keys | indexed)
        if type(call_id) is str:
            self.open_call(call_id, f"{path}.id")
        else:
            self.fault("ALL-02 id", f"{path}.id", "the id of a tool call must be a string")
        if type(inner) is not dict:
            return self.reject_type(f"{kind} must be an object", path, inner)
        path, key = f"{path}.{kind}", INPUT[kind]
        name = inner["name"] if "name" in inner else None
        given = inner[key] if key in inner else None
        if len(inner) != 2 or name is None or given is None:
            self.allow_only(path, inner, ("name", key))
        return self.check_arguments(name, given, key, path)

    def _tool_type(self, value: JsonValue) -> JsonValue:
        """Return the type of a tool or a call; None if the value has no type.

        Some hosts treat a missing type as `function`.
        """
        if type(value) is not dict:
            return None
        if "type" not in value and self.dialect.request.untyped_functions:
            return "function"
        return value["type"] if "type" in value else None

    def _check_tool_type(self, kind: str, path: str) -> None:
        if kind != "function" and not self.dialect.request.custom_tools:
            self.fault("ALL-02 kind", path, f"a tool of type {excerpt(kind)}")

    def _check_content(self, content: JsonValue, role: str) -> None:
        for at, part in self.checked_parts(content, ".content", "OAC-05"):
            self._check_part(part, role, at)
        if role == "assistant" and type(content) is list:
            thinks = [type(part) is dict and part.get("type") == "thinking" for part in content]
            if sorted(thinks, reverse=True) != thinks:
                self.fault("ALL-08 thinking", ".content", "thinking must precede all other content")

    def _check_part(self, part: JsonValue, role: str, path: str) -> None:
        if type(part) is not dict:
            return self.fault("OAC-05", path, f"a part must be an object, not {kind_of(part)}")
        rules, kind = self.dialect.media, part.get("type")
        held = _PARTS.get(role, {"text"})
        if role == "assistant" and self.dialect.reasoning.carrier == "thinking_chunk":
            held = held | {"thinking"}
        if type(kind) is not str or kind not in held:
            what = f"a message of role {role} must not contain a part of type {excerpt(kind)}"
            return self.fault("OAC-08", path, what)
        taken = rules.user_kinds | {"text", *(["document"] if rules.user_files else [])}
        if role == "user" and _MEDIA.get(kind, "text") not in taken:
            return self.fault("ALL-10", path, f"{_MEDIA[kind]} is not accepted")
        self.allow_only(path, part, _PART_KEYS[kind] | self.part_mark_keys)
        if self.part_mark_keys and (mark := part.get("cache_control")) is not None:
            self.check_mark(mark, path)
            if kind == "text" and not str(part.get("text")).strip():
                self.fault("ANT-33", path, "a blank text must not have cache_control")
        if kind in _MEDIA:
            self.count_attachment(_MEDIA[kind], path)
        return self._check_payload(part.get(kind), kind, path)

    def _check_payload(self, payload: JsonValue, kind: str, path: str) -> None:
        if kind == "thinking":
            if type(payload) is not list or not payload:
                self.fault("ALL-02", path, "thinking must be a non-empty list of text chunks")
        elif kind in ("text", "refusal"):
            self.check_text(payload, kind, kind, path)
        elif type(payload) is not dict or not payload:
            self.reject_type(f"{kind} must be an object with keys", path, payload)
        elif kind == "image_url" and not self.dialect.media.urls and str(payload.get("url"))[:5] != "data:":
            self.fault("ALL-10", path, "an image must be sent as a data: URL, not as a web address")

    def check_parameters(self, body: dict[str, JsonValue]) -> None:
        rules, tools, key = self.dialect, body.get("tools"), body.get("prompt_cache_key")
        more = {_SWITCH_KEYS.get(word, "") for word in (rules.reasoning.switch, rules.request.upstream_pin)}
        # gateways and hosts of open models have this field, OpenAI does not
        own = {"top_k"} - rules.request.unsupported_settings
        known = rules.request.keys or _TOP.keys() | more | own
        self.allow_only("request", body, known, "OAC-12")
        self.check_model(body.get("model"))
        if type(key) is str and len(key) > _LONGEST_KEY:
            self.fault(
                "OAC-17", "prompt_cache_key", f"the key has {len(key)} characters, at most {_LONGEST_KEY}"
            )
        for field in ("max_tokens", "max_completion_tokens"):
            if body.get(field) is not None:
                self.check_limit(body[field], field)
        if body.get("stream_options") is not None and not body.get("stream"):
            self.fault("ALL-02", "stream_options", "must not be set without stream")
        if type(tools) is list and tools:
            self._check_tools(tools)
        elif tools is not None:
            self.fault("ALL-02 tools", "tools", "must be a list of at least one tool")
        self._check_tool_choice(body, tools)

    def _check_tool_choice(self, body: dict[str, JsonValue], tools: JsonValue) -> None:
        choice, host = body.get("tool_choice"), self.dialect.request.forced_choice
        model = self.model_facts(body.get("model")).forced_choice
        for key in ("tool_choice", "parallel_tool_calls"):
            if body.get(key) is not None and not tools:
                self.fault("ALL-14", key, "must not be set without tools")
        if type(kind := value_at(choice, "type")) is str and kind in _TOOL:
            self.check_choice(value_at(choice, kind, "name"), "tool_choice")
        thinks = value_at(body, "thinking", "type") != "disabled"
        never = host == "no" or model == "never"
        refused = never or (thinks and (host == "not_when_thinking" or model == "without_thinking"))
        if refused and choice not in (None, "auto", "none"):
            self.fault(
                "ALL-14 forced", "tool_choice", f"{excerpt(choice)} must not force a tool for this model"
            )

    def _check_tools(self, tools: list[JsonValue]) -> None:
        most = self.dialect.request.max_tools
        if most is not None and len(tools) > most:
            self.fault("OAC-09", "tools", f"the request has {len(tools)} tools, at most {most}")
        for path, tool in self.checked_items(tools, "tools", "tools"):
            kind = self._tool_type(tool)
            if type(kind) is str and ":" in kind and self.part_mark_keys:
                continue  # a gateway's own tool, such as `openrouter:web_search`
            if type(tool) is not dict or type(kind) is not str or kind not in _TOOL:
                self.fault("ALL-02 kind", path, f"tools of type {excerpt(kind)} are not accepted")
                continue
            self._check_tool_type(kind, path)
            self.allow_only(path, tool, ("type", kind, *self.part_mark_keys))
            declared, path = tool.get(kind), f"{path}.{kind}"
            if type(declared) is not dict:
                self.reject_type(f"{kind} must be an object", path, declared)
                continue
            self.allow_only(path, declared, _TOOL[kind])
            self.declare_tool(declared.get("name"), path)
            if (schema := declared.get("parameters")) is not None:
                sound = self.check_schema(schema, f"{path}.parameters", ROOTLESS)
                if sound and self.dialect.request.schema_subset == "moonshot":
                    for what in _moonshot_faults(schema, "parameters"):
                        self.fault("ALL-02 schema", f"{path}.parameters", what)
