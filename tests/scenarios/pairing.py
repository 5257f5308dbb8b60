"""Scenarios of pairing: results that are missing, late, repeated, misplaced or in the wrong role."""

from tests.scenarios.case import Case, Scenario
from tests.scenarios.providers import BLOCKS, LIKE_OPENAI, ORPHANED, TEMPLATED, UNANSWERED
from tests.scenarios.script import Details

_GEMINIS = ("gemini", "gemini_2", "vertex")
# This host checks the order of roles before it counts results, so it reports a user message after a result first.
_ROLES_FIRST = {"mistral": "MIS-21"}

PAIRING = (
    Scenario(
        1,
        "five calls, one answer, and the user moves on",
        (
            Case(
                'U A[c1 c2 c3 c4 c5] R3 U"go"',
                'U A[c1 c2 c3 c4 c5] S1 S2 R3 S4 S5 U"go"',
                {**UNANSWERED, **_ROLES_FIRST},
            ),
            Case("U A[c1 c2 c3 c4 c5] R3", "U A[c1 c2 c3 c4 c5] S1 S2 R3 S4 S5", UNANSWERED),
        ),
    ),
    Scenario(
        2,
        "a steering message lands between a call and its result",
        (
            Case(
                'U A[c1 c2] R1 U"stop, use B" R2',
                'U A[c1 c2] R1 R2 U"stop, use B"',
                {**UNANSWERED, **_ROLES_FIRST, "openai_responses": "OAR-14"},
            ),
            Case(
                'U A[c1 c2] U"stop, use B" R1 R2',
                'U A[c1 c2] R1 R2 U"stop, use B"',
                {**UNANSWERED, "mistral": "MIS-09", "openai_responses": "OAR-14"},
            ),
        ),
    ),
    Scenario(
        3,
        "text stands before the results",
        (
            Case(
                'U A[c1] U["look" R1]',
                'U A[c1] R1 U"look"',
                {**dict.fromkeys(BLOCKS, "GEM-03"), "anthropic": "ANT-03", "bedrock": "BED-10"},
            ),
        ),
    ),
    Scenario(
        4,
        "the results of one batch are split over several user messages",
        (
            Case(
                "U A[c1 c2] R1 R2",
                "U A[c1 c2] R1 R2",
                {**dict.fromkeys(BLOCKS, "GEM-01"), "anthropic": "ANT-12", "bedrock": "BED-01"},
            ),
        ),
    ),
    Scenario(
        5,
        "the real result comes after a synthetic one was sent",
        (
            Case(
                'U A[c1] S1 A"ok" U R1 U"go"',
                'U A[c1] S1 A"ok" U[N1 "u" "go"]',
                {**ORPHANED, "mistral": "MIS-09"},
                shapes=dict.fromkeys(TEMPLATED, 'U A[c1] S1 A"ok" U[N1] A+ U A+ U"go"'),
                forms=("both", "ledger"),
            ),
            Case(
                "U A[c1] [S1 R1] U",
                'U A[c1] S1 U[N1 "u"]',
                {**ORPHANED, **dict.fromkeys(_GEMINIS, "GEM-01")}
                | {"anthropic": "ANT-06", "mistral": "MIS-21"},
                shapes=dict.fromkeys(TEMPLATED, "U A[c1] S1 A+ U[N1] A+ U"),
                forms=("both", "ledger"),
            ),
        ),
        (
            "tests/session/test_cancel.py::test_a_late_result_for_a_sent_synthetic_result_is_sent_before_the_next_user_message",
            "tests/core/test_lane.py::test_a_real_result_after_a_sealed_synthetic_result_is_sent_once_in_every_lane",
        ),
    ),
    Scenario(
        6,
        "a result is written twice",
        (
            Case(
                "U A[c1] [R1 R1]",
                "U A[c1] R1",
                {**ORPHANED, **dict.fromkeys(_GEMINIS, "GEM-01")}
                | {"anthropic": "ANT-06", "mistral": "MIS-03"},
            ),
        ),
    ),
    Scenario(
        7,
        "a compaction took the call and left its result at the head",
        (
            Case(
                'U"Summary." R1 A"so" U',
                'U"Summary." A"so" U[N1 "u"]',
                ORPHANED,
                shapes=dict.fromkeys(TEMPLATED, 'U"Summary." A"so" U[N1] A+ U'),
                forms=("both", "blocks"),
            ),
            Case(
                'U"Summary." R1 A"so" U',
                'U"Summary." A[c1] R1 A"so" U',
                ORPHANED,
                remembered=(1,),
                forms=("both",),
            ),
            Case(
                'R1 A"so" U',
                'A"so" U[N1 "u"]',
                {**ORPHANED, "mistral": "MIS-13S"},
                shapes={
                    **dict.fromkeys((*BLOCKS, "mistral", "openrouter"), 'U+ A"so" U[N1 "u"]'),
                    **dict.fromkeys(TEMPLATED, 'U+ A"so" U[N1] A+ U'),
                },
                forms=("both", "blocks"),
            ),
        ),
    ),
    Scenario(
        8,
        "a compaction took the result and left its call",
        (
            Case(
                'U A[c1] U"Summary." U"go"',
                'U A[c1] S1 U["Summary." "go"]',
                UNANSWERED,
                shapes=dict.fromkeys(TEMPLATED, 'U A[c1] S1 A+ U"Summary." A+ U"go"'),
            ),
        ),
    ),
    Scenario(
        9,
        "the results of one turn arrive after the calls of the next",
        (
            Case(
                "U A[c1] A[c2] R1 R2",
                "U A[c1] R1 A[c2] R2",
                {**UNANSWERED, "anthropic": "ANT-04", "openai_responses": None},
            ),
        ),
    ),
    Scenario(
        10,
        "an abort leaves the model's words last",
        (
            Case(
                'U A"partial"',
                'U A"partial" U+',
                {
                    **dict.fromkeys((*LIKE_OPENAI, *TEMPLATED, "kimi", "deepseek", "qwen", "glm", "minimax")),
                    **dict.fromkeys(_GEMINIS, "GEM-S07"),
                    "anthropic": "ANT-27",
                    "bedrock": "BED-10",
                    "mistral": "MIS-10",
                    "openai_responses": "OAR-S22",
                },
            ),
        ),
    ),
    Scenario(
        11,
        "a call stands in the tools' mouth, or a result in the model's",
        (
            Case(
                "U [c1 R1]",
                "U A[c1] R1",
                {
                    "anthropic": "ANT-S05",
                    "bedrock": "BED-S07",
                    **dict.fromkeys(_GEMINIS, "GEM-02"),
                    "openai_responses": None,  # its items have no speakers
                    "openai_chat": "OAC-12",
                    "mistral": "MIS-32",
                    "deepseek": "DSK-04",
                },
            ),
            Case(
                "U A[c1 R1]",
                "U A[c1] R1",
                {
                    "anthropic": "ANT-S05",
                    "bedrock": "BED-S07",
                    **dict.fromkeys(_GEMINIS, "GEM-03"),
                    "openai_responses": None,
                    **dict.fromkeys(("openai_chat", "kimi", "deepseek", "xai", "qwen"), "OAC-08"),
                    "mistral": "MIS-S06",
                },
            ),
        ),
    ),
    Scenario(
        12,
        "a fork or a resume duplicates a whole turn",
        (
            Case(
                "U A[c1] R1 A[c1] R1",
                "U A[c1] R1 A[c1] R1",
                {
                    "anthropic": "ANT-05",
                    "bedrock": "BED-10",
                    "openai_responses": "OAR-S21",
                    "openai_chat": None,
                    "mistral": None,
                    "gemini_2": None,
                },
                forms=("both", "blocks"),
            ),
            Case(
                "U A[c1] R1 A[c1] R1",
                "U A[c1] R1 A[c1] R1",
                {"openai_responses": "OAR-07"},
                calls={1: Details(item="fc_1")},
                forms=("both", "blocks"),
            ),
        ),
    ),
)
