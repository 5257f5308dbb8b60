"""Check that each scenario is rejected as a naive request and accepted as we send it."""

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

from actors.core.check import check
from actors.core.dialects.profiles import PROFILES, dialect
from actors.core.history.history import History
from actors.core.lanes.lane import Rendered, results_to_seal
from actors.core.log.events import RequestSent
from actors.testing import validate
from actors.transcripts import from_wire
from tests import naming
from tests.scenarios.canon import Form, canonical, ledger_knowing, made_by, message_of, news
from tests.scenarios.case import Case
from tests.scenarios.hosts import TRUSTING
from tests.scenarios.naive import Asked, naive
from tests.scenarios.providers import IDS, KEEPS_ITS_IDS, NAMES
from tests.scenarios.script import parse_script
from tests.scenarios.sending import send_conversation
from tests.scenarios.shape import items, shape
from tests.scenarios.table import SCENARIOS

ROOT = Path(__file__).parents[2]


each_case = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{scenario.number}.{at}")
        for scenario in SCENARIOS
        for at, case in enumerate(scenario.cases, 1)
    ],
)


def _request_options(case: Case, name: str) -> Asked:
    return Asked(name, case.calls, case.tools, case.manual)


def _naive(case: Case, name: str) -> bytes:
    return naive(parse_script(case.naive or case.script), _request_options(case, name))


def _accept(rendered: Rendered, body: bytes, case: Case, name: str) -> None:
    """Check that the judge and the strict server's rules accept a request."""
    assert list(rendered.report.faults) == []
    assert check(body, dialect(name)) == []
    refusal = validate(body, name, settings=case.hosts.get(name) or TRUSTING.get(name))
    assert refusal is None, f"{refusal.rule} {refusal.param}: {refusal.message}"


@each_case
def test_the_strict_server_gives_the_naive_request_the_answer_that_the_scenario_states(case: Case) -> None:
    for name in case.rules:
        refusal = validate(_naive(case, name), name, settings=case.hosts.get(name))
        assert (name, None if refusal is None else refusal.rule) == (name, case.rules[name])


@each_case
def test_our_request_for_a_scenario_is_accepted_and_has_the_expected_shape(case: Case) -> None:
    """This includes unaffected providers: a fix for one must not break another."""
    for name in case.rules if case.own else IDS:
        for form in case.forms:
            with naming.case(name, form):
                _is_accepted(case, name, form)


def _is_accepted(case: Case, name: str, form: Form) -> None:
    messages, ledger = canonical(
        parse_script(case.script), _request_options(case, name), form, case.remembered
    )
    said = History(messages, ledger)
    rendered, body = send_conversation(said, ledger, name, tools=case.tools, manual=case.manual)
    _accept(rendered, body, case, name)
    assert shape(body, dialect(name).family) == case.valid(name)
    _has_legal_ids_and_names(body, name, case)


def _has_legal_ids_and_names(body: bytes, name: str, case: Case) -> None:
    calls = [item for item in items(body, dialect(name).family) if item.kind == "call"]
    assert [call.name for call in calls if not re.fullmatch(NAMES[name], call.name, re.ASCII)] == []
    ids = [call.wire_id for call in calls]
    given = {details.id for details in case.calls.values()} if name in KEEPS_ITS_IDS else set()
    assert [each for each in ids if each not in given and not re.fullmatch(IDS[name], each, re.ASCII)] == []
    assert len(set(ids)) == len(ids) or not any(ids)


@each_case
def test_requests_at_every_point_of_a_scenario_are_accepted_and_extend_earlier_requests(case: Case) -> None:
    for name in IDS:
        with naming.case(name):
            _stays_as_it_was_sent(case, name)


def _stays_as_it_was_sent(case: Case, name: str) -> None:
    asked, history, lane, before = _request_options(case, name), History(), None, b""
    ledger = ledger_knowing(case.remembered, asked)
    for said in parse_script(case.script):
        ledger = ledger.apply(*news(said, asked))
        history = history.append(message_of(said, asked, "both"), ledger=ledger)
        if said.role == "assistant":
            continue
        rendered, body = send_conversation(history, ledger, name, lane, tools=case.tools, manual=case.manual)
        _accept(rendered, body, case, name)
        now = b"".join(rendered.lane._segments)
        assert now.startswith(before)
        lane, before = rendered.lane, now
        sealed = results_to_seal(rendered, ledger)
        ledger = ledger.apply(RequestSent(1, 1, made_by(name), 0, history.length, sealed))


@each_case
def test_a_naive_request_is_repaired_by_importing_and_rendering(case: Case) -> None:
    for name in case.rules:
        with naming.case(name):
            history, ledger = from_wire(json.loads(_naive(case, name)), name)
            rendered, body = send_conversation(history, ledger, name, tools=case.tools, manual=case.manual)
            _accept(rendered, body, case, name)


# ---- the table and its helpers


@pytest.mark.parametrize("name", list(IDS))
def test_the_request_body_of_a_scenario_matches_its_script(name: str) -> None:
    said = parse_script('U["u" I] A["a" c1 c2] [R1 S2] U"go" A[c3] R3 A"well" U')
    words = 'U["u" I] A["a" c1 c2] R1 S2 U"go" A[c3] R3 A"well" U'
    assert shape(naive(said, Asked(name)), dialect(name).family) == words


@pytest.mark.parametrize("name", list(IDS))
def test_the_shape_of_a_request_shows_that_two_results_were_swapped(name: str) -> None:
    body = (
        naive(parse_script("U A[c1 c2] [R1 R2]"), Asked(name)).replace(b"R1.", b"R3.").replace(b"R2.", b"R1.")
    )
    assert shape(body, dialect(name).family) == "U A[c1 c2] R3!1 R1!2"


def test_every_dialect_with_a_strict_server_has_a_rejected_scenario() -> None:
    refused = {
        name for scenario in SCENARIOS for case in scenario.cases for name in case.rules if case.rules[name]
    }
    assert refused == set(IDS) == set(NAMES) == set(PROFILES)


def test_every_scenario_is_listed_once() -> None:
    assert [scenario.number for scenario in SCENARIOS] == list(range(1, 51))


def test_every_scenario_has_a_conversation_or_a_test() -> None:
    assert [scenario.number for scenario in SCENARIOS if not scenario.cases and not scenario.proofs] == []


def test_every_test_that_the_scenario_table_names_exists() -> None:
    for scenario in SCENARIOS:
        for proof in scenario.proofs:
            path, _, name = proof.partition("::")
            assert name in _tests(ROOT / path), (
                f"Scenario {scenario.number} names {proof}, which is not there"
            )


@cache
def _tests(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
