"""Check that a changed system prompt or tool list starts an epoch if reasoning is bound to it."""

import pytest

from actors.core.data.jsonio import quote
from actors.core.log.events import AskStarted, Configured, Opened, RoundEnded
from actors.core.session.lanes import rebuild
from actors.core.values.content import Message, ProviderState, Text, Thinking
from actors.core.values.identity import Binding
from actors.core.values.packed import pack
from tests.core.session_log import Simulated, reread_log, rules, text
from tests.generated.histories import READERS

BEGUN = Configured("Be brief.", ("read",), "other")
SEALS = {"anthropic": "signature", "bedrock": "bedrock_reasoning"}


def thoughtful_turn(number: int, binding: Binding) -> tuple[AskStarted, RoundEnded]:
    """Return a question and an answer with thinking."""
    thought = Thinking(
        f"THOUGHT{number}", ProviderState(SEALS.get(binding.dialect, "signature"), quote("c2ln"), binding)
    )
    asked = pack(Message("user", [Text(f"{number}?")], number))
    return AskStarted(number, asked), RoundEnded(
        number, 1, pack(Message("assistant", [thought, Text(f"{number}.")], number, binding))
    )


def session_with_thinking(binding: Binding) -> Simulated:
    """Return a session that has sent thinking back to its model."""
    session = Simulated()
    session.write(Opened("s", "t", preamble="one"))
    asked, answered = thoughtful_turn(1, binding)
    session.write(asked)
    session.send(binding)
    session.write(answered, thoughtful_turn(2, binding)[0])
    session.send(binding)
    session.write(thoughtful_turn(2, binding)[1])
    return session


@pytest.mark.requirement("PROMISE-3", "PROMISE-4")
@pytest.mark.parametrize("name", sorted(READERS))
def test_a_changed_configuration_starts_an_epoch_only_in_lanes_with_bound_reasoning(
    name: str,
) -> None:
    binding = READERS[name]
    session, is_bound = session_with_thinking(binding), rules(binding)[0].reasoning.binding == "prefix"
    before = text(session.sent[-1][2])
    session.write(BEGUN, thoughtful_turn(3, binding)[0])
    rendered = session.send(binding)
    assert session.state.history.system == "Be brief."
    assert rendered.lane._state.epoch == is_bound
    assert (rendered._before == 0) == is_bound
    assert (b"THOUGHT1" in text(rendered)) <= (not is_bound)
    if not is_bound:
        assert text(rendered).startswith(before)
    session.write(thoughtful_turn(3, binding)[1], thoughtful_turn(4, binding)[0])
    assert session.send(binding).lane._state.epoch == is_bound
    state, lanes = rebuild(reread_log(session.log), rules)
    assert state == session.state
    assert lanes.of(binding)._state == session.lanes.of(binding)._state
    assert b"".join(lanes.of(binding)._segments) == b"".join(session.lanes.of(binding)._segments)


def test_only_thinking_of_the_new_epoch_is_sent() -> None:
    claude = READERS["anthropic"]
    session = session_with_thinking(claude)
    session.write(BEGUN, thoughtful_turn(3, claude)[0])
    session.send(claude)
    session.write(thoughtful_turn(3, claude)[1], thoughtful_turn(4, claude)[0])
    sent = text(session.send(claude))
    assert [f"THOUGHT{number}".encode() in sent for number in (1, 2, 3)] == [False, False, True]


def test_logging_an_unchanged_configuration_starts_no_epoch() -> None:
    claude = READERS["anthropic"]
    session = session_with_thinking(claude)
    session.write(Configured(None, (), "one"), thoughtful_turn(3, claude)[0])
    assert session.send(claude).lane._state.epoch == 0


def test_a_lane_rendered_as_plain_text_stays_plain_after_a_configuration_change() -> None:
    claude = READERS["anthropic"]
    session = session_with_thinking(claude)
    session.restart(claude, plain=True)
    session.write(BEGUN, thoughtful_turn(3, claude)[0])
    assert session.send(claude).lane._state.plain
