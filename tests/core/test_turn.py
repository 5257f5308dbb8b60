"""A turn ends, within its bounds, whatever comes of its steps; and only as its table says."""

from collections.abc import Generator, Iterator
from itertools import pairwise

import pytest

from actors.core.content import Message, Text, ToolCall
from actors.core.progress import Cause
from actors.core.stream import Usage
from actors.core.turn import (
    Answered,
    AwaitStep,
    BatchStep,
    Bounds,
    Broke,
    Brought,
    CloseStep,
    GenerateStep,
    HandedOver,
    MediaRefused,
    Outcome,
    Ran,
    Ready,
    RenderStep,
    RewriteStep,
    ShrinkStep,
    Shrunk,
    Step,
    Stopped,
    Unfit,
    turn,
)

WORDS = Message("model", [Text("done")])
CALLS = Message("model", [ToolCall("c1", "read"), ToolCall("c2", "read")])
ONE = Usage(1, 1)

POSSIBLE: dict[type[Step], tuple[Outcome, ...]] = {
    RenderStep: (
        Ready(),
        HandedOver("b"),
        HandedOver("b", "no"),
        Unfit("judged"),
        Unfit("judged", reasoning=True),
        Stopped(),
    ),
    RewriteStep: (Ready(), Stopped()),
    GenerateStep: (
        Answered(CALLS, ONE),
        Answered(WORDS, ONE),
        Unfit("400"),
        Unfit("400", reasoning=True),
        MediaRefused("400", ("a",), ("b",)),
        Broke("503", usage=ONE),
        Broke("cut", message=CALLS, visible=True),
        Broke("long", usage=ONE, too_long=True),
        Stopped(),
        Stopped(CALLS),
    ),
    ShrinkStep: (Shrunk(True, usage=ONE), Shrunk(False, "no"), Stopped()),
    BatchStep: (
        *(Ran(0), Ran(1), Ran(2), Stopped()),
        *(Ran(0, external=CALLS.calls), Ran(0, approvals=CALLS.calls), Stopped(awaited=CALLS.calls)),
    ),
    AwaitStep: (Brought(), Brought(CALLS.calls), Stopped(awaited=CALLS.calls)),
}
FOLLOWS: dict[type[Step], tuple[type[Step], ...]] = {
    RenderStep: (GenerateStep, RewriteStep, CloseStep),
    RewriteStep: (RenderStep, CloseStep),
    GenerateStep: (BatchStep, RewriteStep, ShrinkStep, CloseStep),
    ShrinkStep: (RenderStep, CloseStep),
    BatchStep: (RenderStep, AwaitStep, CloseStep),
    AwaitStep: (RenderStep, BatchStep, CloseStep),
}


def played(
    conduct: Generator[Step, Outcome], outcomes: Iterator[Outcome]
) -> tuple[list[Step], CloseStep | None]:
    """Send the outcomes in order. Return the steps asked for, and how it ended if it did."""
    step = next(conduct)
    steps = [step]
    while not isinstance(step, CloseStep):
        outcome = next(outcomes, None)
        if outcome is None:
            return steps, None
        step = conduct.send(outcome)
        steps.append(step)
    assert list(conduct) == []
    return steps, step


def walks(depth: int, bounds: Bounds) -> Iterator[tuple[tuple[Outcome, ...], list[Step], CloseStep | None]]:
    """Every sequence of possible outcomes to this depth, and what a turn makes of it."""
    pending: list[tuple[Outcome, ...]] = [()]
    while pending:
        taken = pending.pop()
        steps, ended = played(turn(bounds), iter(taken))
        if ended is None and len(taken) < depth:
            pending.extend((*taken, outcome) for outcome in POSSIBLE[type(steps[-1])])
        else:
            yield taken, steps, ended


@pytest.mark.requirement("U-01")
@pytest.mark.parametrize("bounds", [Bounds(), Bounds(rounds=1), Bounds(rounds=2, corrections=1)])
def test_every_sequence_of_outcomes_follows_the_table(bounds: Bounds) -> None:
    count = 0
    for taken, steps, ended in walks(6, bounds):
        count += 1
        assert_rewrites_as_it_was_refused(taken, steps)
        assert_is_made_shorter_thrice_at_most(taken, steps)
        assert_media_are_left_out_thrice_at_most(taken, steps)
        for before, after in pairwise(steps):
            assert isinstance(after, FOLLOWS[type(before)])
        if ended is None:
            continue
        assert [isinstance(step, CloseStep) for step in steps].count(True) == 1
        assert_ended_as_it_was_told(taken, ended)
    assert count > 20


def assert_rewrites_as_it_was_refused(taken: tuple[Outcome, ...], steps: list[Step]) -> None:
    """Once in plain words, and before that once without old reasoning, if only that was refused at first."""
    rewrites = [step.plain for step in steps if isinstance(step, RewriteStep) and not step.media]
    refusals = [outcome.reasoning for outcome in taken if isinstance(outcome, Unfit)]
    allowed = [False, True] if refusals[:1] == [True] else [True]
    assert rewrites == allowed[: len(refusals)]


def assert_is_made_shorter_thrice_at_most(taken: tuple[Outcome, ...], steps: list[Step]) -> None:
    """Each time that a request is too long, up to the fourth; the first time as usual, and then more of it.

    An answer begins the count anew: the next request is another.
    """
    shrinks = [step.again for step in steps if isinstance(step, ShrinkStep)]
    expected, refused = list[bool](), 0
    for outcome in taken:
        if isinstance(outcome, Answered):
            refused = 0
        elif isinstance(outcome, Broke) and outcome.too_long:
            refused += 1
            expected += [refused > 1] if refused <= 3 else []
    assert shrinks == expected


def assert_media_are_left_out_thrice_at_most(taken: tuple[Outcome, ...], steps: list[Step]) -> None:
    """The named attachments, and the third time all. An answer begins the count anew."""
    left_out = [step.media for step in steps if isinstance(step, RewriteStep) and step.media]
    expected, refused = list[tuple[str, ...]](), 0
    for outcome in taken:
        if isinstance(outcome, Answered):
            refused = 0
        elif isinstance(outcome, MediaRefused):
            refused += 1
            expected += [("a", "b") if refused == 3 else ("a",)] if refused <= 3 else []
    assert left_out == expected


def assert_ended_as_it_was_told(taken: tuple[Outcome, ...], ended: CloseStep) -> None:
    last = taken[-1]
    if isinstance(last, HandedOver):
        assert (ended.status, ended.handover) == (
            ("failed", None) if last.why else ("handed_over", last.target)
        )
    else:
        status = {
            Stopped: "cancelled",
            Answered: "complete",
            Broke: "failed",
            Unfit: "failed",
            MediaRefused: "failed",
            Shrunk: "failed",
        }[type(last)]
        assert (ended.status, ended.handover) == (status, None)
    assert ended.usage.output_tokens == sum(
        outcome.usage.output_tokens
        for outcome in taken
        if isinstance(outcome, Answered | Broke | Shrunk | Stopped)
    )
    kept = last.message if isinstance(last, Answered | Broke | Stopped) else None
    assert ended.unrun == (kept.calls if kept is not None else ())
    assert ended.awaited == (last.awaited if isinstance(last, Stopped) else ())
    assert ended.visible == any(isinstance(outcome, Broke) and outcome.visible for outcome in taken)


def endless(refused: int) -> Iterator[Outcome]:
    """A model that calls tools far longer than any turn may go on."""
    for _ in range(100):
        yield from (Ready(), Answered(CALLS, ONE), Ran(refused))


@pytest.mark.requirement("U-13")
@pytest.mark.parametrize("rounds", [1, 2, 5, 25])
def test_rounds_are_bounded_and_the_last_is_asked_with_tools_off(rounds: int) -> None:
    steps, ended = played(turn(Bounds(rounds)), endless(0))
    renders = [step for step in steps if isinstance(step, RenderStep)]
    assert [step.tools_off for step in renders] == [False] * (rounds - 1) + [True]
    assert [step.round for step in renders] == list(range(1, rounds + 1))
    assert ended is not None
    assert (ended.status, ended.rounds) == ("complete", rounds)
    assert ended.unrun == CALLS.calls


@pytest.mark.requirement("U-06")
@pytest.mark.parametrize("corrections", [1, 2, 3])
def test_rounds_in_which_every_call_was_refused_are_bounded(corrections: int) -> None:
    steps, _ = played(turn(Bounds(25, corrections)), endless(len(CALLS.calls)))
    assert sum(isinstance(step, BatchStep) for step in steps) == corrections
    assert [step.tools_off for step in steps if isinstance(step, RenderStep)] == [False] * corrections + [
        True
    ]


@pytest.mark.requirement("U-06")
def test_a_round_with_one_valid_call_starts_the_count_anew() -> None:
    outcomes = [
        outcome for refused in (2, 2, 1, 2, 2, 2) for outcome in (Ready(), Answered(CALLS, ONE), Ran(refused))
    ]
    steps, _ = played(turn(Bounds(25, 3)), iter([*outcomes, Ready(), Answered(WORDS, ONE)]))
    assert sum(isinstance(step, BatchStep) for step in steps) == 6
    assert [step.tools_off for step in steps if isinstance(step, RenderStep)] == [False] * 6 + [True]


def test_a_refused_transcript_is_rewritten_once_in_a_turn() -> None:
    refused = Unfit("400")
    steps, ended = played(turn(Bounds()), iter([Ready(), refused, Ready(), Ready(), refused]))
    assert [type(step) for step in steps] == [
        RenderStep,
        GenerateStep,
        RewriteStep,
        RenderStep,
        GenerateStep,
        CloseStep,
    ]
    assert ended is not None
    assert (ended.status, ended.elsewhere, ended.refused) == ("failed", True, True)


def test_a_refusal_that_was_got_over_is_not_the_cause_of_a_cancelled_turn() -> None:
    refused = Unfit("400", cause=Cause("transcript", 400))
    _, ended = played(turn(Bounds()), iter([Ready(), refused, Ready(), Ready(), Stopped()]))
    assert ended is not None
    assert (ended.status, ended.cause) == ("cancelled", None)


def test_refused_reasoning_is_left_out_before_everything_is_said_in_plain_words() -> None:
    refused = Unfit("400", reasoning=True)
    again = (Ready(), Ready(), refused)
    steps, ended = played(turn(Bounds()), iter([Ready(), refused, *again, *again]))
    assert [step.plain for step in steps if isinstance(step, RewriteStep)] == [False, True]
    assert ended is not None
    assert ended.status == "failed"


@pytest.mark.parametrize("approved", [(), CALLS.calls])
def test_a_turn_that_waited_goes_on_from_its_step_as_if_it_had_not_been_put_down(
    approved: tuple[ToolCall, ...],
) -> None:
    asked: tuple[Outcome, ...] = (Ready(), Answered(CALLS, ONE))
    before: list[Outcome] = [
        *asked,
        Ran(2),
        *asked,
        Ran(2, external=CALLS.calls[:1], approvals=CALLS.calls[1:]),
    ]
    steps, _ = played(turn(Bounds(25, 3)), iter(before))
    waited = steps[-1]
    assert isinstance(waited, AwaitStep)
    assert waited.calls == CALLS.calls
    ran: list[Outcome] = [Ran()] if approved else []
    after: list[Outcome] = [Brought(approved), *ran, *asked, Ran(2), Ready(), Answered(WORDS, ONE)]
    whole, ended = played(turn(Bounds(25, 3)), iter([*before, *after]))
    assert played(turn(Bounds(25, 3), waited), iter(after)) == (whole[len(steps) - 1 :], ended)
    assert ended is not None
    assert (ended.rounds, ended.usage) == (4, Usage(4, 4))
    assert [step.tools_off for step in whole if isinstance(step, RenderStep)] == [False, False, False, True]


def test_a_turn_that_is_cancelled_while_it_waits_has_the_rounds_it_was_answered_in() -> None:
    outcomes: list[Outcome] = [
        Ready(),
        Answered(CALLS, ONE),
        Ran(external=CALLS.calls),
        Stopped(awaited=CALLS.calls),
    ]
    _, ended = played(turn(Bounds()), iter(outcomes))
    assert ended is not None
    assert (ended.status, ended.rounds, ended.awaited) == ("cancelled", 1, CALLS.calls)


WRONG = [
    (step, wrong)
    for step, possible in POSSIBLE.items()
    for wrong in (Ready(), Unfit("judged"), Answered(WORDS, ONE), Broke("503"), Ran())
    if type(wrong) not in map(type, possible)
]


@pytest.mark.parametrize(("step", "wrong"), WRONG)
def test_what_does_not_answer_a_step_is_a_programming_error(step: type[Step], wrong: Outcome) -> None:
    way: dict[type[Step], tuple[Outcome, ...]] = {
        RenderStep: (),
        RewriteStep: (Unfit("judged"),),
        GenerateStep: (Ready(),),
        ShrinkStep: (Ready(), Broke("long", too_long=True)),
        BatchStep: (Ready(), Answered(CALLS, ONE)),
        AwaitStep: (Ready(), Answered(CALLS, ONE), Ran(external=CALLS.calls)),
    }
    with pytest.raises(AssertionError):
        played(turn(Bounds()), iter([*way[step], wrong]))


def test_refused_media_are_replaced_where_they_are_named_and_all_at_the_third_refusal() -> None:
    refused = MediaRefused("400", ("a",), ("b", "c"))
    unnamed = MediaRefused("400", (), ("b",))
    outcomes = [
        Ready(),
        unnamed,
        Ready(),
        Ready(),
        refused,
        Ready(),
        Ready(),
        refused,
        Ready(),
        Ready(),
        refused,
    ]
    steps, ended = played(turn(Bounds()), iter(outcomes))
    left_out = [step.media for step in steps if isinstance(step, RewriteStep)]
    assert left_out == [("b",), ("a",), ("a", "b", "c")]
    assert not any(step.plain for step in steps if isinstance(step, RewriteStep))
    assert ended is not None
    assert (ended.status, ended.elsewhere, ended.refused) == ("failed", True, False)
