"""Check that reported faults name canonical call ids instead of provider ids."""

from collections.abc import Sequence

import pytest

from actors.adapters.adapter import adapter
from actors.core.check import check, with_canonical_ids
from actors.core.data.jsonio import Json
from actors.core.dialects.profiles import GEMINI, PROFILES
from actors.core.history.history import History
from actors.core.lanes.lane import advance, empty_lane
from actors.core.ledger import Ledger
from actors.core.models.rules import Role
from actors.core.render import RenderTarget
from actors.core.transcript.transcript import Encoder, TitledMedia, Writer
from actors.core.values.content import Message, Text, ToolCall, ToolResult
from actors.core.values.identity import CallId
from actors.errors import ProjectionFault

CALLS = [CallId("read/1"), CallId("read/2")]
HISTORY = History(
    (
        Message("user", (Text("Read both."),)),
        Message("assistant", tuple(ToolCall(call_id, "read", {}) for call_id in CALLS)),
        Message("user", tuple(ToolResult(call_id, "text") for call_id in CALLS)),
        Message("user", (Text("Go on."),)),
    )
)


class Forgetful:
    """A faulty writer that omits the last result of each batch."""

    def __init__(self, real: Writer) -> None:
        self._real = real
        self._has_answered = False
        self.write_text, self.write_thinking, self.write_media = (
            real.write_text,
            real.write_thinking,
            real.write_media,
        )
        self.take_pieces, self.write_native = real.take_pieces, real.write_native

    def begin(self, role: Role) -> None:
        self._has_answered = False
        self._real.begin(role)

    def write_call(self, call_id: str, name: str, call: ToolCall) -> None:
        self._real.write_call(call_id, name, call)

    def write_result(
        self, call_id: str, name: str, json: Json, failed: bool, media: Sequence[TitledMedia]
    ) -> None:
        if not self._has_answered:
            self._real.write_result(call_id, name, json, failed, media)
        self._has_answered = True


def forgetful_family(real: Encoder) -> Encoder:
    return Encoder(lambda last_role: Forgetful(real.writer(last_role)), real.closing)


@pytest.mark.requirement("REQ-915-039", "REQ-915-040")
@pytest.mark.parametrize("name", sorted(PROFILES))
def test_a_reported_fault_contains_the_call_ids_of_the_session(name: str) -> None:
    dialect = PROFILES[name]
    rendered = advance(
        empty_lane(dialect),
        HISTORY,
        Ledger(),
        dialect,
        forgetful_family(adapter(dialect).encoder),
        RenderTarget(None),
    )
    faults = rendered.report.faults
    assert faults
    assert {fault.fault_class for fault in faults} <= {"rendering", "projection"}
    named = {call_id for fault in faults for call_id in fault.call_ids}
    assert CALLS[1] in named
    assert named <= set(CALLS)


def test_a_call_without_a_wire_id_is_identified_by_its_number() -> None:
    call = b'{"functionCall":{"name":"read","args":{}},"thoughtSignature":"c2ln"}'
    body = b'{"contents":[{"role":"user","parts":[{"text":"u"}]},{"role":"model","parts":[%b,%b]}]}' % (
        call,
        call,
    )
    (unanswered, _) = check(body, GEMINI)
    assert unanswered.call_ids == ("#0", "#1")
    (told, _) = with_canonical_ids(check(body, GEMINI), lambda _: None, lambda: CALLS)
    assert told.call_ids == tuple(CALLS)
    assert (str(told), told.rule, type(told)) == (str(unanswered), unanswered.rule, type(unanswered))


def test_a_fault_keeps_a_wire_id_without_a_canonical_id_unchanged() -> None:
    fault = ProjectionFault("messages[1]: odd", call_ids=("t1", "t2", "#7"), rule="ALL-03")
    (told,) = with_canonical_ids([fault], {"t1": "read/1"}.get, lambda: CALLS)
    assert told.call_ids == ("read/1", "t2", "#7")
