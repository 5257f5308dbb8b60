"""Scenarios of thinking: reasoning sent to another provider, or missing where required."""

from tests.scenarios.case import Case, Scenario
from tests.scenarios.hosts import LOOKS_UP_ITEMS
from tests.scenarios.providers import TEMPLATED
from tests.scenarios.script import Details

_CHAT = ("xai", "groq", "qwen", "glm", "minimax", *TEMPLATED)

THINKING = (
    Scenario(
        23,
        "reasoning of another provider is sent on",
        (
            Case(
                "U A@elsewhere[T c1] R1",
                "U A[c1] R1",
                {
                    "anthropic": "ANT-42",
                    "bedrock": "BED-10",
                    "gemini": "GEM-05",
                    "gemini_2": "GEM-05",
                    "vertex": "GEM-05-vertex",
                    "openai_chat": "OAC-12",
                    "openai_responses": "OAR-09",
                    "openrouter": "ORT-03",
                    "mistral": "MIS-32",
                    **dict.fromkeys(_CHAT),
                },
            ),
            Case("U A@elsewhere[T! c1] R1", "U A[c1] R1", {"anthropic": "ANT-42", "bedrock": "BED-10"}),
        ),
        ("tests/strict/test_thinking.py::test_thinking_without_text_needs_a_signature",),
    ),
    Scenario(
        24,
        "manual thinking is on in a tool loop that another provider opened",
        (
            Case(
                "U A@openai_chat[c1] R1",
                "U A[c1] R1",
                {"anthropic": "ANT-40", "bedrock": "BED-10"},
                shapes=dict.fromkeys(("anthropic", "bedrock"), "U A[c1] R1 A+ U+"),
                manual=True,
            ),
        ),
        (
            "tests/adapters/test_settings.py"
            "::test_a_tool_loop_without_thinking_is_closed_before_thinking_is_requested",
        ),
    ),
    Scenario(
        25,
        "what stands before bound thinking is edited",
        proofs=(
            "tests/strict/test_thinking.py::test_bound_thinking_is_rejected_after_any_change_of_earlier_content",
            "tests/core/test_lane.py::test_bound_thinking_stays_valid_across_alternating_bindings",
            "tests/core/test_lane.py::test_a_new_epoch_drops_sealed_thinking_and_keeps_every_id",
        ),
    ),
    Scenario(
        26,
        "the latest thinking is reordered, or two messages of the model are merged around it",
        (
            Case(
                'U A[T "a" c1] R1',
                'U A[T "a" c1] R1',
                {"anthropic": "ANT-39", "bedrock": "BED-10"},
                naive='U A["a" T c1] R1',
                own=True,
            ),
            Case(
                'U A"a" A[T c1] R1',
                "U A U+ A[T c1] R1",
                {"anthropic": "ANT-39", "bedrock": "BED-10"},
                naive='U A["a" T c1] R1',
                own=True,
            ),
        ),
        (
            "tests/strict/test_thinking.py::test_thinking_of_the_latest_assistant_message_may_not_be_edited",
            "tests/strict/test_thinking.py::test_thinking_of_the_latest_assistant_message_may_not_be_reordered",
        ),
    ),
    Scenario(
        27,
        "a history of Claude's comes to Gemini without signatures",
        (
            Case(
                'U A@anthropic[T c1 c2] [R1 R2] A@anthropic[c3] U[R3 "go"]',
                'U A[c1 c2] R1 R2 A[c3] R3 U"go"',
                {"gemini": "GEM-04", "vertex": "GEM-04", "gemini_2": None},
                naive='U A[c1 c2] [R1 R2] A[c3] U[R3 "go"]',
                own=True,
            ),
        ),
    ),
    Scenario(
        28,
        "parallel calls are sorted and the signature stands on the wrong one",
        (
            Case(
                "U A[T c1 c2] [R1 R2]",
                "U A[T c1 c2] R1 R2",
                {"gemini": "GEM-04", "vertex": "GEM-04"},
                naive="U A[c2 T c1] [R2 R1]",
                own=True,
            ),
        ),
    ),
    Scenario(
        29,
        "DeepSeek thinks, and a call of another provider has no reasoning",
        (Case("U A@openai_chat[c1] R1", "U A[c1] R1", {"deepseek": "DSK-05"}),),
    ),
    Scenario(
        30,
        "Kimi thinks, and a call has no reasoning: another provider's, or it was compacted away",
        (
            Case(
                "U A@openai_chat[c1] R1",
                "U A[c1] R1",
                {"kimi": "KIM-03"},
                calls={1: Details(id="call_abc123", sent="functions.read:0")},
            ),
            Case("U A[T! c1] R1 U", "U A[c1] R1 U", {"kimi": "KIM-03"}, naive="U A[c1] R1 U"),
        ),
    ),
    Scenario(
        31,
        "a history of DeepSeek's or Kimi's comes to Mistral with its reasoning",
        (
            Case(
                "U A@deepseek[T c1] R1",
                "U A[c1] R1",
                {"mistral": "MIS-32"},
                own=True,
            ),
            Case("U A@kimi[T c1] R1", "U A[c1] R1", {"mistral": "MIS-32", "openai_chat": "OAC-12"}, own=True),
        ),
    ),
    Scenario(
        32,
        "reasoning of Responses stands without its follower, or the follower without its reasoning",
        (
            Case('U A[T] U"go"', 'U["u" "go"]', {"openai_responses": "OAR-03"}, own=True),
            Case(
                "U A[T c1] R1",
                "U A[T c1] R1",
                {"openai_responses": "OAR-03"},
                naive="U A[c1] R1 A[T]",
                own=True,
            ),
            Case(
                "U A[c1] R1",
                "U A[c1] R1",
                {"openai_responses": "OAR-04"},
                calls={1: Details(item="fc_ra1_1")},  # the id that its server gives an item after `rs_a1`
            ),
        ),
        (
            "tests/adapters/test_responses_encode.py::test_reasoning_without_a_following_item_is_omitted",
            "tests/adapters/test_responses_encode.py::test_requests_for_generated_histories_contain_no_item_id",
        ),
    ),
    Scenario(
        33,
        "ids that were never stored, or reasoning that was encrypted for another account",
        (
            Case(
                "U A[c1] R1",
                "U A[c1] R1",
                {"openai_responses": "OAR-05"},
                calls={1: Details(item="fc_1")},
                hosts={"openai_responses": LOOKS_UP_ITEMS},
            ),
            Case("U A@openai_responses_elsewhere[T c1] R1", "U A[c1] R1", {"openai_responses": "OAR-09"}),
        ),
    ),
    Scenario(
        34,
        "an answer breaks off in the middle of its thinking",
        (
            Case(
                'U A[T!] U"go"',
                'U["u" "go"]',
                {"anthropic": "ANT-42", "bedrock": "BED-10", "openai_responses": "OAR-05"},
                shapes=dict.fromkeys(TEMPLATED, 'U A+ U"go"'),
            ),
        ),
        (
            "tests/adapters/test_decode_cuts.py::test_thinking_without_its_signature_is_not_kept_from_a_partial_answer",
        ),
    ),
)
