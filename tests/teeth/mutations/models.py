"""Mutations of the table of model facts, and of its use by encoders."""

from tests.teeth.mutations.mutation import Mutation

MODELS = "tests/core/test_models.py"
FORCED = "tests/session/test_forced_by_instruction.py"
THINKING = "actors/adapters/thinking.py"
SETTINGS = "actors/adapters/settings.py"

MUTATIONS = (
    Mutation(
        "models: the judge reports a fault where a host may accept",
        "actors/core/check/model_settings.py:relaxed_facts",
        "row.cautious",
        "()",
        ("tests/strict/test_served_models.py",),
    ),
    Mutation(
        "models: a user's table has levels in any order",
        "actors/config/dialects.py:_check_efforts",
        "sorted(efforts, key=EFFORTS.index) != list(efforts)",
        "False",
        ("tests/config/test_configured_models.py",),
    ),
    Mutation(
        "config: a backend accepts a misspelt effort",
        "actors/config/settings.py:_check_effort",
        'out_of_range("effort", value)',
        "None",
        ("tests/config/test_config.py",),
    ),
    Mutation(
        "models: a date is part of a model's name",
        "actors/core/dialects/narrow.py:base_name",
        '_SUFFIX.sub("", ...)',
        "...",
        (MODELS,),
    ),
    Mutation(
        "models: rows for open weights apply on every host",
        "actors/core/dialects/narrow.py:find_row",
        "row.maker in makers",
        "True",
        (MODELS,),
    ),
    Mutation(
        "models: an override is ignored",
        "actors/core/dialects/narrow.py:for_model",
        "facts = override_facts(facts, each)",
        "override_facts(facts, each)",
        (MODELS,),
    ),
    Mutation(
        "models: an effort is sent beside tools on Chat Completions",
        f"{SETTINGS}:_fit_chat_tools",
        'replace(settings, effort=None, thinking="default", thinking_tokens=None)',
        "settings",
        (MODELS,),
    ),
    Mutation(
        "models: a request with a forced tool allows thinking",
        f"{SETTINGS}:_fit_choice",
        'replace(settings, tool_choice=named, thinking="off", thinking_tokens=None)',
        "replace(settings, tool_choice=named)",
        (MODELS,),
    ),
    Mutation(
        "models: the lowest effort is not a loss where thinking cannot be turned off",
        f"{THINKING}:_fit_disabled_thinking",
        'losses["thinking"] = None',
        "",
        (MODELS,),
    ),
    Mutation(
        "models: a model without budgets receives one",
        f"{THINKING}:_fit_enabled_thinking",
        'settings.thinking == "manual" and "enabled" not in facts.thinking',
        "False",
        (MODELS,),
    ),
    Mutation(
        "models: an unsupported effort is sent",
        f"{THINKING}:_fit_effort",
        "efforts is None or effort in efforts",
        "True",
        (MODELS,),
    ),
    Mutation(
        "forced: a text answer is not corrected",
        "actors/core/turn/turn.py:_TurnRules._after_answer",
        "self._forced is not None and not self._tools_off",
        "False",
        (FORCED,),
    ),
    Mutation(
        "forced: a call of any tool satisfies a choice by name",
        "actors/core/turn/turn.py:_TurnRules._after_answer",
        'self._forced == "required" or self._forced in [ToolChoice(call.name) for call in calls]',
        "True",
        (FORCED,),
    ),
    Mutation(
        "forced: a model without forced tools gets no instruction",
        "actors/session/driver.py:instruct_forced_tool",
        "ask.add_instruction(forced_instruction(choice))",
        "",
        (FORCED,),
    ),
    Mutation(
        "judge: sampling for a model without it is no fault",
        "actors/core/check/model_settings.py:_sampling_faults",
        'facts.sampling != "never"',
        "True",
        (
            "tests/rules/test_rules.py::test_the_checker_finds_the_rules_that_a_request_breaks_and_no_other_rules",
        ),
    ),
    Mutation(
        "judge: tools may stand beside any effort",
        "actors/core/check/model_settings.py:_refuses_tools",
        'effort != "none"',
        "False",
        (
            "tests/rules/test_rules.py::test_the_checker_finds_the_rules_that_a_request_breaks_and_no_other_rules",
        ),
    ),
    Mutation(
        "servers: a strict server ignores models",
        "actors/strict/rules/models.py:served_model",
        "_name_matches(plain, each)",
        "False",
        ("tests/strict/test_served_models.py",),
    ),
    Mutation(
        "models: ids of older models are sent back on Vertex",
        "actors/core/dialects/narrow.py:apply_facts",
        "facts.native_ids and not dialect.ids.native_passthrough",
        "not dialect.ids.native_passthrough",
        (MODELS,),
    ),
)
