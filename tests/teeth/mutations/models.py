"""Mistakes in the table of model facts, and in what encoders make of it."""

from tests.teeth.mutations.mutation import Mutation

MODELS = "tests/core/test_models.py"
THINKING = "actors/adapters/thinking.py"
SETTINGS = "actors/adapters/settings.py"

MUTATIONS = (
    Mutation(
        "models: a date is part of a model's name",
        "actors/core/models/lookup.py:base_name",
        '_SUFFIX.sub("", ...)',
        "...",
        (MODELS,),
    ),
    Mutation(
        "models: rows of open weights hold on every host",
        "actors/core/models/lookup.py:find_row",
        "row.maker in makers",
        "True",
        (MODELS,),
    ),
    Mutation(
        "models: an override is ignored",
        "actors/core/models/narrow.py:for_model",
        "facts = merge(facts, each)",
        "merge(facts, each)",
        (MODELS,),
    ),
    Mutation(
        "models: an effort stands beside tools on Chat Completions",
        f"{SETTINGS}:_fit_chat_tools",
        'replace(settings, effort=None, thinking="default", thinking_tokens=None)',
        "settings",
        (MODELS,),
    ),
    Mutation(
        "models: a request with a forced tool lets the model think",
        f"{SETTINGS}:_fit_choice",
        'replace(settings, tool_choice=named, thinking="off", thinking_tokens=None)',
        "replace(settings, tool_choice=named)",
        (MODELS,),
    ),
    Mutation(
        "models: the lowest effort is not a loss where thinking cannot be switched off",
        f"{THINKING}:_fit_off",
        'losses["thinking"] = None',
        "",
        (MODELS,),
    ),
    Mutation(
        "models: a budget is sent to a model that has none",
        f"{THINKING}:_fit_on",
        'settings.thinking == "manual" and "enabled" not in facts.thinking',
        "False",
        (MODELS,),
    ),
    Mutation(
        "models: an effort that a model lacks is sent",
        f"{THINKING}:_fit_effort",
        "efforts is None or effort in efforts",
        "True",
        (MODELS,),
    ),
    Mutation(
        "models: ids of older models go back on Vertex",
        "actors/core/models/narrow.py:apply_facts",
        "facts.native_ids and not dialect.ids.native_passthrough",
        "not dialect.ids.native_passthrough",
        (MODELS,),
    ),
)
