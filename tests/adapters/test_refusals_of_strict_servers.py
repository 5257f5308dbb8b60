"""Every sentence of the strict servers is understood: the right rule, the right thing to do, never another try.

The two lists were written apart, and share no code: a sentence that one of them has and the other does not know is
found here.
"""

import json
from collections.abc import Mapping
from string import Formatter

import pytest

from actors.adapters.classify import classify
from actors.adapters.failure import Failure
from actors.core.dialects.profiles import PROFILES
from actors.core.rulebook import RULES
from actors.strict import rules as strict

TABLES: Mapping[str, Mapping[str, strict.ServerRule]] = {
    "openai_chat": strict.OPENAI_CHAT_RULES,
    "anthropic": strict.ANTHROPIC_RULES,
    "openai_responses": strict.RESPONSES_RULES,
    "gemini": strict.GEMINI_RULES,
    "bedrock": strict.BEDROCK_RULES,
    **strict.COMPATIBLE_RULES,
}
EXAMPLE = {"at": "1", "block": "0", "limit": "40", "length": "43", "tokens": "50", "asked": "3", "count": "5"}
UNKNOWN = (
    "Invalid JSON payload. Unknown name \"{}\" at 'contents[1].parts[0].function_call': Cannot find field."
)
EXAMPLES: Mapping[str, Mapping[str, str]] = {
    "OAC-03": {"path": "messages[2].tool_calls[0].id"},
    "OAC-04": {"path": "messages"},
    "OAC-05": {"path": "messages[0].content"},
    "OAC-06": {"values": "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"},
    "OAC-07": {"path": "messages[0].role"},
    "OAC-09": {"path": "tools"},
    "OAC-10": {"path": "tools[0].function.name"},
    "OAC-13": {"path": "messages[0].role"},
    "OAC-14": {"path": "messages[3].tool_calls[0].function.arguments"},
    "OAC-17": {"path": "prompt_cache_key"},
    "OAR-06": {"path": "input[4].id"},
    "OAR-08": {"path": "input[109].call_id"},
    "OAR-10": {"path": "input[0].output"},
    "ANT-07": {"path": "messages.1.content.0.tool_use.id"},
    "ANT-07-server": {"path": "messages.1.content.0.server_tool_use.id"},
    "ANT-08": {"path": "tools.28.custom.name"},
    "ANT-08-length": {"path": "tools.28.custom.name"},
    "ANT-11": {"type": "advisor_tool_result"},
    "ANT-29": {"path": "messages.0.content.0.tool_result.content"},
    "ANT-31": {"why": "no low surrogate in string: line 1 column 2"},
    "ANT-34": {"path": "messages.0.content.0.thinking"},
    "GEM-06": {"path": "contents[1].parts[0].thought_signature"},
    "GEM-09": {"lines": UNKNOWN.format("id")},
    "GEM-10": {"lines": UNKNOWN.format("x")},
    "MIS-05": {"role": "tool", "after": "user"},
    "MIS-09": {"role": "tool", "after": "user"},
    "MIS-12": {"role": "system", "after": "tool"},
    "MIS-21": {"role": "user", "after": "tool"},
    "KIM-09": {"path": "top_p", "only": "0.95"},
    "DSK-04": {"parent": "messages[3]", "key": "tool_call_id"},
}
"""What the sentences are filled with, where it matters."""

READ_AS = {
    "ANT-07-server": "ANT-07",
    "ANT-08-length": "ANT-08",
    "ANT-12": "ANT-01",  # in the words of
    "ANT-34-ttl": "ANT-34",
    "ANT-48-thinking": "ANT-48",
    "GEM-05-vertex": "GEM-05",
    "GEM-08-vertex": "GEM-08",
    "BED-08-length": "BED-08",
    "MIS-06": "MIS-07",  # in the words of
    "MIS-09": "MIS-05",  # in the words of
    "MIS-13S": "MIS-13",
    "MIS-16S": "MIS-01",
}
"""Rules of which two share a sentence or one has several."""

WORDLESS = {"ANT-10", "BED-13", "MIS-20"}
"""Documented, with no sentence anybody has seen. The status says that it is our bug."""

CONFIG = {"OAC-13", "OAC-19"}
"""Demands on a request that its settings broke: another backend may serve it."""

KINDS = {"rendering": "transcript", "projection": "transcript", "canonical": "transcript"}


def sentence(rule: strict.ServerRule) -> str:
    given = {**EXAMPLE, **EXAMPLES.get(rule.id, {})}
    fields = {field for _, field, _, _ in Formatter().parse(rule.text) if field}
    return rule.text.format(**{field: given.get(field, "x") for field in fields})


def refused(dialect: str, rule: strict.ServerRule) -> Failure:
    words = sentence(rule)
    headers = {"x-amzn-errortype": rule.type} if dialect == "bedrock" else {}
    body: object = {"error": {"message": words, "type": rule.type, "code": rule.code}}
    if dialect == "bedrock":
        body = {"message": words}
    elif rule.status == 422 and dialect == "mistral":
        body = {"detail": [{"type": rule.type, "loc": ["body"], "msg": words}]}
    return classify(rule.status, headers, json.dumps(body).encode(), PROFILES[dialect])


MEDIA = {"ALL-10", "ANT-30", "ANT-54", "ANT-58", "ANT-59", "ANT-61", "BED-16", "BED-17", "MIS-18", "OAC-08"}
"""Rules about attachments, which can be left out."""
PARAMETERS = {
    *("ANT-34", "ANT-35", "ANT-45", "ANT-46", "ANT-47", "ANT-48", "ANT-49"),
    *("DSK-08", "KIM-09", "KIM-10", "OAC-17"),
}
"""Rules about optional parameters, which can be left out too."""

SCHEMAS = {"ANT-57", "CMP-03"}
"""Rules about tools' schemas, for which a rewrite is known."""

CITED = [
    (dialect, rule)
    for dialect, table in TABLES.items()
    for rule in table.values()
    if READ_AS.get(rule.id, rule.id) in RULES and rule.id not in WORDLESS
]


@pytest.mark.parametrize(("dialect", "rule"), CITED, ids=[f"{dialect} {rule.id}" for dialect, rule in CITED])
def test_a_sentence_of_the_rulebook_is_read_as_its_rule(dialect: str, rule: strict.ServerRule) -> None:
    failure, known = refused(dialect, rule), READ_AS.get(rule.id, rule.id)
    assert failure.rule == known
    if known in SCHEMAS:
        assert failure.parameter is not None
        assert (failure.kind, failure.parameter.otherwise) == ("parameter", "transcript")
        return
    kind = RULES[known].fault_class
    left_out = "media" if known in MEDIA else "parameter" if known in PARAMETERS else None
    assert failure.kind == (left_out or ("config" if known in CONFIG else KINDS.get(kind, kind)))


def test_no_refusal_for_structure_is_sent_again_unchanged() -> None:
    for dialect, table in TABLES.items():
        for rule in table.values():
            failure = refused(dialect, rule)
            if rule.id not in ("GRQ-01", "GRQ-02"):  # the model's own fault
                assert failure.action != "retry", (dialect, rule.id, failure.message)
