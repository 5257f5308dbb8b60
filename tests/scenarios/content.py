"""Scenarios of content, roles and arguments: empty, unsupported, malformed or out of order."""

from tests.scenarios.case import Case, Scenario
from tests.scenarios.hosts import ALTERNATES, ALTERNATES_AROUND_TOOLS, BEFORE_MISTRAL
from tests.scenarios.providers import BLOCKS, LIKE_OPENAI, TEMPLATED
from tests.scenarios.script import Details

_GEMINIS = ("gemini", "gemini_2", "vertex")
_MALFORMED = {
    "anthropic": "ANT-S02",
    "bedrock": "BED-S02",
    **dict.fromkeys(_GEMINIS, "GEM-S02"),
    "openai_responses": "OAR-S20",
    "mistral": "MIS-20",
    "qwen": "QWN-03",
    "llama_cpp": "LCP-06",
    "ollama": "OLL-01",
    "vllm": "VLM-04",
    **dict.fromkeys(LIKE_OPENAI, "OAC-S09"),
}
"""Arguments that are not a JSON object."""
_NULL = {"bedrock": "BED-S01", "gemini": "GEM-04", "vertex": "GEM-04", "gemini_2": None}
"""To Google, null is a field that is left out; what it finds then is that the call has no signature."""


def _arguments(text: str) -> dict[int, Details]:
    return {1: Details(arguments=text)}


CONTENT = (
    Scenario(
        35,
        "a message of the model is empty once its thinking is gone",
        (
            Case(
                'U A@elsewhere[T] U"go"',
                'U["u" "go"]',
                {
                    "anthropic": "ANT-22",
                    "bedrock": "BED-05",
                    **dict.fromkeys(_GEMINIS, "GEM-11"),
                    "kimi": "KIM-04",
                    "glm": "GLM-02",
                    "openai_chat": "OAC-S11",
                    "mistral": "MIS-17",
                    "llama_cpp": "LCP-02",
                },
                naive='U A[] U"go"',
                shapes=dict.fromkeys(TEMPLATED, 'U A+ U"go"'),
            ),
        ),
    ),
    Scenario(
        36,
        "an empty text stands beside calls",
        (
            Case(
                'U A["" c1] R1',
                "U A[c1] R1",
                {
                    "anthropic": "ANT-20",
                    "bedrock": "BED-04",
                    "gemini": "GEM-04",  # because of the missing signature, not of the text
                    "gemini_2": None,
                    "kimi": "KIM-05",
                    "openai_chat": None,
                },
            ),
        ),
    ),
    Scenario(
        37,
        "a user speaks directly after a tool",
        (
            Case(
                'U A[c1] R1 U"go"',
                'U A[c1] R1 U"go"',
                {"mistral": "MIS-21", "openrouter": None, "openai_chat": None, "vllm": None},
            ),
            Case(
                'U A[c1] R1 U"go"',
                'U A[c1] R1 U"go"',
                {"openrouter": "MIS-21", "vllm": "VLM-02"},
                calls={1: Details(id="nine00001")},
                hosts={"openrouter": BEFORE_MISTRAL, "vllm": ALTERNATES_AROUND_TOOLS},
            ),
        ),
    ),
    Scenario(
        38,
        "the arguments of a call are cut off at the token limit",
        (Case("U A[c1] R1", "U A[c{}] R1", _MALFORMED, calls=_arguments('{"path":"/a')),),
        (
            "tests/adapters/test_anthropic_decode.py::test_calls_are_kept_for_every_stop_reason",
            "tests/adapters/test_openai_chat_decode.py"
            "::test_malformed_arguments_become_an_empty_object_and_are_kept_verbatim",
            "tests/core/test_batch.py::test_a_call_with_non_object_arguments_never_runs",
        ),
    ),
    Scenario(
        39,
        "the arguments of a call are nothing, null or a list",
        (
            Case("U A[c1] R1", "U A[c{}] R1", _MALFORMED, calls=_arguments("")),
            Case("U A[c1] R1", "U A[c{}] R1", {**_MALFORMED, **_NULL}, calls=_arguments("null")),
            Case("U A[c1] R1", "U A[c{}] R1", _MALFORMED, calls=_arguments("[1]")),
        ),
    ),
    Scenario(
        40,
        "a summary is asked for without tools, over a history that used some",
        (
            Case(
                'U A[c1] R1 A U"Sum up."',
                'U A[c1] R1 A U"Sum up."',
                {"bedrock": "BED-03", "anthropic": None, "openai_chat": None},
                tools=False,
            ),
        ),
    ),
    Scenario(
        41,
        "two messages of the user in a row, or the model's comes first after a trim",
        (
            Case(
                'U U"go"',
                'U["u" "go"]',
                {
                    "bedrock": "BED-06",
                    "anthropic": "ANT-26",
                    **dict.fromkeys(_GEMINIS, "GEM-S06"),
                    "openai_chat": None,
                    "mistral": None,
                    "vllm": None,
                },
                shapes=dict.fromkeys(TEMPLATED, 'U A+ U"go"'),
            ),
            Case(
                'U U"go"',
                'U["u" "go"]',
                {"vllm": "VLM-01"},
                shapes=dict.fromkeys(TEMPLATED, 'U A+ U"go"'),
                hosts={"vllm": ALTERNATES},
            ),
            Case(
                'A"so" U',
                'A"so" U',
                {
                    "bedrock": "BED-07",
                    "anthropic": "ANT-24",
                    **dict.fromkeys(_GEMINIS, "GEM-S06"),
                    "openai_chat": None,
                    "mistral": None,
                },
                shapes=dict.fromkeys((*BLOCKS, *TEMPLATED, "mistral", "openrouter"), 'U+ A"so" U'),
            ),
        ),
    ),
    Scenario(
        42,
        "a tool returns an image to a carrier that holds text",
        (
            Case(
                "U A[c1 c2] [R1 I R2]",
                "U A[c1 c2] R1 R2 U[I]",
                {
                    **dict.fromkeys(("openai_chat", "xai", "groq", "kimi", "qwen", "deepseek"), "OAC-08"),
                    "mistral": "MIS-18",
                    "anthropic": None,
                    "bedrock": None,
                },
                shapes={"deepseek": "U A[T+ c1 c2] R1 R2 U[N]"},  # DeepSeek accepts no images
            ),
        ),
    ),
    Scenario(
        43,
        "half a character comes out of a tool",
        (
            Case(
                'U A[c1] R1 U"\ud800"',
                'U A[c1] R1 U"\ufffd"',
                {
                    "anthropic": "ANT-31",
                    "openai_chat": "OAC-S01",
                    "openai_responses": "OAR-S01",
                    "bedrock": "BED-S05",
                    **dict.fromkeys(_GEMINIS, "GEM-S01"),
                    "mistral": "MIS-S08",
                    **dict.fromkeys(("kimi", "deepseek", *TEMPLATED), "OAC-S01"),
                },
            ),
        ),
    ),
    Scenario(
        44,
        "a block that only its provider knows stays in the history",
        proofs=(
            "tests/scenarios/test_foreign_blocks.py::test_each_host_rejects_an_unpaired_native_call_and_an_unpaired_native_result",
            "tests/scenarios/test_foreign_blocks.py::test_native_blocks_are_sent_to_other_providers_as_text",
        ),
    ),
)
