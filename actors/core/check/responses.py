"""Check requests of OpenAI Responses, item by item.

The central rule is pairing by `call_id`: each call needs one output. OpenAI accepts outputs anywhere after their calls.
Some compatible hosts require the outputs directly after each series of calls; the field `calls_last` of the dialect
enables this rule. With this rule, a call becomes stale when an item other than an output follows it, and a later output
of the call is misplaced. A reasoning item must be followed by the item that it produced, and either both have an item
id or neither has one. References to stored responses are valid only if the request also stores its response.
"""

import re
from collections.abc import Callable, Mapping

from actors.core.check.json_values import Shape, excerpt, shape, value_at
from actors.core.check.messages import INPUT, ROOTLESS, CompleteMessagesState
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
_COMMANDS = (*_ARGUMENTS, "local_shell_call", "shell_call", "apply_patch_call", "computer_call")
_OUTPUTS = tuple(f"{kind}_output" for kind in _COMMANDS)
_PROVIDER_ITEMS = shape(
    """web_search_call file_search_call code_interpreter_call image_generation_call mcp_call mcp_list_tools
    mcp_approval_request tool_search_call tool_search_output tool_search_call_output program program_output"""
)
_UNCHECKED = frozenset(
    {"additional_tools", "compaction_trigger", "configuration_update", "mcp_approval_response"}
)


class Responses(CompleteMessagesState):
    """The check state of the family `responses`. In `open_calls`, the value of an open call is its item type.

    Attributes:
        reasoning_has_id: True if the last item is reasoning with an id, False if it is reasoning without an id,
            otherwise None.
        has_outputs: Whether outputs have followed the last call.
        stale_calls: The ids of open calls that were followed by an item other than their outputs.
        stores_response: Whether the provider stores the response. Only then may the request contain references. Our
            requests never set this.
        continues_conversation: Whether the input continues a conversation that the provider stores.
        hosted_calls: The ids of shell calls that the provider runs in a container; these calls need no output.
    """

    container = "input"
    piece = "item"

    reasoning_has_id: bool | None = None
    has_outputs: bool = False
    stores_response: bool = False
    continues_conversation: bool = False
    stale_calls: frozenset[str] = frozenset()
    hosted_calls: frozenset[str] = frozenset()
    tool_names: set[str]
    role: str | None
    message_count: int

    def check_messages(self, messages: list[JsonValue], *, resumes: bool = False) -> None:
        for item in messages:
            self.message_count += 1
            if type(item) is not dict:
                self.reject_type("an item must be an object", "", item)
                continue
            kind = item["type"] if "type" in item else "message" if "role" in item else None
            if kind is None and "id" in item and item.keys() <= {"type", "id"}:
                item, kind = {**item, "type": "item_reference"}, "item_reference"
            if type(kind) is not str or kind not in _CHECKS:
                self.fault("ALL-02", "", f"unknown item type {excerpt(kind)}")
            elif kind not in _UNCHECKED:
                if kind in _ITEMS and not item.keys() <= _ITEMS[kind].keys():
                    self.allow_only("", item, _ITEMS[kind])
                by_assistant = "role" in item and item["role"] == "assistant"
                self._check_order(kind, item["id"] if "id" in item else None, by_assistant)
                _CHECKS[kind](self, item)

    def _check_order(self, kind: str, item_id: JsonValue, by_assistant: bool) -> None:
        """Check whether an item of this kind, with or without an id, may follow the previous item."""
        by_model = kind not in _OUTPUTS and (kind != "message" or by_assistant)
        identified = item_id is not None
        if self.reasoning_has_id is not None and not by_model:
            what = f"a reasoning item is followed by {kind} instead of the item that it produced"
            self.fault("OAR-03", "", what)
        elif self.reasoning_has_id is not None and kind in _PREFIXES and kind != "reasoning":
            if identified and not self.reasoning_has_id:
                self.fault("OAR-04", "", "an item with an id must not follow reasoning without an id")
            elif self.reasoning_has_id and not identified:
                self.fault("OAR-03", "", "an item without an id must not follow reasoning with an id")
        self.reasoning_has_id = identified if kind == "reasoning" else None
        if kind in _OUTPUTS:
            self.has_outputs = True
        elif self.has_outputs or kind not in (*_COMMANDS, "reasoning"):
            if self.open_calls and self.dialect.turns.calls_last:
                self.stale_calls = self.stale_calls.union(self.open_calls)
            self.has_outputs = False
        if identified and kind not in ("item_reference", "local_shell_call_output"):
            self._check_item_id(kind, item_id)

    def _check_item_id(self, kind: str, item_id: JsonValue) -> None:
        prefix = _PREFIXES.get(kind, "")
        if type(item_id) is not str or not _ITEM_ID.fullmatch(item_id):
            self.fault("ALL-02", ".id", f"{excerpt(item_id)} is not a valid item id")
        elif not item_id.startswith(prefix):
            self.fault("OAR-06", ".id", f"{excerpt(item_id)} does not begin with {prefix!r}")
        # an item id with this prefix cannot be equal to a call id
        elif (taken := f"item {item_id}") in self.new_ids or taken in self.used_ids:
            self.fault("OAR-07", ".id", f"{excerpt(item_id)} occurs twice")
        else:
            self.new_ids[taken] = None

    def check_end(self, *, manual_thinking: bool) -> None:
        if self.reasoning_has_id is not None:
            self.fault(
                "OAR-03", "", "a reasoning item is the last item; the item that it produced is missing"
            )
        super().check_end(manual_thinking=manual_thinking)

    def report_unanswered(self, when: str) -> None:
        for call_id, kind in self.open_calls.items():
            rule = "OAR-01" if kind == "function_call" else "OAR-11"
            self.fault(rule, "", f"no output for call {excerpt(call_id)}", call_id)

    def _check_message(self, item: dict[str, JsonValue]) -> None:
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
            self.fault("ALL-11", "", "an assistant message must not be empty")
        return self._check_content(content, "ALL-02", ".content", _PARTS[role], self.dialect.media.user_kinds)

    def _check_call(self, item: dict[str, JsonValue]) -> None:
        argument, name = _ARGUMENTS[str(item["type"])], item["name"] if "name" in item else None
        self.check_arguments(name, item[argument] if argument in item else None, argument, "")
        self._open_call_item(item)

    def _open_call_item(self, item: dict[str, JsonValue]) -> None:
        call_id = item["call_id"] if "call_id" in item else None
        self.role = "assistant"
        if type(call_id) is not str:
            return self.reject_type("must be a string", ".call_id", call_id)
        if value_at(item.get("environment"), "type") == "container_reference":
            self.hosted_calls |= {call_id}
            return None
        self.stale_calls -= {call_id}
        return self.open_call(call_id, ".call_id", item["type"])

    def _check_output(self, item: dict[str, JsonValue]) -> None:
        self._match_output(item)
        output = item["output"] if "output" in item else None
        self._check_content(output, "OAR-10", ".output", _INPUT_PARTS, self.dialect.media.result_kinds)

    def _match_output(self, item: dict[str, JsonValue]) -> None:
        call_id, kind = item["call_id"] if "call_id" in item else None, item["type"]
        self.role = "tool"
        # this type of output refers to its call by item id instead of `call_id`
        if kind == "local_shell_call_output" and call_id is None:
            call_id = next(
                (open_id for open_id, made in self.open_calls.items() if f"{made}_output" == kind), None
            )
        if kind == "shell_call_output" and call_id in self.hosted_calls:
            return None
        if type(call_id) is not str:
            return self.reject_type("must be a string", ".call_id", call_id)
        if f"{self.open_calls.get(call_id)}_output" != item["type"]:
            if not self.continues_conversation:
                what = f"an output for {excerpt(call_id)}, but that call is not open"
                self.fault("OAR-02", "", what, call_id)
            return None
        if call_id in self.stale_calls:
            self.fault(
                "OAR-14", "", f"the output of {excerpt(call_id)} must follow its call directly", call_id
            )
            self.stale_calls -= {call_id}
        del self.open_calls[call_id]
        self.has_outputs = self.has_outputs and bool(self.open_calls)
        return None

    def _check_reasoning(self, item: dict[str, JsonValue]) -> None:
        if type(summary := item.get("summary")) is not list:
            self.reject_type("must be a list", ".summary", summary)
        state = item.get("encrypted_content")
        self.role = "assistant"
        if self.dialect.reasoning.carrier != "reasoning_item":
            self.fault("ALL-08", "", "the host does not accept reasoning")
        if not (type(state) is str and state) and not self.stores_response:
            self.fault(
                "OAR-05", "", "reasoning must have encrypted_content, because the response is not stored"
            )

    def _check_reference(self, item: dict[str, JsonValue]) -> None:
        self.role = self.role or "user"
        if item["type"] == "item_reference" and not self.stores_response:
            self.fault(
                "OAR-05", "", f"item {excerpt(item.get('id'))} is not stored, so it cannot be referenced"
            )

    def _record_provider_item(self, item: dict[str, JsonValue]) -> None:
        self.role = "assistant"

    def _check_content(
        self, content: JsonValue, rule: str, path: str, shapes: Mapping[str, Shape], media: frozenset[str]
    ) -> None:
        if type(content) is not str or len(content) > self.max_length:
            for at, part in self.checked_parts(content, path, rule):
                self._check_part(part, at, shapes, media)

    def _check_part(
        self, part: JsonValue, path: str, shapes: Mapping[str, Shape], media: frozenset[str]
    ) -> None:
        kind = part.get("type") if type(part) is dict else None
        if type(part) is not dict or type(kind) is not str or kind not in shapes:
            return self.fault("ALL-02", path, f"a part of type {excerpt(kind)} is not accepted here")
        self.allow_only(path, part, shapes[kind])
        if kind in _WORDS:
            return self.check_text(part.get(_WORDS[kind]), _WORDS[kind], kind, path)
        name, sources = _MEDIA[kind]
        if name not in media:
            self.fault("ALL-10", path, f"{name} is not accepted")
        self.count_attachment(name, path)
        if not any(type(part.get(source)) is str and part[source] for source in sources):
            self.fault("ALL-02", path, f"{kind} must have one of {', '.join(sources)}")
        return None

    def check_parameters(self, body: dict[str, JsonValue]) -> None:
        self.allow_only("request", body, _TOP)
        if type(text := body.get("input")) is str:
            body["input"] = [{"role": "user", "content": text}]
        self.check_model(body.get("model"))
        self.stores_response = body.get("store") is not False
        for key in ("previous_response_id", "conversation"):
            if body.get(key) is not None:
                self.continues_conversation = True
                if not self.stores_response:
                    self.fault("OAR-05", key, "must not continue a stored conversation if store is false")
        tools, choice = body.get("tools"), body.get("tool_choice")
        if tools is not None:
            self._check_tools(tools, "tools")
        if choice is not None and not tools:
            self.fault("ALL-14", "tool_choice", "must not be set without tools")
        elif value_at(choice, "type") in ("function", "custom"):
            self.check_choice(value_at(choice, "name"), "tool_choice")

    def _check_tools(self, tools: JsonValue, path: str) -> None:
        for at, tool in self.checked_items(tools, path, "tools"):
            kind = value_at(tool, "type")
            if type(tool) is not dict or type(kind) is not str:
                self.fault("ALL-02", at, f"unknown tool type {excerpt(kind)}")
                continue
            if kind == "namespace" and type(tool.get("tools")) is list:
                outer, self.tool_names = self.tool_names, set()  # a name may occur once in each namespace
                self._check_tools(tool["tools"], f"{at}.tools")
                self.tool_names |= outer
            if kind in INPUT:
                self.declare_tool(tool.get("name"), at)
            if kind == "function":
                self.allow_only(at, tool, _TOOL)
                if (schema := tool.get("parameters")) is not None:
                    self.check_schema(schema, f"{at}.parameters", ROOTLESS)


_CHECKS: dict[str, Callable[[Responses, dict[str, JsonValue]], None]] = {
    **dict.fromkeys((*_PROVIDER_ITEMS, *_UNCHECKED), Responses._record_provider_item),
    **dict.fromkeys(_COMMANDS, Responses._open_call_item),
    **dict.fromkeys(_OUTPUTS, Responses._match_output),
    **dict.fromkeys(_ARGUMENTS, Responses._check_call),
    **dict.fromkeys(("function_call_output", "custom_tool_call_output"), Responses._check_output),
    "message": Responses._check_message,
    "reasoning": Responses._check_reasoning,
    "compaction": Responses._check_reference,
    "item_reference": Responses._check_reference,
}
