"""What OpenAI Chat Completions and its vendors demand of a request beside its messages."""

from actors.core.check.moonshot import schema_faults
from actors.core.check.whole import ROOTLESS, Whole
from actors.core.check.words import excerpt
from actors.core.dialect import ChatDialect
from actors.core.jsonio import JsonValue

_TOP = frozenset(
    """audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens
    messages metadata modalities model moderation n parallel_tool_calls prediction presence_penalty
    prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format
    safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools
    top_logprobs top_p user verbosity web_search_options""".split()  # noqa: SIM905  as a list it is a page
)
_SWITCHES = {"type": ("thinking",), "reasoning": ("reasoning",)}
_PINS = {"provider": ("provider",)}
_LONGEST_KEY = 64
INPUT = {"function": "arguments", "custom": "input"}
"""What a call of each kind gives its tool."""
CALL_KEYS = {kind: frozenset({"id", "type", kind}) for kind in INPUT}
_TOOL_KEYS = {kind: frozenset({"type", kind}) for kind in INPUT}
_DECLARED_KEYS = {
    "function": frozenset({"name", "description", "parameters", "strict"}),
    "custom": frozenset({"name", "description", "format"}),
}


class OpenAIChatParameters(Whole):
    """The part of the judge that reads what stands beside the messages."""

    dialect: ChatDialect

    def known_kind(self, kind: str, where: str) -> None:
        """Judge the kind of a tool, or of a call."""
        if kind != "function" and not self.dialect.request.custom_tools:
            self.fault("ALL-02 kind", where, f"a tool of type {excerpt(kind)}")

    def parameters(self, body: dict[str, JsonValue]) -> None:
        dialect = self.dialect
        known = dialect.request.keys or _TOP | {
            *_SWITCHES.get(dialect.reasoning.switch, ()),
            *_PINS.get(dialect.request.upstream_pin, ()),
        }
        if unknown := [key for key in body if key not in known]:
            self.fault("OAC-12", "request", "unknown key " + ", ".join(map(excerpt, unknown)))
        model, key = body.get("model"), body.get("prompt_cache_key")
        self.modelled(model)
        if type(key) is str and len(key) > _LONGEST_KEY:
            self.fault("OAC-17", "prompt_cache_key", f"{len(key)} characters, at most {_LONGEST_KEY}")
        for field in ("max_tokens", "max_completion_tokens"):
            if body.get(field) is not None:
                self.limited(body[field], field)
        if body.get("stream_options") is not None and not body.get("stream"):
            self.fault("ALL-02", "stream_options", "given without stream")
        tools, names = body.get("tools"), set[str]()
        if type(tools) is list and tools:
            self._tools(tools, names)
        elif tools is not None:
            self.fault("ALL-02 tools", "tools", "a list of at least one tool")
        self._choice(body, names)
        self._forced(body)

    def _forced(self, body: dict[str, JsonValue]) -> None:
        """Judge a forced tool by whether the model may be thinking."""
        switch, choice = body.get("thinking"), body.get("tool_choice")
        thinks = type(switch) is not dict or switch.get("type") != "disabled"
        allowed = self.dialect.request.forced_choice
        refused = allowed == "no" or (allowed == "not_when_thinking" and thinks)
        if refused and choice not in (None, "auto", "none"):
            self.fault("ALL-14 forced", "tool_choice", f"{excerpt(choice)} forces a tool")

    def _choice(self, body: dict[str, JsonValue], names: set[str]) -> None:
        for key in ("tool_choice", "parallel_tool_calls"):
            self.chooses(body.get(key), body.get("tools"), key)
        choice = body.get("tool_choice")
        kind = choice.get("type") if type(choice) is dict else None
        if type(choice) is dict and type(kind) is str and kind in _TOOL_KEYS:
            named = choice.get(kind)
            self.chosen(named.get("name") if type(named) is dict else None, "tool_choice", names)

    def _tools(self, tools: list[JsonValue], names: set[str]) -> None:
        most = self.dialect.request.max_tools
        if most is not None and len(tools) > most:
            self.fault("OAC-09", "tools", f"{len(tools)} tools, at most {most}")
        for index, tool in enumerate(tools):
            where = f"tools[{index}]"
            kind = tool.get("type") if type(tool) is dict else None
            if type(tool) is not dict or type(kind) is not str or kind not in _TOOL_KEYS:
                self.fault("ALL-02 kind", where, f"a tool of type {excerpt(kind)}")
                continue
            self.known_kind(kind, where)
            self.allow_only(where, tool, _TOOL_KEYS[kind])
            declared, where = tool.get(kind), f"{where}.{kind}"
            if type(declared) is not dict:
                self.wanted(f"{kind} is an object", where, declared)
                continue
            self.allow_only(where, declared, _DECLARED_KEYS[kind])
            self.declare(declared.get("name"), where, names)
            if (schema := declared.get("parameters")) is not None:
                self._schema(schema, f"{where}.parameters")

    def _schema(self, schema: JsonValue, where: str) -> None:
        before = len(self.faults)
        self.rooted(schema, where, ROOTLESS)
        if len(self.faults) == before and self.dialect.request.schema_subset == "moonshot":
            for what in schema_faults(schema, "parameters"):
                self.fault("ALL-02 schema", where, what)
