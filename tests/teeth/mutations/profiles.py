"""Two mistakes in the data of every dialect: one in its ids, one in what may stand where.

The strict servers have data of their own about each host, so that a profile which is wrong is refused.
"""

from typing import TypeAlias

from tests.teeth.mutations.mutation import Mutation

_Wrong: TypeAlias = tuple[str, str, str, str]
"""What is wrong, the line of the profile, what replaces it, and the scenario or test that notices."""

_SCENARIO = "tests/scenarios/test_scenarios.py::test_our_request_is_accepted_and_has_the_valid_shape"
_GEMINI_IDS = (
    "tests/adapters/test_gemini_encode.py"
    "::test_an_id_goes_back_to_the_gemini_api_that_gave_it_and_to_nobody_else"
)
_MODULES = {
    "openai_chat": "openai_chat",
    "openai_responses": "responses",
    "anthropic": "anthropic",
    "bedrock": "converse",
    "gemini": "gemini",
    "vertex": "gemini",
    "gemini_2": "gemini",
}
"""Where a profile stands, if not with the vendors."""


def _mutation(name: str, wrong: _Wrong) -> Mutation:
    what, old, new, test = wrong
    file = f"actors/core/profiles/{_MODULES.get(name, 'vendors')}.py"
    return Mutation(
        f"{name}: {what}", file, old, new, (test if "::" in test else f"{_SCENARIO}[{test}-both]",)
    )


def _derived(name: str, what: str, field: str, scenario: str) -> _Wrong:
    """Return a mistake in a profile that is derived from another: a field too much."""
    return what, f'name="{name}"', f'name="{name}", {field}', f"{scenario}-{name}"


def _style(name: str, style: str) -> _Wrong:
    return "no ids are given", f'id_style="{style}",', 'id_style="none",', f"12.1-{name}"


def _blank(name: str) -> _Wrong:
    return _derived(name, "no ids are given", 'id_style="none"', "12.1")


def _prefilled(name: str) -> _Wrong:
    last = 'last_roles=frozenset({"user", "tool", "assistant"})'
    return _derived(name, "the last word may be the assistant's", last, "10.1")


def _opened(name: str) -> _Wrong:
    first = 'first_roles=frozenset({"user", "assistant", "tool"})'
    return _derived(name, "a conversation may begin with any role", first, "7.3")


def _begun(name: str) -> _Wrong:
    first = 'first_roles=frozenset({"user"}),'
    any_role = 'first_roles=frozenset({"user", "assistant"}),'
    return "a conversation may begin with the assistant", first, any_role, f"7.3-{name}"


IDS: dict[str, _Wrong] = {
    "openai_chat": _style("openai_chat", "openai"),
    "openai_responses": _style("openai_responses", "openai"),
    "anthropic": _style("anthropic", "anthropic"),
    "bedrock": _style("bedrock", "bedrock"),
    "gemini": (
        "ids of others are sent",
        'id_style="none",  #',
        'id_style="openai",  #',
        _GEMINI_IDS,
    ),
    "vertex": (
        "the ids it gave go back",
        "native_id_passthrough=False,",
        "native_id_passthrough=True,",
        "21.1-vertex",
    ),
    "gemini_2": (
        "the ids it gave are kept back",
        'name="gemini_2",',
        'name="gemini_2", native_id_passthrough=False,',
        _GEMINI_IDS,
    ),
    "mistral": ("ids of OpenAI's form", 'id_style="mistral",\n', 'id_style="openai",\n', "14.1-mistral"),
    "kimi": ("ids of OpenAI's form", 'id_style="kimi",', 'id_style="openai",', "19.1-kimi"),
    "deepseek": (
        "no ids are given",
        'rules="DSK",\n    id_style="openai",',
        'rules="DSK",\n    id_style="none",',
        "12.1-deepseek",
    ),
    "openrouter": (
        "ids that only some upstreams take",
        'id_style="mistral",  # its upstreams',
        'id_style="openai",  # its upstreams',
        "14.3-openrouter",
    ),
    **{
        name: _blank(name)
        for name in ("xai", "groq", "minimax", "qwen", "glm", "vllm", "llama_cpp", "ollama")
    },
    "openai_compatible": (
        "no ids are given",
        'name="openai_compatible",',
        'name="openai_compatible", id_style="none",',
        "12.1-groq",
    ),
}
"""A wrong id, by dialect."""

PLACES: dict[str, _Wrong] = {
    "openai_chat": (
        "the last word may be the assistant's",
        'alternation="none",',
        'alternation="none", last_roles=frozenset({"user", "tool", "assistant"}),',
        "10.1-openai_chat",
    ),
    "openai_responses": (
        "the last word may be the assistant's",
        'alternation="none",',
        'alternation="none", last_roles=frozenset({"user", "tool", "assistant"}),',
        "10.1-openai_responses",
    ),
    "anthropic": _begun("anthropic"),
    "bedrock": _begun("bedrock"),
    "gemini": _begun("gemini"),
    "vertex": _opened("vertex"),
    "gemini_2": _opened("gemini_2"),
    "mistral": (
        "a user may follow a result",
        'user_after_tool="filler",  # MIS-21\n    absent_content="omit",',
        'absent_content="omit",',
        "5.2-mistral",
    ),
    "kimi": (
        "calls go without reasoning",
        'thinking_required="with_calls",  # KIM-03',
        'thinking_required="no",',
        "1.1-kimi",
    ),
    "deepseek": (
        "calls go without reasoning",
        'thinking_required="with_calls",  # DSK-05',
        'thinking_required="no",',
        "1.1-deepseek",
    ),
    "openrouter": (
        "a user may follow a result",
        'user_after_tool="filler",  # MIS-21\n    thinking_carrier="reasoning_details",',
        'thinking_carrier="reasoning_details",',
        "5.2-openrouter",
    ),
    **{name: _prefilled(name) for name in ("xai", "groq", "minimax", "qwen", "glm")},
    **{name: _opened(name) for name in ("vllm", "llama_cpp", "ollama")},
    "openai_compatible": (
        "the last word may be the assistant's",
        'name="openai_compatible",',
        'name="openai_compatible", last_roles=frozenset({"user", "tool", "assistant"}),',
        "10.1-groq",
    ),
}
"""Something where it must not stand, by dialect."""

MUTATIONS: tuple[Mutation, ...] = tuple(
    _mutation(name, wrong) for table in (IDS, PLACES) for name, wrong in table.items()
)
