"""Two mutations of the data of every dialect: one of its ids, one of its structure.

The strict servers have their own data about each host, so they refuse requests of a wrong profile.
"""

from tests.teeth.mutations.mutation import Mutation

_SCENARIO = "tests/scenarios/test_scenarios.py::test_our_request_for_a_scenario_is_accepted_and_has_the_expected_shape"
_GEMINI_IDS = (
    "tests/adapters/test_gemini_encode.py::test_a_call_id_is_sent_back_only_to_the_gemini_api_that_created_it"
)
_TABLE = "PROFILES: dict[str, Dialect] = ..."


def _mutation(name: str, what: str, concern: str, change: str, test: str) -> Mutation:
    """Return a mutation of a profile: changed fields of a concern, and the scenario or test that detects it."""
    profile = name.upper()
    wrong = f"PROFILES[{name!r}] = replace({profile}, {concern}=replace({profile}.{concern}, {change}))"
    return Mutation(
        f"{name}: {what}",
        "actors/core/dialects/profiles.py:PROFILES",
        _TABLE,
        f"{_TABLE}\n{wrong}",
        (test if "::" in test else f"{_SCENARIO}[{test}]",),
    )


def _id(name: str, what: str, change: str, test: str) -> Mutation:
    return _mutation(name, what, "ids", change, test)


def _without_ids(name: str) -> Mutation:
    return _id(name, "no ids are assigned", 'style="none"', "12.1")


def _openai(name: str, what: str, scenario: str) -> Mutation:
    return _id(name, what, 'style="openai"', scenario)


def _ending_with_assistant(name: str) -> Mutation:
    roles = 'last_roles=frozenset({"user", "tool", "assistant"})'
    return _mutation(name, "a conversation may end with the assistant", "turns", roles, "10.1")


def _beginning_with_any_role(name: str) -> Mutation:
    roles = 'first_roles=frozenset({"user", "assistant", "tool"})'
    return _mutation(name, "a conversation may begin with any role", "turns", roles, "7.3")


def _user_after_result(name: str) -> Mutation:
    return _mutation(name, "a user message may follow a result", "turns", 'user_after_tool="allowed"', "5.2")


def _without_reasoning(name: str) -> Mutation:
    return _mutation(name, "calls are sent without reasoning", "reasoning", 'required="no"', "1.1")


IDS: dict[str, Mutation] = {
    **{
        name: _without_ids(name)
        for name in (
            *("openai_chat", "openai_responses", "anthropic", "bedrock", "deepseek", "xai", "groq"),
            *("vertex_anthropic", "bedrock_anthropic", "open_models", "azure"),
            *("minimax", "qwen", "glm", "vllm", "llama_cpp", "ollama", "openai_compatible"),
        )
    },
    "gemini": _openai("gemini", "foreign ids are sent", _GEMINI_IDS),
    "vertex": _id("vertex", "native ids are sent back", "native_passthrough=True", "21.1"),
    "gemini_2": _id("gemini_2", "native ids are not sent back", "native_passthrough=False", _GEMINI_IDS),
    "mistral": _openai("mistral", "ids in OpenAI's format", "14.1"),
    "kimi": _openai("kimi", "ids in OpenAI's format", "19.1"),
    "openrouter": _openai("openrouter", "ids that only some upstreams accept", "14.3"),
}
"""A wrong id, by dialect."""

PLACES: dict[str, Mutation] = {
    **{
        name: _ending_with_assistant(name)
        for name in (
            *("openai_chat", "openai_responses", "xai", "groq", "minimax", "qwen", "glm"),
            *("azure", "openai_compatible"),
        )
    },
    **{
        name: _beginning_with_any_role(name)
        for name in (
            *(
                "anthropic",
                "vertex_anthropic",
                "bedrock_anthropic",
                "bedrock",
                "gemini",
                "vertex",
                "gemini_2",
            ),
            *("vllm", "open_models", "llama_cpp", "ollama"),
        )
    },
    "mistral": _user_after_result("mistral"),
    "openrouter": _user_after_result("openrouter"),
    "kimi": _without_reasoning("kimi"),
    "deepseek": _without_reasoning("deepseek"),
}
"""Something where it must not stand, by dialect."""

MUTATIONS: tuple[Mutation, ...] = tuple(mutation for table in (IDS, PLACES) for mutation in table.values())
