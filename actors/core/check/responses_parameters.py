"""What OpenAI Responses demands of a request beside its input."""

from typing import ClassVar

from actors.core.check.whole import ROOTLESS, Whole
from actors.core.check.words import excerpt
from actors.core.jsonio import JsonValue

_TOP = frozenset(
    """access_programs background background_options client_metadata context_management conversation image
    include input instructions max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls
    previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning
    safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs
    top_p truncation user""".split()  # noqa: SIM905  as a list it is a page
)
_TOOL = frozenset(
    "type name description parameters strict defer_loading allowed_callers output_schema".split()  # noqa: SIM905
)


class ResponsesParameters(Whole):
    """The part of the judge that reads what stands beside the messages.

    Attributes:
        stores: The provider keeps what is sent, and so may have kept what is referred to. We ask for nothing of that.
        continues: The input goes on behind a conversation that the provider keeps.
    """

    container: ClassVar[str] = "input"
    piece: ClassVar[str] = "item"

    stores = continues = False

    def whole(self, messages: JsonValue) -> JsonValue:
        if type(messages) is str:
            return [{"role": "user", "content": messages}]
        return messages

    def parameters(self, body: dict[str, JsonValue]) -> None:
        self.allow_only("request", body, _TOP)
        model = body.get("model")
        self.modelled(model)
        self.stores = body.get("store") is not False
        for key in ("previous_response_id", "conversation"):
            if body.get(key) is not None:
                self.continues = True
                if not self.stores:
                    self.fault("OAR-05", key, "a conversation that the provider keeps")
        tools, names = body.get("tools"), set[str]()
        if type(tools) is list:
            self._tools(tools, "tools", names)
        elif tools is not None:
            self.wanted("a list of tools", "tools", tools)
        choice = body.get("tool_choice")
        self.chooses(choice, tools)
        if tools and type(choice) is dict and choice.get("type") in ("function", "custom"):
            self.chosen(choice.get("name"), "tool_choice", names)

    def _tools(self, tools: list[JsonValue], where: str, names: set[str]) -> None:
        for index, tool in enumerate(tools):
            self._tool(tool, f"{where}[{index}]", names)

    def _tool(self, tool: JsonValue, where: str, names: set[str]) -> None:
        kind = tool.get("type") if type(tool) is dict else None
        if type(tool) is not dict or type(kind) is not str:
            return self.fault("ALL-02", where, f"a tool of type {excerpt(kind)}")
        if kind == "namespace":  # its names are its own
            inner, own = tool.get("tools"), set[str]()
            self._tools(inner if type(inner) is list else [], f"{where}.tools", own)
            names |= own
        if kind in ("function", "custom"):
            self.declare(tool.get("name"), where, names)
        if kind == "function":
            self.allow_only(where, tool, _TOOL)
            if (schema := tool.get("parameters")) is not None:
                self.rooted(schema, f"{where}.parameters", ROOTLESS)
        return None
