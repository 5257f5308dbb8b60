"""Check Kimi's call ids, which number the calls of a conversation: native ids stay and numbers are unique."""

import json
import re
from random import Random

import pytest

from actors.core.data.jsonio import quote
from actors.core.log.call_events import Returned, Scheduled
from actors.core.log.events import AskStarted, Compacted, EpochBegan, Opened, RoundEnded
from actors.core.values.content import Message, ProviderState, Text, ToolCall
from actors.core.values.identity import Binding, CallId
from actors.core.values.packed import pack
from tests.core.session_log import Simulated, find_refusal, text
from tests.generated.histories import READERS

KIMI, OPENAI = READERS["kimi"], READERS["openai_chat"]
FORM = re.compile(r"functions\.(\w+):(\d+)")


def model_call(number: int, native: str = "", by: Binding = OPENAI, name: str = "read") -> Message:
    """Return a model message with one call, and a native id if the provider gave one."""
    seal = ProviderState("call_id", quote(native), by) if native else None
    return Message(
        "assistant", [ToolCall(CallId(f"hist_tool_{number}"), name, {"n": number}, native=seal)], origin=by
    )


class Session(Simulated):
    """A session that answers every call immediately."""

    def asked(self, message: Message) -> None:
        (call,) = message.calls
        self.write(
            AskStarted(len(self.log), pack(Message("user", [Text("go")]))), RoundEnded(1, 1, pack(message))
        )
        self.write(Scheduled(call.id, call.name), Returned(call.id, quote("ok")))

    def ids(self) -> list[str]:
        """Return the call ids in the request; each result has the same id."""
        rendered = self.send(KIMI)
        assert find_refusal(rendered) is None
        messages = json.loads(b"[%b]" % text(rendered))
        called = [call["id"] for message in messages for call in message.get("tool_calls", ())]
        assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == called
        return called


@pytest.fixture
def session() -> Session:
    opened = Session()
    opened.write(Opened("s", "kimi"))
    return opened


@pytest.mark.requirement("REQ-915-020", "REQ-915-014")
def test_foreign_calls_are_numbered_in_order(session: Session) -> None:
    session.asked(model_call(7, "call_x"))
    session.asked(model_call(9, name="run"))
    assert session.ids() == ["functions.read:0", "functions.run:1"]
    session.asked(model_call(3))
    assert session.ids() == ["functions.read:0", "functions.run:1", "functions.read:2"]


@pytest.mark.requirement("REQ-915-020")
@pytest.mark.parametrize("native", ["functions.read:1", "Shell:58", "functions.read:0", "odd-id"])
def test_an_id_from_kimi_is_sent_back_verbatim(session: Session, native: str) -> None:
    session.asked(model_call(1, native, KIMI))
    assert session.ids() == [native]


@pytest.mark.requirement("REQ-915-020", "REQ-915-016")
def test_a_foreign_call_never_gets_a_used_call_number(session: Session) -> None:
    session.asked(model_call(1, "functions.read:0", KIMI))
    session.asked(model_call(2, "call_x"))
    session.asked(model_call(3, "functions.read:9", KIMI))
    session.asked(model_call(4))
    session.asked(model_call(5, "Read:10", KIMI))
    session.asked(model_call(6))
    numbers = ["functions.read:0", "functions.read:1", "functions.read:9", "functions.read:10", "Read:10"]
    assert session.ids() == [*numbers, "functions.read:12"]  # every call takes a number, `Read:10` too


def test_a_kimi_id_that_a_foreign_call_already_uses_is_replaced(session: Session) -> None:
    session.asked(model_call(1, "call_x"))
    session.asked(model_call(2, "functions.read:0", KIMI))
    assert session.ids() == ["functions.read:0", "functions.read:1"]


@pytest.mark.requirement("REQ-915-020", "REQ-915-014")
def test_a_new_epoch_keeps_every_call_number(session: Session) -> None:
    session.asked(model_call(1, "call_x"))
    session.asked(model_call(2, "functions.read:4", KIMI))
    before = session.ids()
    session.restart(KIMI, plain=False)
    session.asked(model_call(3))
    assert session.ids() == [*before, "functions.read:5"]


@pytest.mark.requirement("REQ-915-020")
def test_call_numbers_of_compacted_calls_are_not_reused(session: Session) -> None:
    for number in (1, 2, 3):
        session.asked(model_call(number))
    assert session.ids()[-1] == "functions.read:2"
    kept = len(session.state.history) - 2
    session.write(Compacted(0, kept, pack(Message("user", [Text("Summary.")]))))
    session.write(EpochBegan(KIMI, 1, "compaction", plain=False))
    session.asked(model_call(4))
    assert session.ids()[-1] == "functions.read:3"


@pytest.mark.requirement("REQ-915-020", "PROMISE-4")
@pytest.mark.parametrize("seed", range(30))
def test_call_numbers_are_unique_and_stable_in_any_mixture_of_native_and_foreign_calls(seed: int) -> None:
    random = Random(seed)
    session = Session()
    session.write(Opened("s", "kimi"))
    seen: list[str] = []
    for number in range(1, 25):
        native = random.choice(["", f"functions.read:{random.randrange(30)}", f"Read:{number}"])
        session.asked(
            model_call(number, native, random.choice([KIMI, OPENAI]), random.choice(["read", "run"]))
        )
        if random.random() < 0.1:
            session.restart(KIMI, plain=False)
        ids = session.ids()
        assert ids[: len(seen)] == seen
        assert len(set(ids)) == len(ids)
        seen = ids
    minted = [call_id for call_id in seen if FORM.fullmatch(call_id)]
    assert len(minted) > 5
