"""Mutations of the tool that an ask forces."""

from tests.teeth.mutations.mutation import Mutation

CHOICE = ("tests/session/test_tool_choice.py",)
STRICT = "tests/rules/test_rules.py::test_the_classifier_recognises_the_rejection_of_a_broken_request"
SETTINGS = "actors/adapters/settings.py"
CONFIGURATION = "actors/session/configuration.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "choosing: a tool is forced under a name that is not declared",
        f"{SETTINGS}:_wire_choice",
        "next((ToolChoice(made) for made, own in names.items() if own == choice.tool), choice)",
        "choice",
        CHOICE,
    ),
    Mutation(
        "choosing: every model knows a tool under the same name",
        f"{SETTINGS}:_accepted_choice",
        "dialect.request.named_choice and dialect.model.named_choice",
        "dialect.request.named_choice",
        CHOICE,
    ),
    Mutation(
        "choosing: a removed tool forces another one",
        f"{SETTINGS}:_accepted_choice",
        """
        if tool is None:
            return "auto"
        """,
        """
        if tool is None:
            return "required"
        """,
        CHOICE,
    ),
    Mutation(
        "choosing: a tool of a group is forced without its group",
        f"{SETTINGS}:_accepted_choice",
        "is_named and not (tool.namespace and dialect.request.namespaces)",
        "is_named",
        CHOICE,
    ),
    Mutation(
        "choosing: an unknown tool is accepted",
        "actors/runtime/delivery.py:SessionCaller._submit",
        "self._lifecycle.configuration.check_forced_tool(said := parse_settings(*...))",
        "said = parse_settings(*...)",
        CHOICE,
    ),
    Mutation(
        "choosing: a preview of an unknown tool is returned",
        "actors/runtime/handle.py:Session.preview",
        "self._lifecycle.configuration.check_forced_tool(said := parse_settings(*...))",
        "said = parse_settings(*...)",
        CHOICE,
    ),
    Mutation(
        "choosing: the pure API sends an undeclared name",
        "actors/transcripts.py:encode",
        "check_forced_tool(tool_choice, [tool.name for tool in declared])",
        "",
        CHOICE,
    ),
    Mutation(
        "choosing: a pending change of tools is ignored",
        f"{CONFIGURATION}:Configuration.check_forced_tool",
        "self.session_tools if self._change is None or self._change.session_tools is ... "
        "else self._change.session_tools",
        "self.session_tools",
        CHOICE,
    ),
    Mutation(
        "choosing: a change of a toolset is ignored",
        f"{CONFIGURATION}:Configuration.check_forced_tool",
        "session_tools.refresh()",
        "",
        CHOICE,
    ),
    Mutation(
        "choosing: Gemini may call any tool",
        "actors/adapters/gemini.py:_calling_config",
        '{**..., "allowedFunctionNames": [choice.name]}',
        "{**...}",
        CHOICE,
    ),
    Mutation(
        "choosing: a free-text tool is forced as a function",
        "actors/adapters/responses/encode.py:_tool_choice",
        '{"type": "function" if choice.form is None else "custom", **...}',
        '{"type": "function", **...}',
        CHOICE,
    ),
    Mutation(
        "choosing: an answer tool replaces the forced tool",
        "actors/adapters/outputs.py:request_output",
        '"required" if choice == "auto" else choice',
        'choice if alone else "required"',
        CHOICE,
    ),
    Mutation(
        "choosing: llama.cpp respects a tool name",
        "actors/core/dialects/profiles.py:_WITHOUT_NAMED_CHOICE",
        "replace(VLLM.request, named_choice=False)",
        "VLLM.request",
        CHOICE,
    ),
    Mutation(
        "choosing: the strict Gemini server accepts undeclared names",
        "actors/strict/rules/gemini.py:_check_allowed_functions",
        "name not in tool_names",
        "not name",
        (STRICT,),
    ),
    Mutation(
        "choosing: the strict Bedrock server accepts every choice for every model",
        "actors/strict/rules/bedrock_shapes.py:_check_choice",
        "kind not in profile.choices",
        "not kind",
        (STRICT,),
    ),
    Mutation(
        "choosing: the strict llama.cpp server respects a name",
        "actors/strict/rules/self_hosted.py:_check_choice",
        'context.mode == "strict"',
        'context.mode == "hosted"',
        (STRICT,),
    ),
)
