"""Define a scenario: the script, the rule by which each provider rejects it, and the valid request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.scenarios.canon import Form
from tests.scenarios.providers import CLOUDS
from tests.scenarios.script import Details

FORMS: tuple[Form, ...] = ("both", "ledger", "blocks")


@dataclass(frozen=True, slots=True)
class Case:
    """One conversation of a scenario.

    Args:
        script: The conversation, valid or not.
        shape: The valid request (`shape.py`), before the additions of single dialects.
        rules: For each dialect it concerns, the rule by which the naive request is refused; None where it is accepted.
        shapes: Where a dialect's valid shape is another one.
        naive: The script that a naive client sends, if it differs.
        calls: Details of calls.
        remembered: Calls that only the ledger still knows.
        forms: The sources from which results may be known, if the shape holds only for these.
        hosts: Settings of a dialect's strict server, if only a host with these settings detects the fault.
        own: Whether the conversation has the model's own reasoning, which other dialects treat differently. The shape
            then holds only for the dialects in `rules`; otherwise it holds for every dialect.
        tools, manual: How the request is asked (`naive.request.Asked`).
    """

    script: str
    shape: str
    rules: Mapping[str, str | None]
    shapes: Mapping[str, str] = field(default_factory=dict)
    naive: str | None = None
    calls: Mapping[int, Details] = field(default_factory=dict)
    remembered: tuple[int, ...] = ()
    forms: tuple[Form, ...] = FORMS
    hosts: Mapping[str, Any] = field(default_factory=dict)  # Any: each dialect has settings of its own type
    own: bool = False
    tools: bool = True
    manual: bool = False

    def __post_init__(self) -> None:
        for table in ("rules", "shapes", "hosts"):
            given = getattr(self, table)
            if "anthropic" in given:
                alike = {**dict.fromkeys(CLOUDS, given["anthropic"]), **given}
                object.__setattr__(self, table, alike)

    def valid(self, dialect: str) -> str:
        """Return the valid shape in a dialect."""
        return self.shapes.get(dialect) or fit_shape(self.shape, dialect)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One entry of the catalogue.

    Args:
        number: From 1.
        title: The failure, in a few words.
        cases: Conversations in which it does.
        proofs: Tests of behaviour that no transcript shows: `tests/...py::test_name`.
    """

    number: int
    title: str
    cases: tuple[Case, ...] = ()
    proofs: tuple[str, ...] = ()


FILLED = frozenset({"mistral", "openrouter", "vllm", "open_models", "llama_cpp", "ollama"})
"""Hosts that refuse, themselves or by a chat template, a user message directly after a result (MIS-21)."""
REASONED = frozenset({"kimi", "deepseek"})
"""Hosts that want some reasoning at the head of every message with calls (KIM-03), DeepSeek of every one (DSK-05)."""
SIGNED = frozenset({"gemini", "vertex"})
"""Hosts that want a signature on the first call of every message with calls (GEM-04)."""


def fit_shape(shape: str, dialect: str) -> str:
    """Return a valid shape with the additions that a dialect requires, written from its rules."""
    words: list[str] = []
    for word in _split_words(shape):
        if dialect in FILLED and words and words[-1][0] in "RS" and word[0] == "U":
            words.append("A+")
        words.append(_with_reasoning(word, dialect))
    return " ".join(words)


def _split_words(shape: str) -> list[str]:
    """Return the words of a shape; brackets and quotes hold theirs together."""
    words, depth, quoted = [""], 0, False
    for sign in shape:
        quoted ^= sign == '"'
        depth += (sign == "[") - (sign == "]")
        if sign == " " and not depth and not quoted:
            words.append("")
        else:
            words[-1] += sign
    return words


def _with_reasoning(word: str, dialect: str) -> str:
    if dialect == "deepseek" and word[0] == "A" and "[" not in word:
        said = word[1:] or '"a"'
        return f"A[T+ {said}]"
    inner = _split_words(word[2:-1]) if word.startswith("A[") else []
    first = next((at for at, part in enumerate(inner) if part.startswith("c")), None)
    if first is None:
        return word
    if dialect in REASONED and not {"T", "T+"}.intersection(inner):
        inner.insert(0, "T+")
    elif dialect in SIGNED and (first == 0 or inner[first - 1] not in ("T", "T+")):
        inner.insert(first, "T+")
    return f"A[{' '.join(inner)}]"
