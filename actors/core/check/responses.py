"""Judge OpenAI Responses, item by item.

The central rule is pairing by `call_id`: each call needs one output. The host accepts outputs anywhere after their
calls. Stricter copies require that each run of calls is answered directly, which `calls_last` enables: a call is stale
when another item follows it, and an output of a stale call is misplaced. Reasoning must be followed by the item that it
produced, and either both have an item id or neither. References to stored responses are valid only if the request
stores its own response.
"""

import re
from collections.abc import Callable, Mapping

from actors.core.check.state import INPUT, ROOTLESS, Shape, Whole, excerpt, inside, shape
from actors.core.data.jsonio import JsonValue

_TOP = shape(
    """access_programs background background_options client_metadata context_management conversation image
    include input instructions max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls
    previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning
    safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs
    top_p truncation user"""
)
_TOOL = shape("type name description parameters strict defer_loading allowed_callers output_schema async")
_ANY = shape("type id status internal_chat_message_metadata_passthrough")
_ITEMS = {
    "message": _ANY | shape("role content phase"),
    "function_call": _ANY | shape("call_id name namespace caller arguments async"),
    "custom_tool_call": _ANY | shape("call_id name namespace caller input async"),
    **dict.fromkeys(
        ("function_call_output", "custom_tool_call_output"),
        _ANY | shape("call_id output caller name namespace"),
    ),
    "reasoning": _ANY | shape("summary content encrypted_content"),
    "compaction": _ANY | shape("encrypted_content created_by"),
}
_INPUT_PARTS = {
    "input_text": shape("type text prompt_cache_breakpoint"),
    "input_image": shape("type image_url file_id detail prompt_cache_breakpoint"),
    "input_file": shape("type file_url file_data file_id filename detail prompt_cache_breakpoint"),
}
_PARTS = dict.fromkeys(("user", "system", "developer"), _INPUT_PARTS) | {
    "assistant": {
        "output_text": shape("type text annotations logprobs"),
        "refusal": shape("type refusal"),
        "input_text": _INPUT_PARTS["input_text"],
    },
}
_WORDS = {"input_text": "text", "output_text": "text", "refusal": "refusal"}
_MEDIA = {
    "input_image": ("image", ("image_url", "file_id")),
    "input_file": ("document", ("file_url", "file_data", "file_id")),
}
_PREFIXES = {"message": "msg", "function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs"}
_ITEM_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ARGUMENTS: Mapping[str, str] = dict(zip(("function_call", "custom_tool_call"), INPUT.values(), strict=True))
_TO_RUN = (*_ARGUMENTS, "local_shell_call", "shell_call", "apply_patch_call", "computer_call")
_OUTPUTS = tuple(f"{kind}_output" for kind in _TO_RUN)
_OWN = shape(
    """web_search_call file_search_call code_interpreter_call image_generation_call mcp_call mcp_list_tools
    mcp_approval_request tool_search_call tool_search_output tool_search_call_output program program_output"""
)
_ASIDE = frozenset(
    {"additional_tools", "compaction_trigger", "configuration_update", "mcp_approval_response"}
)


class Responses(Whole):
    """The judge of the family `responses`. The value of an open call in `due` is its kind.

    Attributes:
        thinks: True if the last item is reasoning with an id, False if it is reasoning without one, otherwise None.
        outputs: Whether outputs have followed the last call.
        stale: The ids of open calls that another item follows.
        stores: Whether the provider stores the response, so that references may be valid. Our requests never do.
        continues: Whether the input continues a conversation that the provider stores.
        hosted: The ids of commands that the provider runs in a container; they need no output.
    """

    container = "input"
    piece = "item"

    thinks: bool | None = None
    outputs: bool = False
    stores: bool = False
    continues: bool = False
    stale: frozenset[str] = frozenset()
    hosted: frozenset[str] = frozenset()
    names: set[str]
    role: str | None
    count: int

    def read(self, messages: list[JsonValue], *, resumes: bool = False) -> None:
        for item in messages:
            self.count += 1
            if type(item) is not dict:
                self.reject("an item is an object", "", item)
                continue
            kind = item["type"] if "type" in item else "message" if "role" in item else None
            if kind is None and "id" in item and item.keys() <= {"type", "id"}:
                item, kind = {**item, "type": "item_reference"}, "item_reference"
            if type(kind) is not str or kind not in _CHECKS:
                self.fault("ALL-02", "", f"an item of type {excerpt(kind)}")
            elif kind not in _ASIDE:
                if kind in _ITEMS and not item.keys() <= _ITEMS[kind].keys():
                    self.allow_only("", item, _ITEMS[kind])
                by_assistant = "role" in item and item["role"] == "assistant"
                self._follow_with(kind, item["id"] if "id" in item else None, by_assistant)
                _CHECKS[kind](self, item)

    def _follow_with(self, kind: str, item_id: JsonValue, by_assistant: bool) -> None:
        """Judge the kind and id of an item after the previous one."""
        by_model = kind not in _OUTPUTS and (kind != "message" or by_assistant)
        identified = item_id is not None
        if self.thinks is not None and not by_model:
            what = f"a reasoning item is followed by {kind} instead of the item that it produced"
            self.fault("OAR-03", "", what)
        elif self.thinks is not None and kind in _PREFIXES and kind != "reasoning":
            if identified and not self.thinks:
                self.fault("OAR-04", "", "an item with an id after reasoning without one")
            elif self.thinks and not identified:
                self.fault("OAR-03", "", "an item without an id after reasoning with one")
        self.thinks = identified if kind == "reasoning" else None
        if kind in _OUTPUTS:
            self.outputs = True
        elif self.outputs or kind not in (*_TO_RUN, "reasoning"):
            if self.due and self.dialect.turns.calls_last:
                self.stale = self.stale.union(self.due)
            self.outputs = False
        if identified and kind not in ("item_reference", "local_shell_call_output"):
            self._item_id(kind, item_id)

    def _item_id(self, kind: str, item_id: JsonValue) -> None:
        prefix = _PREFIXES.get(kind, "")
        if type(item_id) is not str or not _ITEM_ID.fullmatch(item_id):
            self.fault("ALL-02", ".id", f"an item id, not {excerpt(item_id)}")
        elif not item_id.startswith(prefix):
            self.fault("OAR-06", ".id", f"{excerpt(item_id)} does not begin with {prefix!r}")
        elif (
            taken := f"item {item_id}"
        ) in self.fresh or taken in self.used:  # the space avoids collisions with call ids
            self.fault("OAR-07", ".id", f"{excerpt(item_id)} occurs twice")
        else:
            self.fresh[taken] = None

    def finish(self, *, manual_thinking: bool) -> None:
        if self.thinks is not None:
            self.fault(
                "OAR-03", "", "a reasoning item is the last item; the item that it produced is missing"
            )
        super().finish(manual_thinking=manual_thinking)

    def fault_unanswered(self, when: str) -> None:
        for call_id, kind in self.due.items():
            rule = "OAR-01" if kind == "function_call" else "OAR-11"
            self.fault(rule, "", f"no output for call {excerpt(call_id)}", call_id)

    def _message(self, item: dict[str, JsonValue]) -> None:
        role = item["role"] if "role" in item else None
        content = item["content"] if "content" in item else None
        if type(role) is not str or role not in _PARTS:
            return self.fault("ALL-02", "", f"role {excerpt(role)} does not exist")
        if self.role is None and role in ("user", "assistant") and role not in self.dialect.turns.first_roles:
            self.fault("ALL-09", "", f"a transcript cannot begin with role {role}")
        if role in ("user", "assistant") or self.role is not None:
            self.role = role
        if "phase" in item and item["phase"] not in (None, "commentary", "final_answer"):
            self.fault("ALL-02", ".phase", f"phase {excerpt(item['phase'])} does not exist")
        if content == "" and role == "assistant":
            self.fault("ALL-11", "", "an assistant message is empty")
        return self._content(content, "ALL-02", ".content", _PARTS[role], self.dialect.media.user_kinds)

    def _call(self, item: dict[str, JsonValue]) -> None:
        argument, name = _ARGUMENTS[str(item["type"])], item["name"] if "name" in item else None
        self.check_arguments(name, item[argument] if argument in item else None, argument, "")
        self._command(item)

    def _command(self, item: dict[str, JsonValue]) -> None:
        call_id = item["call_id"] if "call_id" in item else None
        self.role = "assistant"
        if type(call_id) is not str:
            return self.reject("a string", ".call_id", call_id)
        if inside(item.get("environment"), "type") == "container_reference":
            self.hosted |= {call_id}
            return None
        self.stale -= {call_id}
        return self.open_call(call_id, ".call_id", item["type"])

    def _output(self, item: dict[str, JsonValue]) -> None:
        self._answer(item)
        output = item["output"] if "output" in item else None
        self._content(output, "OAR-10", ".output", _INPUT_PARTS, self.dialect.media.result_kinds)

    def _answer(self, item: dict[str, JsonValue]) -> None:
        call_id, kind = item["call_id"] if "call_id" in item else None, item["type"]
        self.role = "tool"
        if (
            kind == "local_shell_call_output" and call_id is None
        ):  # the output has the item id of the call instead
            call_id = next((open_id for open_id, made in self.due.items() if f"{made}_output" == kind), None)
        if kind == "shell_call_output" and call_id in self.hosted:
            return None
        if type(call_id) is not str:
            return self.reject("a string", ".call_id", call_id)
        if f"{self.due.get(call_id)}_output" != item["type"]:
            if not self.continues:
                what = f"an output for {excerpt(call_id)}, but that call is not open"
                self.fault("OAR-02", "", what, call_id)
            return None
        if call_id in self.stale:
            self.fault("OAR-14", "", f"the output of {excerpt(call_id)} is not behind its call", call_id)
            self.stale -= {call_id}
        del self.due[call_id]
        self.outputs = self.outputs and bool(self.due)
        return None

    def _reasoning(self, item: dict[str, JsonValue]) -> None:
        if type(summary := item.get("summary")) is not list:
            self.reject("a list", ".summary", summary)
        state = item.get("encrypted_content")
        self.role = "assistant"
        if self.dialect.reasoning.carrier != "reasoning_item":
            self.fault("ALL-08", "", "the host does not accept reasoning")
        if not (type(state) is str and state) and not self.stores:
            self.fault("OAR-05", "", "reasoning without its encrypted content is only a reference")

    def _reference(self, item: dict[str, JsonValue]) -> None:
        self.role = self.role or "user"
        if item["type"] == "item_reference" and not self.stores:
            self.fault("OAR-05", "", f"item_reference {excerpt(item.get('id'))}: nothing was stored")

    def _provider_part(self, item: dict[str, JsonValue]) -> None:
        self.role = "assistant"

    def _content(
        self, content: JsonValue, rule: str, where: str, held: Mapping[str, Shape], media: frozenset[str]
    ) -> None:
        if type(content) is not str or len(content) > self.longest:
            for at, part in self.parts(content, where, rule):
                self._part(part, at, held, media)

    def _part(self, part: JsonValue, where: str, held: Mapping[str, Shape], media: frozenset[str]) -> None:
        kind = part.get("type") if type(part) is dict else None
        if type(part) is not dict or type(kind) is not str or kind not in held:
            return self.fault("ALL-02", where, f"a part of type {excerpt(kind)}")
        self.allow_only(where, part, held[kind])
        if kind in _WORDS:
            return self.check_text(part.get(_WORDS[kind]), _WORDS[kind], kind, where)
        name, sources = _MEDIA[kind]
        if name not in media:
            self.fault("ALL-10", where, f"{name} is not accepted")
        self.count_attachment(name, where)
        if not any(type(part.get(source)) is str and part[source] for source in sources):
            self.fault("ALL-02", where, f"{kind} has one of {', '.join(sources)}")
        return None

    def parameters(self, body: dict[str, JsonValue]) -> None:
        self.allow_only("request", body, _TOP)
        if type(text := body.get("input")) is str:
            body["input"] = [{"role": "user", "content": text}]
        self.check_model(body.get("model"))
        self.stores = body.get("store") is not False
        for key in ("previous_response_id", "conversation"):
            if body.get(key) is not None:
                self.continues = True
                if not self.stores:
                    self.fault("OAR-05", key, "a conversation that the provider keeps")
        tools, choice = body.get("tools"), body.get("tool_choice")
        if tools is not None:
            self._tools(tools, "tools")
        if choice is not None and not tools:
            self.fault("ALL-14", "tool_choice", "given without tools")
        elif inside(choice, "type") in ("function", "custom"):
            self.check_choice(inside(choice, "name"), "tool_choice")

    def _tools(self, tools: JsonValue, where: str) -> None:
        for at, tool in self.each(tools, where, "tools"):
            kind = inside(tool, "type")
            if type(tool) is not dict or type(kind) is not str:
                self.fault("ALL-02", at, f"a tool of type {excerpt(kind)}")
                continue
            if kind == "namespace" and type(tool.get("tools")) is list:
                outer, self.names = self.names, set()  # the names belong to the server
                self._tools(tool["tools"], f"{at}.tools")
                self.names |= outer
            if kind in INPUT:
                self.declare_tool(tool.get("name"), at)
            if kind == "function":
                self.allow_only(at, tool, _TOOL)
                if (schema := tool.get("parameters")) is not None:
                    self.check_schema(schema, f"{at}.parameters", ROOTLESS)


_CHECKS: dict[str, Callable[[Responses, dict[str, JsonValue]], None]] = {
    **dict.fromkeys((*_OWN, *_ASIDE), Responses._provider_part),
    **dict.fromkeys(_TO_RUN, Responses._command),
    **dict.fromkeys(_OUTPUTS, Responses._answer),
    **dict.fromkeys(_ARGUMENTS, Responses._call),
    **dict.fromkeys(("function_call_output", "custom_tool_call_output"), Responses._output),
    "message": Responses._message,
    "reasoning": Responses._reasoning,
    "compaction": Responses._reference,
    "item_reference": Responses._reference,
}
