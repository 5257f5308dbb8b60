"""What OpenAI Responses demands of a stateless request, item by item.

The heart is pairing by `call_id`: a call opens, an output takes it out. The host itself takes outputs anywhere
behind their calls; stricter copies want each run of calls answered at once, so that is judged too, with `calls_last`:
a call is stale when something else stands behind it, and an output that comes for a stale call is out of place.
Reasoning is followed by what it led to. Nothing but encrypted reasoning has an item id, for nothing was stored.
"""

import re
from collections.abc import Callable

from actors.core.check.state import CHOICES, Fold, kind_of, shown, why_no_object, why_no_root
from actors.core.jsonio import JsonValue

_TOP = frozenset(
    """access_programs background background_options context_management conversation image include input
    instructions max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls
    previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning
    safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs
    top_p truncation user""".split()  # noqa: SIM905  as a list it is a page
)
_MESSAGE = frozenset({"type", "role", "content", "id", "status", "phase"})
_CALLS = {
    "function_call": (
        frozenset({"type", "call_id", "name", "arguments", "id", "status", "namespace", "caller"}),
        "arguments",
    ),
    "custom_tool_call": (
        frozenset({"type", "call_id", "name", "input", "id", "status", "namespace", "caller"}),
        "input",
    ),
}
_OUTPUT = frozenset({"type", "call_id", "output", "id", "status", "caller", "name"})
_REASONING = frozenset({"type", "id", "summary", "content", "encrypted_content", "status"})
_COMPACTION = frozenset({"type", "id", "encrypted_content"})
_INPUT_PARTS = {
    "input_text": frozenset({"type", "text", "prompt_cache_breakpoint"}),
    "input_image": frozenset({"type", "image_url", "file_id", "detail", "prompt_cache_breakpoint"}),
    "input_file": frozenset(
        {"type", "file_url", "file_data", "file_id", "filename", "detail", "prompt_cache_breakpoint"}
    ),
}
_OUTPUT_PARTS = {
    "output_text": frozenset({"type", "text", "annotations", "logprobs"}),
    "refusal": frozenset({"type", "refusal"}),
}
_PARTS = {
    "user": _INPUT_PARTS,
    "system": _INPUT_PARTS,
    "developer": _INPUT_PARTS,
    "assistant": {**_OUTPUT_PARTS, "input_text": _INPUT_PARTS["input_text"]},
}
_WORDS = {"input_text": "text", "output_text": "text", "refusal": "refusal"}
_MEDIA = {
    "input_image": ("image", ("image_url", "file_id")),
    "input_file": ("document", ("file_url", "file_data", "file_id")),
}
_PREFIXES = {"message": "msg", "function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs"}
_ITEM_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ROOTLESS = (*CHOICES, "enum", "not")
_TOOL = frozenset(
    {
        "type",
        "name",
        "description",
        "parameters",
        "strict",
        "defer_loading",
        "allowed_callers",
        "output_schema",
    }
)


class Responses(Fold):
    """The fold of the family `responses`."""

    container = "input"

    def message(self, value: JsonValue) -> None:
        self.count += 1
        if type(value) is not dict:
            return self.fault("ALL-02", self.here, f"an item is an object, not {kind_of(value)}")
        kind = value.get("type", "message" if "role" in value else None)
        reader = _READERS.get(kind) if type(kind) is str else None
        if type(kind) is not str or reader is None:
            return self.fault("ALL-02", self.here, f"an item of type {shown(kind)}")
        self._stand_behind(kind, value.get("role"))
        self._item_id(kind, value)
        reader(self, value)
        self.thinks = kind == "reasoning"
        return None

    def finish(self, *, manual_thinking: bool) -> None:
        if self.thinks:
            self._unfollowed("at the end")
        for call_id in self.due:
            rule = "OAR-11" if call_id in self.custom else "OAR-01"
            self.fault(rule, self.here, f"no output for call {shown(call_id)}", call_id)
        if not self.count:
            self.fault("ALL-02", "input", "there is no item")
        elif self.role not in self.dialect.last_roles:
            self.fault("ALL-05", self.here, f"a request cannot end with role {self.role or 'system'}")

    # --- the sequence -------------------------------------------------------------------------------

    def _stand_behind(self, kind: str, role: JsonValue) -> None:
        """Judge an item by what it stands behind."""
        by_model = kind in ("function_call", "custom_tool_call", "reasoning", "compaction") or (
            kind == "message" and role == "assistant"
        )
        if self.thinks and not by_model:
            self._unfollowed(f"before this {kind}")
        if kind in _OUTPUTS:
            self.mixed = True
            return
        if self.mixed or kind not in (*_CALLS, "reasoning"):
            if self.dialect.calls_last:
                self.stale |= self.due.keys()
            self.mixed = False

    def _unfollowed(self, when: str) -> None:
        self.fault("OAR-03", self.here, f"a reasoning item is not followed by what it led to, {when}")

    def _item_id(self, kind: str, item: dict[str, JsonValue]) -> None:
        named = item.get("id")
        if named is None or kind == "item_reference":
            return None
        if type(named) is not str or not _ITEM_ID.fullmatch(named):
            return self.fault("ALL-02", f"{self.here}.id", f"an item id, not {shown(named)}")
        prefix = _PREFIXES.get(kind, "")
        if not named.startswith(prefix):
            return self.fault("OAR-06", f"{self.here}.id", f"{shown(named)} does not begin with {prefix!r}")
        if kind not in ("reasoning", "compaction"):
            self.fault("OAR-05", f"{self.here}.id", f"{shown(named)} was not stored")
        if self.take_id(f"item {named}"):  # no call id has a space in it
            self.fault("OAR-07", f"{self.here}.id", f"{shown(named)} occurs twice")
        return None

    # --- items --------------------------------------------------------------------------------------

    def _message(self, item: dict[str, JsonValue]) -> None:
        role = item.get("role")
        if type(role) is not str or role not in _PARTS:
            return self.fault("ALL-02", self.here, f"role {shown(role)} does not exist")
        self.allow_only("ALL-07", self.here, item, _MESSAGE)
        if self.role is None and role in ("user", "assistant") and role not in self.dialect.first_roles:
            self.fault("ALL-09", self.here, f"a transcript cannot begin with role {role}")
        if role in ("user", "assistant") or self.role is not None:
            self.role = role
        if item.get("phase") not in (None, "commentary", "final_answer"):
            self.fault("ALL-02", f"{self.here}.phase", f"phase {shown(item['phase'])} does not exist")
        content = item.get("content")
        if type(content) is str:
            if not content and role == "assistant":
                self.fault("ALL-11", self.here, "an assistant message is empty")
            return self._length(content, f"{self.here}.content")
        if type(content) is not list:
            what = f"a string or a list of parts, not {kind_of(content)}"
            return self.fault("ALL-02", f"{self.here}.content", what)
        return self._parts(content, f"{self.here}.content", _PARTS[role], self.dialect.user_media)

    def _call(self, item: dict[str, JsonValue]) -> None:
        kind = str(item["type"])
        keys, argument = _CALLS[kind]
        self.allow_only("ALL-07", self.here, item, keys)
        self.role = "assistant"
        name, given = item.get("name"), item.get(argument)
        if type(name) is not str or not self.is_name(name):
            self.fault("ALL-02", f"{self.here}.name", f"tool name {shown(name)}")
        why = (
            why_no_object(given) if kind == "function_call" else "" if type(given) is str else "not a string"
        )
        if why:
            self.fault("ALL-06", f"{self.here}.{argument}", f"{shown(given)} is {why}")
        call_id = self._call_id(item)
        if call_id is None:
            return
        if self.take_id(call_id):
            self.fault("ALL-04", f"{self.here}.call_id", f"id {shown(call_id)} is taken", call_id)
        self.stale.discard(call_id)
        self.due[call_id] = None
        (self.custom.add if kind == "custom_tool_call" else self.custom.discard)(call_id)

    def _call_id(self, item: dict[str, JsonValue]) -> str | None:
        call_id = item.get("call_id")
        if type(call_id) is not str:
            self.fault("ALL-02", f"{self.here}.call_id", f"a string, not {kind_of(call_id)}")
            return None
        if not self.is_id(call_id):
            long = len(call_id) > self.dialect.id_max_len
            most = self.dialect.id_max_len
            what = f"{len(call_id)} characters, at most {most}" if long else "not of the form"
            where = f"{self.here}.call_id"
            self.fault("OAR-08" if long else "ALL-03", where, f"id {shown(call_id)}: {what}", call_id)
        return call_id

    def _output(self, item: dict[str, JsonValue]) -> None:
        self.allow_only("ALL-07", self.here, item, _OUTPUT)
        self.role = "tool"
        call_id, output = item.get("call_id"), item.get("output")
        if type(call_id) is not str:
            self.fault("ALL-02", f"{self.here}.call_id", f"a string, not {kind_of(call_id)}")
        elif call_id not in self.due or (call_id in self.custom) != (item["type"] != "function_call_output"):
            self.fault("OAR-02", self.here, f"an output for {shown(call_id)}, which is no open call", call_id)
        else:
            if call_id in self.stale:
                self.fault(
                    "OAR-14", self.here, f"the output of {shown(call_id)} is not behind its call", call_id
                )
            self._close(call_id)
        if type(output) is str:
            self._length(output, f"{self.here}.output")
        elif type(output) is not list:
            what = f"a string or a list of parts, not {kind_of(output)}"
            self.fault("OAR-10", f"{self.here}.output", what)
        else:
            self._parts(output, f"{self.here}.output", _INPUT_PARTS, self.dialect.result_media)

    def _close(self, call_id: str) -> None:
        del self.due[call_id]
        self.stale.discard(call_id)
        self.custom.discard(call_id)
        if not self.due:
            self.mixed = False

    def _reasoning(self, item: dict[str, JsonValue]) -> None:
        self.allow_only("ALL-07", self.here, item, _REASONING)
        self.role = "assistant"
        if self.dialect.thinking_carrier != "reasoning_item":
            self.fault("ALL-08", self.here, "reasoning is not taken")
        if type(item.get("summary")) is not list:
            self.fault("ALL-02", self.here, "reasoning has a list as summary")
        elif type(state := item.get("encrypted_content")) is not str or not state:
            self.fault("OAR-05", self.here, "reasoning without its encrypted content is only a reference")

    def _compaction(self, item: dict[str, JsonValue]) -> None:
        self.allow_only("ALL-07", self.here, item, _COMPACTION)
        self.role = self.role or "user"

    def _reference(self, item: dict[str, JsonValue]) -> None:
        self.fault("OAR-05", self.here, f"item_reference {shown(item.get('id'))}: nothing was stored")

    # --- content ------------------------------------------------------------------------------------

    def _parts(
        self, parts: list[JsonValue], where: str, held: dict[str, frozenset[str]], media: frozenset[str]
    ) -> None:
        if not parts:
            self.fault("ALL-11", where, "the list of parts is empty")
        for index, part in enumerate(parts):
            self._part(part, f"{where}[{index}]", held, media)

    def _part(
        self, part: JsonValue, where: str, held: dict[str, frozenset[str]], media: frozenset[str]
    ) -> None:
        kind = part.get("type") if type(part) is dict else None
        if type(part) is not dict or type(kind) is not str or kind not in held:
            return self.fault("ALL-02", where, f"a part of type {shown(kind)}")
        self.allow_only("ALL-07", where, part, held[kind])
        if kind in _MEDIA:
            name, sources = _MEDIA[kind]
            if name not in media:
                self.fault("ALL-10", where, f"{name} is not accepted")
            self.attach(name, where)
            if not any(type(part.get(source)) is str and part[source] for source in sources):
                self.fault("ALL-02", where, f"{kind} has one of {', '.join(sources)}")
            return None
        text = part.get(_WORDS[kind])
        if type(text) is not str:
            return self.fault("ALL-02", where, f"{_WORDS[kind]} is a string, not {kind_of(text)}")
        if not text and self.dialect.drop_empty_text:
            self.fault("ALL-11", where, f"the {kind} part is empty")
        return self._length(text, where)

    def _length(self, text: str, where: str) -> None:
        if self.longest is not None and len(text) > self.longest:
            self.fault("ALL-02", where, f"a string of {len(text)} characters, at most {self.longest}")

    # --- the rest of the request --------------------------------------------------------------------

    def head(self, body: dict[str, JsonValue]) -> None:
        self.allow_only("ALL-07", "request", body, _TOP)
        model = body.get("model")
        if type(model) is not str or not model:
            self.fault("ALL-02", "model", f"a model name, not {shown(model)}")
        for key in ("previous_response_id", "conversation"):
            if body.get(key) is not None:
                self.fault("OAR-05", key, "a conversation that the provider keeps")
        tools, names = body.get("tools"), set[str]()
        if type(tools) is list:
            self._tools(tools, names)
        elif tools is not None:
            self.fault("ALL-02", "tools", "a list of tools")
        choice = body.get("tool_choice")
        if choice is not None and not tools:
            self.fault("ALL-14", "tool_choice", "given without tools")
        elif type(choice) is dict and choice.get("type") in ("function", "custom"):
            name = choice.get("name")
            if type(name) is not str or name not in names:
                self.fault("ALL-14", "tool_choice", f"tool {shown(name)} is not declared")

    def _tools(self, tools: list[JsonValue], names: set[str]) -> None:
        for index, tool in enumerate(tools):
            kind = tool.get("type") if type(tool) is dict else None
            if type(tool) is not dict or type(kind) is not str:
                self.fault("ALL-02", f"tools[{index}]", f"a tool of type {shown(kind)}")
            elif kind in ("function", "custom"):
                self._declared(tool, kind, f"tools[{index}]", names)

    def _declared(self, tool: dict[str, JsonValue], kind: str, where: str, names: set[str]) -> None:
        name, schema = tool.get("name"), tool.get("parameters")
        if type(name) is not str or not self.is_name(name):
            self.fault("ALL-02", f"{where}.name", f"tool name {shown(name)}")
        elif name in names:
            self.fault("ALL-13", f"{where}.name", f"tool name {shown(name)} is declared twice")
        else:
            names.add(name)
        if kind != "function":
            return
        self.allow_only("ALL-07", where, tool, _TOOL)
        if schema is not None and (wanted := why_no_root(schema, _ROOTLESS)):
            self.fault("ALL-02", f"{where}.parameters", wanted)


_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_READERS: dict[str, Callable[[Responses, dict[str, JsonValue]], None]] = {
    "message": Responses._message,
    "function_call": Responses._call,
    "custom_tool_call": Responses._call,
    "function_call_output": Responses._output,
    "custom_tool_call_output": Responses._output,
    "reasoning": Responses._reasoning,
    "compaction": Responses._compaction,
    "item_reference": Responses._reference,
}
