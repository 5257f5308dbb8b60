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
    return Mutation(f"{name}: {what}", file, old, new, (test if "::" in test else f"{_SCENARIO}[{test}]",))


def _vendor(name: str, what: str, concern: str, change: str, scenario: str) -> _Wrong:
    """Return a mistake in a profile of the list of vendors: a field changed."""
    constant = name.upper()
    wrong = f"replace({constant}, {concern}=replace({constant}.{concern}, {change}))"
    return what, f"    {constant},\n", f"    {wrong},\n", scenario


def _style(name: str) -> _Wrong:
    style = name.removesuffix("_chat").removesuffix("_responses")
    return "no ids are given", f'style="{style}",', 'style="none",', "12.1"


def _blank(name: str) -> _Wrong:
    return _vendor(name, "no ids are given", "ids", 'style="none"', "12.1")


_LAST = 'last_roles=frozenset({"user", "tool", "assistant"})'
_FIRST = 'first_roles=frozenset({"user", "assistant", "tool"})'


def _prefilled(name: str) -> _Wrong:
    return _vendor(name, "the last word may be the assistant's", "turns", _LAST, "10.1")


def _begun(name: str, turns: str) -> _Wrong:
    any_role = 'first_roles=frozenset({"user", "assistant"})'
    what = "a conversation may begin with the assistant"
    return what, f"turns={turns}(", f"turns={turns}({any_role}, ", "7.3"


def _opened(name: str, before: str) -> _Wrong:
    what = "a conversation may begin with any role"
    return what, before, f"{before} turns=GeminiTurns({_FIRST}),", "7.3"


IDS: dict[str, _Wrong] = {
    "openai_chat": _style("openai_chat"),
    "openai_responses": _style("openai_responses"),
    "anthropic": _style("anthropic"),
    "bedrock": _style("bedrock"),
    "gemini": ("ids of others are sent", 'style="none",  #', 'style="openai",  #', _GEMINI_IDS),
    "vertex": (
        "the ids it gave go back",
        "native_passthrough=False",
        "native_passthrough=True",
        "21.1",
    ),
    "gemini_2": (
        "the ids it gave are kept back",
        'name="gemini_2",',
        'name="gemini_2", ids=replace(GEMINI.ids, native_passthrough=False),',
        _GEMINI_IDS,
    ),
    "mistral": ("ids of OpenAI's form", 'style="mistral",\n', 'style="openai",\n', "14.1"),
    "kimi": ("ids of OpenAI's form", 'style="kimi",', 'style="openai",', "19.1"),
    "deepseek": (
        "no ids are given",
        'rules="DSK",\n    ids=Ids(\n        style="openai",',
        'rules="DSK",\n    ids=Ids(\n        style="none",',
        "12.1",
    ),
    "openrouter": (
        "ids that only some upstreams take",
        'style="mistral",  # its upstreams',
        'style="openai",  # its upstreams',
        "14.3",
    ),
    **{
        name: _blank(name)
        for name in ("xai", "groq", "minimax", "qwen", "glm", "vllm", "llama_cpp", "ollama")
    },
    "openai_compatible": (
        "no ids are given",
        'name="openai_compatible",',
        'name="openai_compatible", ids=replace(OPENAI_CHAT.ids, style="none"),',
        "12.1",
    ),
}
"""A wrong id, by dialect."""

PLACES: dict[str, _Wrong] = {
    "openai_chat": (
        "the last word may be the assistant's",
        "turns=ChatTurns(",
        f"turns=ChatTurns({_LAST}, ",
        "10.1",
    ),
    "openai_responses": (
        "the last word may be the assistant's",
        "turns=ResponsesTurns(",
        f"turns=ResponsesTurns({_LAST}, ",
        "10.1",
    ),
    "anthropic": _begun("anthropic", "BlockTurns"),
    "bedrock": _begun("bedrock", "ConverseTurns"),
    "gemini": _begun("gemini", "GeminiTurns"),
    "vertex": _opened("vertex", 'name="vertex",'),
    "gemini_2": _opened("gemini_2", 'name="gemini_2",'),
    "mistral": (
        "a user may follow a result",
        'user_after_tool="filler",  # MIS-21\n        developer_role',
        "developer_role",
        "5.2",
    ),
    "kimi": (
        "calls go without reasoning",
        'required="with_calls",  # KIM-03',
        'required="no",',
        "1.1",
    ),
    "deepseek": (
        "calls go without reasoning",
        'required="with_calls",  # DSK-05',
        'required="no",',
        "1.1",
    ),
    "openrouter": (
        "a user may follow a result",
        'user_after_tool="filler",  # MIS-21\n        empty_result',
        "empty_result",
        "5.2",
    ),
    **{name: _prefilled(name) for name in ("xai", "groq", "minimax", "qwen", "glm")},
    **{
        name: _vendor(name, "a conversation may begin with any role", "turns", _FIRST, "7.3")
        for name in ("vllm", "llama_cpp", "ollama")
    },
    "openai_compatible": (
        "the last word may be the assistant's",
        "turns=ChatTurns(),\n    media=ChatMedia(user_files=True)",
        f"turns=ChatTurns({_LAST}),\n    media=ChatMedia(user_files=True)",
        "10.1",
    ),
}
"""Something where it must not stand, by dialect."""

MUTATIONS: tuple[Mutation, ...] = tuple(
    _mutation(name, wrong) for table in (IDS, PLACES) for name, wrong in table.items()
)
