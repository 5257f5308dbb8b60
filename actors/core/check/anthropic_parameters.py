"""What Anthropic Messages demands of a request beside its messages, and of texts and cache marks anywhere."""

from actors.core.check.turns import Turns
from actors.core.check.words import excerpt
from actors.core.jsonio import JsonValue

_TOP = frozenset(
    """cache_control container diagnostics inference_geo max_tokens messages metadata model output_config
    service_tier speed stop_sequences stream system temperature thinking tool_choice tools top_k top_p
    user_profile_id workspace_id""".split()  # noqa: SIM905  as a list it is a page
)
_TEXT = frozenset({"type", "text", "cache_control", "citations"})
_TOOL = frozenset(
    """name description input_schema type cache_control strict defer_loading allowed_callers
    eager_input_streaming input_examples""".split()  # noqa: SIM905  likewise
)
_MIN_BUDGET = 1024


class AnthropicParameters(Turns):
    """The part of the judge that reads what all of a request is made of.

    Attributes:
        moving: The mark of the whole request, which stands on its last block and so comes after all others.
    """

    moving: JsonValue = None

    # --- texts and marks ----------------------------------------------------------------------------

    def words(self, block: dict[str, JsonValue], where: str) -> None:
        """Judge a text block."""
        text = block.get("text")
        self.marks_of(block, _TEXT, where)
        if type(text) is not str:
            self.wanted("text is a string", where, text)
        elif not text:
            self.fault("ANT-20", where, "the text block is empty")
            if "cache_control" in block:
                self.fault("ANT-33", where, "an empty text block carries cache_control")
        elif text.isspace():
            self.fault("ANT-21", where, "the text block is only whitespace")

    def marks_of(self, value: dict[str, JsonValue], keys: frozenset[str], where: str) -> None:
        """Judge the keys of a block, and its cache mark."""
        self.allow_only(where, value, keys)
        if (mark := value.get("cache_control")) is not None:
            self.mark(mark, where, "ephemeral", "cache_control")

    # --- the parameters -----------------------------------------------------------------------------

    def parameters(self, body: dict[str, JsonValue]) -> None:
        self.allow_only("request", body, _TOP)
        model, limit, thinking = body.get("model"), body.get("max_tokens"), body.get("thinking")
        self.modelled(model)
        self.limited(limit, "max_tokens")
        self.moving = body.get("cache_control")
        manual = type(thinking) is dict and thinking.get("type") == "enabled"
        if type(thinking) is dict and manual:
            self._budget(thinking.get("budget_tokens"), limit)
        names = set[str]()
        if (tools := body.get("tools")) is not None:
            self._tools(tools, names)
        if (choice := body.get("tool_choice")) is not None:
            self._choice(choice, names, manual)
        if (system := body.get("system")) is not None:
            self._system(system)

    def _budget(self, budget: JsonValue, limit: JsonValue) -> None:
        if type(budget) is not int or budget < _MIN_BUDGET or (type(limit) is int and budget >= limit):
            what = f"a whole number from {_MIN_BUDGET}, below max_tokens, not {excerpt(budget)}"
            self.fault("ALL-02", "thinking.budget_tokens", what)

    def _choice(self, choice: JsonValue, names: set[str], manual: bool) -> None:
        kind = choice.get("type") if type(choice) is dict else None
        if type(choice) is not dict or kind not in ("auto", "any", "tool", "none"):
            return self.fault("ALL-02", "tool_choice", f"a choice of type {excerpt(kind)}")
        if not names:
            self.fault("ALL-14", "tool_choice", "given without tools")
        elif kind == "tool":
            self.chosen(choice.get("name"), "tool_choice", names)
        if manual and kind in ("any", "tool"):
            self.fault("ANT-48", "tool_choice", "a tool is forced while manual thinking is on")
        return None

    def _tools(self, tools: JsonValue, names: set[str]) -> None:
        for where, tool in self.each(tools, "tools", "tools"):
            if type(tool) is not dict:
                self.wanted("a tool is an object", where, tool)
                continue
            own = tool.get("type") in (
                None,
                "custom",
            )  # the others are the provider's, with keys of their own
            self.marks_of(tool, _TOOL if own else frozenset(tool), where)
            if own or "name" in tool:
                self.declare(tool.get("name"), where, names)
            if own:
                self.rooted(tool.get("input_schema"), f"{where}.input_schema")

    def _system(self, system: JsonValue) -> None:
        if type(system) is str:
            system = [{"type": "text", "text": system}] if system else []
        if type(system) is not list:
            return self.wanted("a string or a list of text blocks", "system", system)
        for block in system:
            if type(block) is not dict or block.get("type") != "text":
                self.fault("ALL-02", "system", "only text blocks stand here")
                continue
            self.words(block, "system")
        return None
