"""Mistakes with the one tool that an ask forces."""

from tests.teeth.mutations.mutation import Mutation

CHOICE = ("tests/asking/test_choice.py",)
SETTINGS = "actors/adapters/settings.py"
CONFIGURATION = "actors/turns/configuration.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "choosing: a tool is forced by the name that is not declared",
        SETTINGS,
        "next((Choose(made) for made, own in names.items() if own == choice.tool), choice)",
        "choice",
        CHOICE,
    ),
    Mutation(
        "choosing: every model knows a tool by its name",
        SETTINGS,
        "re.fullmatch(rules.named_models, settings.model) is not None",
        "bool(rules.named_models)",
        CHOICE,
    ),
    Mutation(
        "choosing: a tool that went forces another",
        SETTINGS,
        '    if tool is None:  # it went while the ask waited\n        return "auto"\n',
        '    if tool is None:  # it went while the ask waited\n        return "required"\n',
        CHOICE,
    ),
    Mutation(
        "choosing: a tool of a group is forced as if it stood alone",
        SETTINGS,
        "choice if is_named and not (tool.namespace and rules.namespaces)",
        "choice if is_named",
        CHOICE,
    ),
    Mutation(
        "choosing: an unknown tool is let in",
        "actors/handle.py",
        "        self._activation.configuration.check(said)\n        packed",
        "        packed",
        CHOICE,
    ),
    Mutation(
        "choosing: a preview of an unknown tool is given",
        "actors/handle.py",
        "        self._activation.configuration.check(said)\n        state",
        "        state",
        CHOICE,
    ),
    Mutation(
        "choosing: the pure face sends what is not declared",
        "actors/pure.py",
        "    check_choice(tool_choice, [tool.name for tool in declared])\n",
        "",
        CHOICE,
    ),
    Mutation(
        "choosing: a change that waits does not count",
        CONFIGURATION,
        "offer = self.offer if self._change is None or self._change.offer is ... else self._change.offer",
        "offer = self.offer",
        CHOICE,
    ),
    Mutation(
        "choosing: what a toolset offers since does not count",
        CONFIGURATION,
        "            offer.refresh()\n            check_choice",
        "            check_choice",
        CHOICE,
    ),
    Mutation(
        "choosing: Gemini may call any tool",
        "actors/adapters/gemini/encode.py",
        '{"mode": "ANY", "allowedFunctionNames": [choice.name]}',
        '{"mode": "ANY"}',
        CHOICE,
    ),
    Mutation(
        "choosing: a tool of free text is forced as a function",
        "actors/adapters/responses/encode.py",
        '"function" if choice.form is None else "custom"',
        '"function"',
        CHOICE,
    ),
    Mutation(
        "choosing: an answer that is a tool drives out the one that is forced",
        "actors/adapters/outputs.py",
        'choice = "required" if choice == "auto" else choice',
        'choice = choice if alone else "required"',
        CHOICE,
    ),
    Mutation(
        "choosing: llama.cpp heeds a name",
        "actors/core/profiles.py",
        'replace(VLLM.request, named_models="")',
        "VLLM.request",
        CHOICE,
    ),
    Mutation(
        "choosing: a strict Gemini takes names that are not declared",
        "actors/testing/rules/gemini.py",
        '        if name not in names:\n            raise RULES["GEM-S21"]',
        '        if not name:\n            raise RULES["GEM-S21"]',
        ("tests/testing/test_loopback_gemini_rules.py",),
    ),
    Mutation(
        "choosing: a strict Bedrock takes every choice for every model",
        "actors/testing/rules/bedrock.py",
        "    if kind not in profile.choices:\n",
        "    if kind not in _CHOICES:\n",
        ("tests/testing/test_loopback_bedrock_rules.py",),
    ),
    Mutation(
        "choosing: a strict llama.cpp heeds a name",
        "actors/testing/rules/vendors.py",
        'context.mode == "strict" and isinstance(request.get("tool_choice"), dict)',
        'context.mode == "hosted" and isinstance(request.get("tool_choice"), dict)',
        ("tests/testing/test_loopback_family_rules.py",),
    ),
    Mutation(
        "upgrades: true is a version",
        "actors/core/upgrades.py",
        "type(version) is not int",
        "not isinstance(version, int)",
        ("tests/core/test_upgrades.py",),
    ),
)
