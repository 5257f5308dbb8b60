"""Scenarios of identity: ids and names from one provider that another rejects."""

from tests.scenarios.case import Case, Scenario
from tests.scenarios.hosts import BEFORE_MISTRAL
from tests.scenarios.script import Details

_LONG = Details(id="call_" + "x" * 45)
_LONGER = Details(id="call_" + "x" * 65)
_TAIL = "xyz123456"
_KIMIS = Details(id="functions.read:0")
_SAME = Details(id="call_0")
_BLANK = Details(id="")
_GIVEN = Details(id="a323kt5y")
_ITEM = Details(id="call_000000000000000000000001", item="call_000000000000000000000001")
_SHORT = ("openai_chat", "xai", "groq", "qwen", "glm", "minimax")
_EVERYWHERE = {
    "openai_responses": "OAR-S05",
    "anthropic": "ANT-08",
    "bedrock": "BED-08",
    "mistral": "MIS-14",
    "kimi": "KIM-06",
    **dict.fromkeys(("openai_chat", "openrouter", "groq", "xai", "deepseek", "qwen"), "OAC-S06"),
    **dict.fromkeys(("glm", "minimax"), "OAC-S06"),
}
_GEMINIS = ("gemini", "gemini_2", "vertex")


def _named_call(name: str) -> dict[int, Details]:
    return {1: Details(name=name)}


IDENTITY = (
    Scenario(
        13,
        "an id that is too long comes to OpenAI",
        (
            Case(
                "U A@elsewhere[c1] R1",
                "U A[c1] R1",
                {**dict.fromkeys(_SHORT, "OAC-03"), "openai_responses": None, "openrouter": None},
                calls={1: _LONG},
            ),
            Case(
                "U A@elsewhere[c1] R1",
                "U A[c1] R1",
                {
                    **dict.fromkeys((*_SHORT, "deepseek"), "OAC-03"),
                    "openai_responses": "OAR-08",
                    "bedrock": "BED-08-length",
                },
                calls={1: _LONGER},
            ),
        ),
    ),
    Scenario(
        14,
        "an id of OpenAI's or Anthropic's comes to Mistral",
        (
            Case(
                "U A@openai_chat[c1] R1",
                "U A[c1] R1",
                {"mistral": "MIS-01"},
                calls={1: Details(id="call_abc123")},
            ),
            Case(
                "U A@anthropic[c1] R1",
                "U A[c1] R1",
                {"mistral": "MIS-01"},
                calls={1: Details(id="toolu_01abc")},
            ),
            Case(
                "U A@anthropic[c1] R1",
                "U A[c1] R1",
                {"openrouter": "MIS-01"},
                calls={1: Details(id="toolu_01abc")},
                hosts={"openrouter": BEFORE_MISTRAL},
            ),
            Case(
                "U A@openrouter_elsewhere[c1] R1",
                "U A[c1] R1",
                {"openrouter": "MIS-01"},
                calls={1: Details(id="toolu_01abc")},
                hosts={"openrouter": BEFORE_MISTRAL},
            ),
        ),
    ),
    Scenario(
        15,
        "two ids share the tail to which they are cut",
        (
            Case(
                "U A@elsewhere[c1 c2] R1 R2",
                "U A[c1 c2] R1 R2",
                {"mistral": "MIS-04", "vllm": "OAC-S10"},
                calls={
                    1: Details(id=f"toolu_A{_TAIL}", sent=_TAIL),
                    2: Details(id=f"call_B{_TAIL}", sent=_TAIL),
                },
            ),
        ),
    ),
    Scenario(
        16,
        "an id of Kimi's comes to Anthropic or Mistral",
        (
            Case(
                "U A@kimi[c1] R1",
                "U A[c1] R1",
                {"anthropic": "ANT-07", "mistral": "MIS-01", "bedrock": None},
                calls={1: _KIMIS},
            ),
        ),
    ),
    Scenario(
        17,
        "a backend begins its ids anew with every answer",
        (
            Case(
                "U A[c1] R1 A[c2] R2",
                "U A[c1] R1 A[c2] R2",
                {
                    "anthropic": "ANT-05",
                    "openai_responses": "OAR-S21",
                    "openai_chat": None,
                    "bedrock": "BED-10",
                },
                calls={1: _SAME, 2: _SAME},
            ),
            Case(
                "U A[T c1] R1 A[T c2] R2",
                "U A[T c1] R1 A[T c2] R2",
                {"kimi": "KIM-S02"},
                own=True,
                calls={1: _KIMIS, 2: _KIMIS},
            ),
        ),
    ),
    Scenario(
        18,
        "a gateway gives no ids",
        (
            Case(
                "U A[c1 c2] R1 R2",
                "U A[c1 c2] R1 R2",
                {
                    "anthropic": "ANT-07",
                    "bedrock": "BED-08",
                    "mistral": "MIS-04",  # two blank ids count as one repeated id
                    "openai_responses": "OAR-S06",
                    **dict.fromkeys((*_SHORT, "openrouter", "deepseek", "kimi"), "OAC-S07"),
                    "openrouter": "OAC-S10",
                },
                calls={1: _BLANK, 2: _BLANK},
            ),
        ),
        (
            "tests/adapters/test_openai_chat_decode.py::test_the_calls_of_an_answer_are_kept_apart",
            "tests/adapters/test_openai_chat_decode.py"
            "::test_calls_with_blank_ids_and_the_same_index_remain_separate",
            "tests/adapters/test_anthropic_decode.py::test_calls_with_repeated_or_blank_ids_are_separate_calls",
        ),
    ),
    Scenario(
        19,
        "Kimi's running numbers are counted again after a compaction",
        (
            Case(
                "U A[T c1] R1 A@elsewhere[T c2] R2",
                "U A[T c1] R1 A[T+ c2] R2",
                {"kimi": "KIM-S02"},
                own=True,
                calls={1: _KIMIS, 2: Details(id="call_abc", sent="functions.read:0")},
            ),
        ),
        (
            "tests/scenarios/test_lanes.py::test_a_used_kimi_call_number_is_never_reused",
            "tests/core/test_lane.py::test_a_call_keeps_its_wire_id_after_an_earlier_call_with_the_same_native_id_is_compacted",
        ),
    ),
    Scenario(
        20,
        "a call id is put where Responses wants an item id",
        (Case("U A[c1] R1", "U A[c1] R1", {"openai_responses": "OAR-06"}, calls={1: _ITEM}),),
    ),
    Scenario(
        21,
        "a call comes back with the id that Vertex or the Gemini API gave it",
        (
            Case(
                "U A[c1] R1",
                "U A[c1] R1",
                {"vertex": "GEM-04", "gemini": "GEM-04", "gemini_2": None},
                calls={1: _GIVEN},
            ),
        ),
    ),
    Scenario(
        22,
        "the model invents a tool name that no provider takes back",
        (
            Case("U A[c1] R1", "U A[c1] R1", _EVERYWHERE, calls=_named_call("functions.read")),
            Case(
                "U A[c1] R1",
                "U A[c1] R1",
                {**_EVERYWHERE, **dict.fromkeys(_GEMINIS, "GEM-S04")},
                calls=_named_call("read file"),
            ),
            Case(
                "U A[c1] R1",
                "U A[c1] R1",
                {
                    **{name: "OAC-S07" if rule == "OAC-S06" else rule for name, rule in _EVERYWHERE.items()},
                    **dict.fromkeys(_GEMINIS, "GEM-S03"),
                },
                calls=_named_call(""),
            ),
            Case(
                "U A[c1] R1",
                "U A[c1] R1",
                {
                    **{name: "OAC-10" if rule == "OAC-S06" else rule for name, rule in _EVERYWHERE.items()},
                    "gemini_2": None,
                    "anthropic": None,
                    "openai_responses": None,
                    "bedrock": "BED-08-length",
                },
                calls=_named_call("r" * 70),
            ),
        ),
        ("tests/core/test_batch.py::test_the_result_of_an_unknown_tool_lists_the_known_tools",),
    ),
)
