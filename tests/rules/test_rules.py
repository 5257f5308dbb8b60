"""Run every row of the corpus through the judge, the strict server and the classifier."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path

import pytest

from actors.adapters.classify import classify
from actors.adapters.failure import Failure
from actors.core.check import check
from actors.core.dialects.profiles import PROFILES
from actors.core.rulebook import FAULTS, RULES
from actors.core.rulebook.rule import FaultClass
from actors.strict import rules as strict
from actors.strict.dialects import strict_server
from actors.strict.rules import ServerRefusal, ServerRule, ServerSettings, validate
from actors.strict.rules.base import Mode
from actors.strict.server import LoopbackServer
from tests import naming
from tests.rules import (
    answers,
    anthropic,
    chat_hosts,
    chat_vendors,
    converse,
    gemini,
    openai_chat,
    responses,
)
from tests.rules.row import Json, Row, encode_request

TESTS = Path(__file__).parents[1]
MODULES = (anthropic, openai_chat, chat_vendors, chat_hosts, responses, gemini, converse, answers)
ROWS: list[Row] = [row for module in MODULES for row in module.ROWS]
NAMES = {id(row): f"{row.dialect}-{row.rule}-{number}" for number, row in enumerate(ROWS)}
DIALECTS = sorted({row.dialect for row in ROWS})
SERVED = [row for row in ROWS if row.is_served]
TABLES: Mapping[str, Mapping[str, ServerRule]] = {
    "openai_chat": strict.OPENAI_CHAT_RULES,
    "anthropic": strict.ANTHROPIC_RULES,
    "openai_responses": strict.RESPONSES_RULES,
    "gemini": strict.GEMINI_RULES,
    "bedrock": strict.BEDROCK_RULES,
    **strict.COMPATIBLE_RULES,
}
"""The rules of the strict servers by dialect."""
TRUSTING: Mapping[str, ServerSettings] = {
    "anthropic": strict.AnthropicSettings(signatures="trust"),
    "openai_responses": strict.ResponsesSettings(signatures="trust"),
    "bedrock": strict.BedrockSettings(signatures="trust"),
}
"""ServerSettings that accept any signature, where a row has no settings of its own."""
NAMING_THE_PLACE = {"openai_chat", "openai_responses"}
"""Dialects whose refusals name the broken part of a request in a field of its own."""
FAULTS_OF_A_MODEL = {"GRQ-01", "GRQ-02"}
"""Rules about the model's answer, which another try may keep."""
KINDS: Mapping[FaultClass, str] = {
    "rendering": "transcript",
    "projection": "transcript",
    "canonical": "transcript",
    "overflow": "overflow",
    "config": "config",
}
"""The kind of failure that follows from a fault class."""

_SIGNED = "strict/test_thinking.py"
_STORED = "strict/test_responses_resources.py"
_THREADS = "strict/test_anthropic_server_tools.py"
WITHOUT_A_ROW: Mapping[str, str] = {
    "ANT-41": _SIGNED,
    "ANT-44": _SIGNED,
    "ANT-S21": _THREADS,
    "ANT-S22": _THREADS,
    "ANT-S23": _THREADS,
    "BED-14": "strict/test_bedrock_rules.py",
    "DSK-S03": "strict/test_family_clients.py",
    "GEM-13": "strict/test_gemini_rules.py",
    "GRQ-01": "strict/test_family_wire.py",
    "GRQ-02": "strict/test_family_wire.py",
    "KIM-S03": "strict/test_family_clients.py",
    "OAR-S16": _STORED,
    "OAR-S17": _STORED,
    "OAR-S18": _STORED,
    "OAR-S24": _STORED,
    "OAR-S25": _STORED,
}
"""Rules of the strict servers that no request breaks alone, with the tests that break them.

They need an answer of the server, an item that it stores, or a model that the path of the request names.
"""
WORDS_ALONE: Mapping[str, str] = {
    "ANT-41": "needs the provider's key",
    "ANT-42": "needs the provider's key",
    "ANT-44": "needs the provider's key",
    "BED-14": "the path names the model",
    "DSK-07": "on another route",
    "GEM-13": "the path names the model",
    "GEM-14": "depends on the provider's load",
    "GEM-15": "depends on the account's quota",
    "OAC-21": "depends on the model",
}
"""Rules of the rulebook without a row, each with the reason. Tests of the classifier have their words."""


def rows(dialect: str, among: Iterable[Row] = ROWS) -> Iterator[tuple[Row, AbstractContextManager[None]]]:
    """Yield the rows of a dialect, each with a context that names the row in a failure."""
    return ((row, naming.case(NAMES[id(row)])) for row in among if row.dialect == dialect)


def refusal(row: Row, request: Json | bytes, mode: Mode) -> ServerRefusal | None:
    settings = row.settings or TRUSTING.get(row.dialect)
    return validate(encode_request(request), row.dialect, mode=mode, settings=settings)


@pytest.mark.requirement("PROMISE-1", "REQ-915-005", "REQ-915-013", "REQ-915-040")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_checker_finds_the_rules_that_a_request_breaks_and_no_other_rules(dialect: str) -> None:
    for row, named in rows(dialect):
        with named:
            faults = check(encode_request(row.broken), row.judged_by)
            assert {fault.rule for fault in faults} == row.found
            for fault in faults[:100]:
                assert fault.rule is not None
                assert type(fault) is FAULTS[RULES[fault.rule].fault_class]
                assert re.fullmatch(rf".{{1,490}} \({fault.rule}\)", str(fault))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_checker_finds_no_fault_in_the_valid_request(dialect: str) -> None:
    for row, named in rows(dialect):
        with named:
            faults = check(encode_request(row.sound), row.judged_by)
            assert {fault.rule for fault in faults} == set(row.stricter.split())


@pytest.mark.requirement("REQ-915-005", "REQ-915-036")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_classifier_recognises_the_rejection_of_a_broken_request(dialect: str) -> None:
    for row, named in rows(dialect, SERVED):
        with named:
            assert_rejection_is_recognised(row)


def assert_rejection_is_recognised(row: Row) -> None:
    refused = refusal(row, row.broken, row.mode)
    assert (refused and refused.rule) == row.refused_as
    if refused is None:
        return
    assert (refusal(row, row.broken, "hosted") is not None) == row.hosted
    if not row.words:
        return
    assert re.fullmatch(re.escape(row.words).replace("…", ".*"), refused.message, re.DOTALL)
    assert reading(classify_refusal(row.dialect, refused)) == (row.read or usual_reading(refused.rule))
    if row.answer is not None:
        assert (refused.status, refused.type, refused.code) == row.answer
        assert row.dialect not in NAMING_THE_PLACE or refused.param == row.param


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_valid_request_is_accepted_in_both_modes(dialect: str) -> None:
    for row, named in rows(dialect, SERVED):
        with named:
            assert refusal(row, row.sound, row.mode) is None
            assert refusal(row, row.sound, "hosted") is None


def test_a_rejected_request_is_never_retried_unchanged() -> None:
    for dialect, table in TABLES.items():
        for rule in table.values():
            refused = ServerRefusal(rule.id, rule.status, rule.type, rule.code, None, rule.text)
            assert rule.id in FAULTS_OF_A_MODEL or classify_refusal(dialect, refused).action != "retry", (
                dialect,
                rule,
            )


@cache
def server(dialect: str) -> LoopbackServer:
    return strict_server(dialect)


def classify_refusal(dialect: str, refused: ServerRefusal) -> Failure:
    """Return the classifier's reading of a refusal, in the error body and headers of the dialect's server."""
    host = server(dialect)
    return classify(
        refused.status,
        dict(host._refusal_headers(refused)),
        host._wire.encode_error(refused, 0),
        PROFILES[dialect],
    )


def reading(failure: Failure) -> str:
    """Return a failure as rows write it: `KIND RULE`, or `parameter:KIND RULE`, where that kind is not `transcript`."""
    kind: str = failure.kind
    if failure.parameter is not None and failure.parameter.otherwise != "transcript":
        kind += f":{failure.parameter.otherwise}"
    return f"{kind} {failure.rule or ''}".strip()


def usual_reading(rule: str) -> str:
    known = RULES.get(rule)
    return "transcript" if known is None else f"{KINDS[known.fault_class]} {rule}"


def test_every_rule_of_a_strict_server_has_a_row_with_its_message() -> None:
    rules = {rule for table in TABLES.values() for rule in table}
    assert rules - {row.refused_as for row in SERVED if row.words} == set(WITHOUT_A_ROW)
    assert all((TESTS / path).is_file() for path in WITHOUT_A_ROW.values())


def test_every_rule_that_the_checker_enforces_has_a_row_that_breaks_the_rule() -> None:
    judged = {rule.id for rule in RULES.values() if rule.is_checked}
    found = {rule for row in ROWS for rule in row.found}
    assert judged <= found
    assert found <= judged


def test_every_rule_that_the_checker_cannot_enforce_has_a_row_or_a_reason() -> None:
    unseen = {rule.id for rule in RULES.values() if not rule.is_checked}
    assert unseen - {row.rule for row in ROWS} == set(WORDS_ALONE)
