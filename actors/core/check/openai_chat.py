"""What OpenAI Chat Completions demands, message by message.

The heart is the group: an assistant message with tool calls opens it, each tool message takes one call
out, and nothing else may come before the last is out. All else is shape: roles, content, keys, ids, names
and arguments. Several system messages and runs of one role are accepted there, and so here; what vendors of
the family demand besides is told by the dialect.
"""

from collections.abc import Callable

from actors.core.check.openai_vendors import message_keys, schema_faults, top_keys
from actors.core.check.state import CHOICES, CheckState, Fold, kind_of, shown, why_no_object, why_no_root
from actors.core.jsonio import JsonValue
from actors.core.rulebook.cited import cited

_TOP = frozenset(
    """audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens
    messages metadata modalities model moderation n parallel_tool_calls prediction presence_penalty
    prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format
    safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools
    top_logprobs top_p user verbosity web_search_options""".split()  # noqa: SIM905  as a list it is a page
)
_PLAIN = frozenset({"role", "content", "name"})
_KEYS = {
    "system": _PLAIN,
    "developer": _PLAIN,
    "user": _PLAIN,
    "function": _PLAIN,
    "assistant": frozenset({"role", "content", "name", "refusal", "audio", "tool_calls", "function_call"}),
    "tool": frozenset({"role", "content", "tool_call_id"}),
}
_TEXT_ONLY = frozenset({"text"})
_PARTS = {
    "system": _TEXT_ONLY,
    "developer": _TEXT_ONLY,
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "function": _TEXT_ONLY,
    "assistant": frozenset({"text", "refusal"}),
    "tool": _TEXT_ONLY,
}
_PART_KEYS = {
    kind: frozenset({"type", kind, "prompt_cache_breakpoint"}) for kind in (*_PARTS["user"], "refusal")
} | {"thinking": frozenset({"type", "thinking", "signature", "closed"})}
_MEDIA = {"image_url": "image", "file": "document"}
_CALL_KEYS = {kind: frozenset({"id", "type", kind}) for kind in ("function", "custom")}
_INPUT = {"function": "arguments", "custom": "input"}
_INNER_KEYS = {kind: frozenset({"name", argument}) for kind, argument in _INPUT.items()}
_TOOL_KEYS = {kind: frozenset({"type", kind}) for kind in ("function", "custom")}
_ROOTLESS = (*CHOICES, "enum", "not")
_DECLARED_KEYS = {
    "function": frozenset({"name", "description", "parameters", "strict"}),
    "custom": frozenset({"name", "description", "format"}),
}


class OpenAIChat(Fold):
    """The fold of the family `openai_chat`."""

    def __init__(self, state: CheckState) -> None:
        super().__init__(state)
        self._keys = message_keys(state.dialect, _KEYS)

    def fault(self, rule: str, where: str, what: str, *call_ids: str, case: str = "") -> None:
        super().fault(cited(self.dialect, rule, case), where, what, *call_ids)

    def message(self, value: JsonValue) -> None:
        self.count += 1
        if type(value) is not dict:
            return self.fault("ALL-02", self.here, f"a message is an object, not {kind_of(value)}")
        role = value.get("role")
        reader = _READERS.get(role) if type(role) is str and role in self._keys else None
        if type(role) is not str or reader is None:
            return self._no_role(value)
        if role != "tool":
            self.answered.clear()
            if self.due:
                self._unanswered(f"before this {role} message")
        if not value.keys() <= self._keys[role]:
            self._unknown(value, self._keys[role])
        if role != "tool" and self.role is not None:
            self._follows(role)
        if self.role is None and role in ("user", "assistant") and role not in self.dialect.first_roles:
            self.fault("ALL-09", self.here, f"a transcript cannot begin with role {role}")
        reader(self, value)
        if role not in ("system", "developer") or self.role is not None:
            self.role = role
        return None

    def finish(self, *, manual_thinking: bool) -> None:
        if self.due:
            self._unanswered("at the end")
        if not self.count:
            self.fault("OAC-04", "messages", "there is no message")
        elif self.role not in self.dialect.last_roles:
            self.fault("ALL-05", self.here, f"a request cannot end with role {self.role or 'system'}")

    # --- messages -----------------------------------------------------------------------------------

    def _no_role(self, message: dict[str, JsonValue]) -> None:
        if "role" in message:
            self.fault("OAC-06", self.here, f"role {shown(message['role'])} does not exist")
        else:
            self.fault("OAC-07", self.here, "the message has no role")

    def _unanswered(self, when: str) -> None:
        ids = tuple(self.due)
        self.fault("OAC-01", self.here, f"no result for tool call {', '.join(map(shown, ids))} {when}", *ids)
        self.due.clear()

    def _unknown(self, message: dict[str, JsonValue], keys: frozenset[str]) -> None:
        name = "reasoning_content"
        if name in message and name not in keys:
            self.fault("ALL-07", self.here, f"unknown key {name!r}", case=name)
            keys |= {name}
        self.allow_only("ALL-07", self.here, message, keys)

    def _follows(self, role: str) -> None:
        """Judge the role that follows another, where the dialect has a rule for it."""
        dialect = self.dialect
        if role in ("system", "developer"):
            if dialect.rules == "MIS" and self.role in ("assistant", "tool"):
                self.fault("ALL-08", self.here, f"role {role} after role {self.role}", case="system")
        elif role == "user" and self.role == "tool" and dialect.user_after_tool == "filler":
            self.fault("CMP-01", self.here, "role user after role tool", case="after tool")
        elif role == self.role and dialect.alternation == "fill":
            self.fault("CMP-01", self.here, f"role {role} twice in a row")

    def _said(self, message: dict[str, JsonValue]) -> None:
        """Read a system, developer, user or function message."""
        self._content(message.get("content"), str(message["role"]))

    def _assistant(self, message: dict[str, JsonValue]) -> None:
        content, calls = message.get("content"), message.get("tool_calls")
        if content is not None:
            self._content(content, "assistant")
        elif calls is None and not message.keys() & {"refusal", "audio", "function_call"}:
            self.fault(
                "ALL-11", self.here, "an assistant message without tool calls has content", case="message"
            )
        if content == "" and calls is None and self.dialect.rules == "KIM":
            self.fault(
                "ALL-11", self.here, "an assistant message without tool calls has content", case="message"
            )
        if message.get("prefix"):  # what has one must be last, and we do not end there
            self.fault("MIS-11", self.here, "an assistant message with prefix")
        self._reasoned(message, calling=calls is not None)
        if calls is not None:
            self._calls(calls)

    def _reasoned(self, message: dict[str, JsonValue], *, calling: bool) -> None:
        """Judge the field that carries reasoning, where the dialect has one."""
        carrier = self.dialect.thinking_carrier
        if carrier not in ("reasoning_content", "reasoning_details"):
            return
        given = message.get(carrier)
        if given is not None and type(given) is not (str if carrier == "reasoning_content" else list):
            self.fault("ALL-02", f"{self.here}.{carrier}", f"{kind_of(given)} where reasoning belongs")
        elif calling and not given and self.dialect.thinking_required == "with_calls":
            self.fault("ALL-02", self.here, f"tool calls without {carrier}", case="reasoning")

    def _tool(self, message: dict[str, JsonValue]) -> None:
        self._content(message.get("content"), "tool")
        call_id = message.get("tool_call_id")
        if type(call_id) is not str:
            what = f"tool_call_id is a string, not {kind_of(call_id)}"
            self.fault("ALL-02", self.here, what, case="tool_call_id")
        elif call_id in self.due:
            del self.due[call_id]
            self.answered.add(call_id)
        elif call_id in self.answered:
            what = f"a second result for tool call {shown(call_id)}"
            self.fault("OAC-02", self.here, what, call_id, case="duplicate")
        else:
            what = f"a result for {shown(call_id)}, which is no open tool call"
            self.fault("OAC-02", self.here, what, call_id, case=self._stray())

    def _stray(self) -> str:
        """Return where a result stands that answers nothing."""
        if self.due:
            return "unknown"
        return f"after {self.role}" if self.role in ("assistant", "tool") else "after user"

    # --- content ------------------------------------------------------------------------------------

    def _content(self, content: JsonValue, role: str) -> None:
        if type(content) is str:
            if self.longest is not None and len(content) > self.longest:
                self._too_long(f"{self.here}.content", content)
        elif type(content) is list:
            if not content:
                self.fault("ALL-11", f"{self.here}.content", "the list of parts is empty")
            for index, part in enumerate(content):
                self._part(part, role, f"{self.here}.content[{index}]")
            if role == "assistant" and self.dialect.thinking_carrier == "thinking_chunk":
                self._leads(content)
        else:
            self.fault(
                "OAC-05", f"{self.here}.content", f"a string or a list of parts, not {kind_of(content)}"
            )

    def _leads(self, content: list[JsonValue]) -> None:
        """Judge that reasoning comes before all else."""
        thinks = [type(part) is dict and part.get("type") == "thinking" for part in content]
        if sorted(thinks, reverse=True) != thinks:
            self.fault("ALL-08", f"{self.here}.content", "thinking after other content", case="thinking")

    def _part(self, part: JsonValue, role: str, where: str) -> None:
        if type(part) is not dict:
            return self.fault("OAC-05", where, f"a part is an object, not {kind_of(part)}")
        kind = part.get("type")
        held = self.dialect.result_media if role == "tool" else self.dialect.user_media
        thinks = (
            kind == "thinking" and self.dialect.thinking_carrier == "thinking_chunk" and role == "assistant"
        )
        if type(kind) is not str or (kind not in _PARTS[role] and not thinks):
            if role != "tool" or type(kind) is not str or _MEDIA.get(kind) not in held:
                return self.fault(
                    "OAC-08", where, f"a part of type {shown(kind)} in a message of role {role}"
                )
        elif _MEDIA.get(kind, "text") not in held | {"text"}:
            return self.fault("ALL-10", where, f"{_MEDIA[kind]} is not accepted")
        self.allow_only("ALL-07", where, part, _PART_KEYS[kind])
        if kind in _MEDIA:
            self.attach(_MEDIA[kind], where)
        return self._payload(part, kind, where)

    def _payload(self, part: dict[str, JsonValue], kind: str, where: str) -> None:
        payload = part.get(kind)
        if kind == "thinking":
            if type(payload) is not list or not payload:
                self.fault("ALL-02", where, "thinking is a list of text chunks")
        elif kind not in ("text", "refusal"):
            if type(payload) is not dict or not payload:
                self.fault("ALL-02", where, f"{kind} is an object, not {kind_of(payload)}")
            elif kind == "image_url" and not self.dialect.media_urls and not _inline(payload.get("url")):
                self.fault("ALL-10", where, "an image by address")
        elif type(payload) is not str:
            self.fault("ALL-02", where, f"{kind} is a string, not {kind_of(payload)}")
        elif not payload and self.dialect.drop_empty_text:
            self.fault("ALL-11", where, f"the {kind} part is empty", case="part")
        elif self.longest is not None and len(payload) > self.longest:
            self._too_long(where, payload)

    def _too_long(self, where: str, text: str) -> None:
        self.fault("OAC-14", where, f"a string of {len(text)} characters, at most {self.longest}")

    # --- tool calls ---------------------------------------------------------------------------------

    def _calls(self, calls: JsonValue) -> None:
        if type(calls) is not list or not calls:
            return self.fault("ALL-02", f"{self.here}.tool_calls", "a list of at least one tool call")
        if len(calls) > 1 and not self.dialect.calls_together:
            self.fault("CMP-02", f"{self.here}.tool_calls", f"{len(calls)} tool calls in one message")
        for index, call in enumerate(calls):
            kind = call.get("type") if type(call) is dict else None
            if type(call) is not dict or type(kind) is not str or kind not in _CALL_KEYS:
                self.fault("ALL-02", f"{self.here}.tool_calls[{index}]", f"a tool call of type {shown(kind)}")
                continue
            if kind != "function":
                self._custom(kind, f"{self.here}.tool_calls[{index}]")
            if not call.keys() <= _CALL_KEYS[kind]:
                self.allow_only("ALL-07", f"{self.here}.tool_calls[{index}]", call, _CALL_KEYS[kind])
            self._id(call.get("id"), index)
            self._inner(call.get(kind), kind, index)
        return None

    def _id(self, call_id: JsonValue, index: int) -> None:
        if type(call_id) is not str:
            where = f"{self.here}.tool_calls[{index}].id"
            return self.fault("ALL-02", where, "a tool call has a string as id", case="id")
        if not self.is_id(call_id):
            long = len(call_id) > self.dialect.id_max_len
            what = (
                f"{len(call_id)} characters, at most {self.dialect.id_max_len}" if long else "not of the form"
            )
            where = f"{self.here}.tool_calls[{index}].id"
            self.fault("OAC-03" if long else "ALL-03", where, f"id {shown(call_id)}: {what}", call_id)
        taken = self.take_id(call_id)
        if call_id in self.due or (taken and self.dialect.id_unique_scope == "transcript"):
            self.fault(
                "ALL-04", f"{self.here}.tool_calls[{index}].id", f"id {shown(call_id)} is taken", call_id
            )
        self.due[call_id] = None
        return None

    def _inner(self, inner: JsonValue, kind: str, index: int) -> None:
        argument = _INPUT[kind]
        if type(inner) is not dict:
            return self.fault("ALL-02", f"{self.here}.tool_calls[{index}]", f"{kind} is an object")
        if not inner.keys() <= _INNER_KEYS[kind]:
            self.allow_only("ALL-07", f"{self.here}.tool_calls[{index}].{kind}", inner, _INNER_KEYS[kind])
        name, given = inner.get("name"), inner.get(argument)
        if type(name) is not str or not self.is_name(name):
            self.fault("OAC-10", f"{self.here}.tool_calls[{index}].{kind}.name", f"tool name {shown(name)}")
        why = why_no_object(given) if kind == "function" else "" if type(given) is str else "not a string"
        if why:
            where = f"{self.here}.tool_calls[{index}].{kind}.{argument}"
            self.fault("ALL-06", where, f"{shown(given)} is {why}")
        elif type(given) is str and self.longest is not None and len(given) > self.longest:
            self._too_long(f"{self.here}.tool_calls[{index}].{kind}.{argument}", given)
        return None

    def _custom(self, kind: str, where: str) -> None:
        """Judge a tool that is no function: the vendors know none."""
        if self.dialect.rules:
            self.fault("ALL-02", where, f"a tool of type {shown(kind)}", case="kind")

    # --- the rest of the request --------------------------------------------------------------------

    def head(self, body: dict[str, JsonValue]) -> None:
        self.allow_only("OAC-12", "request", body, top_keys(self.dialect, _TOP))
        model, key = body.get("model"), body.get("prompt_cache_key")
        if type(model) is not str or not model:
            self.fault("OAC-19", "model", f"a model name, not {shown(model)}")
        if type(key) is str and len(key) > 64:
            self.fault("OAC-17", "prompt_cache_key", f"{len(key)} characters, at most 64")
        for field in ("max_tokens", "max_completion_tokens"):
            limit = body.get(field)
            if limit is not None and (type(limit) is not int or limit < 1):
                self.fault("ALL-02", field, f"a whole number from 1, not {shown(limit)}")
        if body.get("stream_options") is not None and not body.get("stream"):
            self.fault("ALL-02", "stream_options", "given without stream")
        tools, names = body.get("tools"), set[str]()
        if type(tools) is list and tools:
            self._tools(tools, names)
        elif tools is not None:
            self.fault("ALL-02", "tools", "a list of at least one tool", case="tools")
        self._choice(body, names)
        self._forced(body)

    def _forced(self, body: dict[str, JsonValue]) -> None:
        """Judge a forced tool by whether the model may be thinking."""
        switch = body.get("thinking")
        thinks = type(switch) is not dict or switch.get("type") != "disabled"
        refused = self.dialect.forced_choice == "no" or (
            self.dialect.forced_choice == "not_when_thinking" and thinks
        )
        choice = body.get("tool_choice")
        if refused and choice not in (None, "auto", "none"):
            self.fault("ALL-14", "tool_choice", f"{shown(choice)} forces a tool", case="forced")

    def _choice(self, body: dict[str, JsonValue], names: set[str]) -> None:
        for key in ("tool_choice", "parallel_tool_calls"):
            if body.get(key) is not None and not body.get("tools"):
                self.fault("ALL-14", key, "given without tools")
        choice = body.get("tool_choice")
        kind = choice.get("type") if type(choice) is dict else None
        if type(choice) is dict and type(kind) is str and kind in _TOOL_KEYS:
            named = choice.get(kind)
            name = named.get("name") if type(named) is dict else None
            if type(name) is not str or name not in names:
                self.fault("ALL-14", "tool_choice", f"tool {shown(name)} is not declared")

    def _tools(self, tools: list[JsonValue], names: set[str]) -> None:
        most = self.dialect.max_tools
        if most is not None and len(tools) > most:
            self.fault("OAC-09", "tools", f"{len(tools)} tools, at most {most}")
        for index, tool in enumerate(tools):
            kind = tool.get("type") if type(tool) is dict else None
            if type(tool) is not dict or type(kind) is not str or kind not in _TOOL_KEYS:
                self.fault("ALL-02", f"tools[{index}]", f"a tool of type {shown(kind)}", case="kind")
                continue
            if kind != "function":
                self._custom(kind, f"tools[{index}]")
            self.allow_only("ALL-07", f"tools[{index}]", tool, _TOOL_KEYS[kind])
            declared = tool.get(kind)
            if type(declared) is not dict:
                self.fault("ALL-02", f"tools[{index}]", f"{kind} is an object")
                continue
            self.allow_only("ALL-07", f"tools[{index}].{kind}", declared, _DECLARED_KEYS[kind])
            self._declared(declared, f"tools[{index}].{kind}", names)

    def _declared(self, tool: dict[str, JsonValue], where: str, names: set[str]) -> None:
        name, schema = tool.get("name"), tool.get("parameters")
        if type(name) is not str or not self.is_name(name):
            self.fault("OAC-10", f"{where}.name", f"tool name {shown(name)}")
        elif name in names:
            self.fault("ALL-13", f"{where}.name", f"tool name {shown(name)} is declared twice")
        else:
            names.add(name)
        if schema is not None and (wanted := why_no_root(schema, _ROOTLESS)):
            self.fault("OAC-11", f"{where}.parameters", wanted)
        elif schema is not None and self.dialect.schema_subset == "moonshot":
            for what in schema_faults(schema, "parameters"):
                self.fault("OAC-11", where, what)


def _inline(url: JsonValue) -> bool:
    return type(url) is str and url.startswith("data:")


_Reader = Callable[[OpenAIChat, dict[str, JsonValue]], None]
_READERS: dict[str, _Reader] = {
    "system": OpenAIChat._said,
    "developer": OpenAIChat._said,
    "user": OpenAIChat._said,
    "function": OpenAIChat._said,
    "assistant": OpenAIChat._assistant,
    "tool": OpenAIChat._tool,
}
