"""Check that a turn always ends within its bounds and only as its table allows."""

from collections.abc import Generator, Iterator
from itertools import pairwise

import pytest

from actors.core.log.events import OmittedParameter
from actors.core.turn.steps import (
    Answered,
    AwaitStep,
    BatchOutcome,
    BatchStep,
    CallsResolved,
    Checked,
    CloseStep,
    CompactionEnded,
    GenerateStep,
    HandedOver,
    InstructStep,
    MediaRefused,
    Outcome,
    ParameterRefused,
    Ready,
    RenderStep,
    RequestFailed,
    RewriteStep,
    ShrinkStep,
    Step,
    Stopped,
    TranscriptRefused,
)
from actors.core.turn.turn import Bounds, turn
from actors.core.values.content import Message, Text, ToolCall
from actors.core.values.progress import Cause
from actors.core.values.stream import Usage

WORDS = Message("assistant", [Text("done")])
NOTHING = Message("assistant", [])
CALLS = Message("assistant", [ToolCall("c1", "read"), ToolCall("c2", "read")])
ONE = Usage(1, 1)

POSSIBLE: dict[type[Step], tuple[Outcome, ...]] = {
    RenderStep: (
        Ready(),
        HandedOver("b"),
        HandedOver("b", "no"),
        TranscriptRefused("judged"),
        TranscriptRefused("judged", reasoning=True),
        Stopped(),
    ),
    RewriteStep: (Ready(), Stopped()),
    InstructStep: (Ready(), Stopped()),
    GenerateStep: (
        Answered(CALLS, ONE),
        Answered(WORDS, ONE),
        Answered(NOTHING, ONE, "empty"),
        Answered(WORDS, ONE, "unparsed"),
        TranscriptRefused("400"),
        TranscriptRefused("400", reasoning=True),
        ParameterRefused((OmittedParameter("effort"),)),
        MediaRefused("400", ("a",), ("b",)),
        RequestFailed("503", usage=ONE),
        RequestFailed("cut", message=CALLS, visible=True),
        RequestFailed("long", usage=ONE, too_long=True),
        Stopped(),
        Stopped(CALLS),
    ),
    ShrinkStep: (CompactionEnded(True, usage=ONE), CompactionEnded(False, "no"), Stopped()),
    BatchStep: (
        *(BatchOutcome(0), BatchOutcome(1), BatchOutcome(2), Stopped()),
        *(
            BatchOutcome(0, external=CALLS.calls),
            BatchOutcome(0, approvals=CALLS.calls),
            Stopped(awaited=CALLS.calls),
        ),
    ),
    AwaitStep: (CallsResolved(), CallsResolved(CALLS.calls), Stopped(awaited=CALLS.calls)),
}
FOLLOWS: dict[type[Step], tuple[type[Step], ...]] = {
    RenderStep: (GenerateStep, RewriteStep, CloseStep),
    RewriteStep: (RenderStep, CloseStep),
    InstructStep: (RenderStep, CloseStep),
    GenerateStep: (RenderStep, BatchStep, RenderStep, InstructStep, RewriteStep, ShrinkStep, CloseStep),
    ShrinkStep: (RenderStep, CloseStep),
    BatchStep: (RenderStep, AwaitStep, CloseStep),
    AwaitStep: (RenderStep, BatchStep, CloseStep),
}


def play(
    conduct: Generator[Step, Outcome], outcomes: Iterator[Outcome]
) -> tuple[list[Step], CloseStep | None]:
    """Send the outcomes in order. Return the requested steps, and the end of the turn if it ended."""
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
    """Yield every sequence of possible outcomes up to this depth, with the steps of the turn."""
    pending: list[tuple[Outcome, ...]] = [()]
    while pending:
        taken = pending.pop()
        steps, ended = play(turn(bounds), iter(taken))
        if ended is None and len(taken) < depth:
            pending.extend((*taken, outcome) for outcome in POSSIBLE[type(steps[-1])])
        else:
            yield taken, steps, ended


@pytest.mark.requirement("U-01")
@pytest.mark.parametrize("bounds", [Bounds(), Bounds(max_rounds=1), Bounds(max_rounds=2, max_corrections=1)])
def test_every_sequence_of_outcomes_follows_the_state_table_of_turns(bounds: Bounds) -> None:
    count = 0
    for taken, steps, ended in walks(6, bounds):
        count += 1
        assert_rewrites_follow_rejections(taken, steps)
        assert_at_most_three_compactions(taken, steps)
        assert_at_most_three_media_removals(taken, steps)
        assert_one_retry_of_empty_answers(taken, steps)
        for before, after in pairwise(steps):
            assert isinstance(after, FOLLOWS[type(before)])
            if isinstance(after, RenderStep):  # only the render after a batch applies its handoff
                assert after.follows_batch is isinstance(before, BatchStep | AwaitStep)
        if ended is None:
            continue
        assert [isinstance(step, CloseStep) for step in steps].count(True) == 1
        assert_end_matches_last_outcome(taken, ended)
    assert count > 20


def assert_rewrites_follow_rejections(taken: tuple[Outcome, ...], steps: list[Step]) -> None:
    """Check for at most one plain rewrite, preceded by one without old reasoning if that was rejected."""
    rewrites = [step.plain for step in steps if isinstance(step, RewriteStep) and not step.media]
    refusals = [outcome.reasoning for outcome in taken if isinstance(outcome, TranscriptRefused)]
    allowed = [False, True] if refusals[:1] == [True] else [True]
    assert rewrites == allowed[: len(refusals)]


def assert_at_most_three_compactions(taken: tuple[Outcome, ...], steps: list[Step]) -> None:
    """Each time that a request is too long, up to the fourth; the first time as usual, and then more of it.

    An answer begins the count anew: the next request is another.
    """
    shrinks = [step.is_repeated for step in steps if isinstance(step, ShrinkStep)]
    expected, refused = list[bool](), 0
    for outcome in taken:
        if isinstance(outcome, Answered):
            refused = 0
        elif isinstance(outcome, RequestFailed) and outcome.too_long:
            refused += 1
            expected += [refused > 1] if refused <= 3 else []
    assert shrinks == expected


def assert_at_most_three_media_removals(taken: tuple[Outcome, ...], steps: list[Step]) -> None:
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


def has_completed_a_batch(taken: tuple[Outcome, ...]) -> bool:
    """Return True if a batch was completed."""
    return any(
        isinstance(outcome, CallsResolved)
        or (isinstance(outcome, BatchOutcome) and not (outcome.external or outcome.approvals))
        for outcome in taken
    )


def assert_one_retry_of_empty_answers(taken: tuple[Outcome, ...], steps: list[Step]) -> None:
    """A second consecutive answer without content ends the turn. Only an empty answer causes a new render."""
    answers = [(outcome, steps[at + 1]) for at, outcome in enumerate(taken) if isinstance(outcome, Answered)]
    was_lacking = False
    for at, (answer, after) in enumerate(answers):
        is_lacking = answer.cut in ("empty", "unparsed")
        if is_lacking:
            assert isinstance(after, CloseStep) is was_lacking
        elif not answer.message.calls:
            assert isinstance(after, CloseStep)
        if isinstance(after, RenderStep):
            assert (answer.cut, bool(after.repeat_reason)) == ("empty", True)
        was_lacking = is_lacking and (at == len(answers) - 1 or not isinstance(after, CloseStep))


def assert_end_matches_last_outcome(taken: tuple[Outcome, ...], ended: CloseStep) -> None:
    last = taken[-1]
    if isinstance(last, HandedOver):
        assert (ended.status, ended.handover) == (
            ("failed", None) if last.reason else ("handed_over", last.target)
        )
    else:
        status = {
            Stopped: "cancelled",
            Answered: "complete",
            RequestFailed: "failed",
            TranscriptRefused: "failed",
            MediaRefused: "failed",
            CompactionEnded: "failed",
        }[type(last)]
        if isinstance(last, Answered) and last.cut == "empty" and not has_completed_a_batch(taken):
            status = "failed"
        assert (ended.status, ended.handover) == (status, None)
    assert ended.usage.output_tokens == sum(
        outcome.usage.output_tokens
        for outcome in taken
        if isinstance(outcome, Answered | RequestFailed | CompactionEnded | Stopped)
    )
    kept = last.message if isinstance(last, Answered | RequestFailed | Stopped) else None
    assert ended.unrun == (kept.calls if kept is not None else ())
    assert ended.awaited == (last.awaited if isinstance(last, Stopped) else ())
    assert ended.visible == any(isinstance(outcome, RequestFailed) and outcome.visible for outcome in taken)


def endless_calls(refused: int) -> Iterator[Outcome]:
    """Yield outcomes of a model that never stops calling tools."""
    for _ in range(100):
        yield from (Ready(), Answered(CALLS, ONE), BatchOutcome(refused))


@pytest.mark.requirement("U-13")
@pytest.mark.parametrize("rounds", [1, 2, 5, 25])
def test_the_number_of_rounds_is_bounded_and_the_last_round_has_tools_disabled(rounds: int) -> None:
    steps, ended = play(turn(Bounds(rounds)), endless_calls(0))
    renders = [step for step in steps if isinstance(step, RenderStep)]
    assert [step.tools_off for step in renders] == [False] * (rounds - 1) + [True]
    assert [step.round for step in renders] == list(range(1, rounds + 1))
    assert ended is not None
    assert (ended.status, ended.rounds) == ("complete", rounds)
    assert ended.unrun == CALLS.calls


@pytest.mark.requirement("U-06")
@pytest.mark.parametrize("corrections", [1, 2, 3])
def test_the_number_of_rounds_in_which_every_call_is_denied_is_bounded(corrections: int) -> None:
    steps, _ = play(turn(Bounds(25, corrections)), endless_calls(len(CALLS.calls)))
    assert sum(isinstance(step, BatchStep) for step in steps) == corrections
    assert [step.tools_off for step in steps if isinstance(step, RenderStep)] == [False] * corrections + [
        True
    ]


@pytest.mark.requirement("U-06")
def test_a_round_with_a_call_that_is_not_denied_resets_the_count_of_denied_rounds() -> None:
    outcomes = [
        outcome
        for refused in (2, 2, 1, 2, 2, 2)
        for outcome in (Ready(), Answered(CALLS, ONE), BatchOutcome(refused))
    ]
    steps, _ = play(turn(Bounds(25, 3)), iter([*outcomes, Ready(), Answered(WORDS, ONE)]))
    assert sum(isinstance(step, BatchStep) for step in steps) == 6
    assert [step.tools_off for step in steps if isinstance(step, RenderStep)] == [False] * 6 + [True]


def test_a_transcript_that_a_provider_rejects_is_rewritten_once_per_turn() -> None:
    refused = TranscriptRefused("400")
    steps, ended = play(turn(Bounds()), iter([Ready(), refused, Ready(), Ready(), refused]))
    assert [type(step) for step in steps] == [
        RenderStep,
        GenerateStep,
        RewriteStep,
        RenderStep,
        GenerateStep,
        CloseStep,
    ]
    assert ended is not None
    assert (ended.status, ended.can_fail_over, ended.refused) == ("failed", True, True)


def test_a_rejection_followed_by_an_accepted_retry_is_not_the_cause_of_a_cancelled_turn() -> None:
    refused = TranscriptRefused("400", cause=Cause("transcript", 400))
    _, ended = play(turn(Bounds()), iter([Ready(), refused, Ready(), Ready(), Stopped()]))
    assert ended is not None
    assert (ended.status, ended.cause) == ("cancelled", None)


def test_rejected_reasoning_is_dropped_before_a_plain_render() -> None:
    refused = TranscriptRefused("400", reasoning=True)
    again = (Ready(), Ready(), refused)
    steps, ended = play(turn(Bounds()), iter([Ready(), refused, *again, *again]))
    assert [step.plain for step in steps if isinstance(step, RewriteStep)] == [False, True]
    assert ended is not None
    assert ended.status == "failed"


@pytest.mark.parametrize("approved", [(), CALLS.calls])
def test_a_deferred_turn_resumes_at_the_step_at_which_it_stopped(
    approved: tuple[ToolCall, ...],
) -> None:
    asked: tuple[Outcome, ...] = (Ready(), Answered(CALLS, ONE))
    before: list[Outcome] = [
        *asked,
        BatchOutcome(2),
        *asked,
        BatchOutcome(2, external=CALLS.calls[:1], approvals=CALLS.calls[1:]),
    ]
    steps, _ = play(turn(Bounds(25, 3)), iter(before))
    waited = steps[-1]
    assert isinstance(waited, AwaitStep)
    assert waited.calls == CALLS.calls
    ran: list[Outcome] = [BatchOutcome()] if approved else []
    after: list[Outcome] = [
        CallsResolved(approved),
        *ran,
        *asked,
        BatchOutcome(2),
        Ready(),
        Answered(WORDS, ONE),
    ]
    whole, ended = play(turn(Bounds(25, 3)), iter([*before, *after]))
    assert play(turn(Bounds(25, 3), waited), iter(after)) == (whole[len(steps) - 1 :], ended)
    assert ended is not None
    assert (ended.rounds, ended.usage) == (4, Usage(4, 4))
    assert [step.tools_off for step in whole if isinstance(step, RenderStep)] == [False, False, False, True]


def test_a_turn_cancelled_while_deferred_counts_its_finished_rounds() -> None:
    outcomes: list[Outcome] = [
        Ready(),
        Answered(CALLS, ONE),
        BatchOutcome(external=CALLS.calls),
        Stopped(awaited=CALLS.calls),
    ]
    _, ended = play(turn(Bounds()), iter(outcomes))
    assert ended is not None
    assert (ended.status, ended.rounds, ended.awaited) == ("cancelled", 1, CALLS.calls)


WRONG = [
    (step, wrong)
    for step, possible in POSSIBLE.items()
    for wrong in (
        Ready(),
        TranscriptRefused("judged"),
        Answered(WORDS, ONE),
        RequestFailed("503"),
        BatchOutcome(),
    )
    if type(wrong) not in map(type, possible)
]


@pytest.mark.parametrize(("step", "wrong"), WRONG)
def test_an_outcome_that_does_not_fit_the_step_of_a_turn_raises_a_programming_error(
    step: type[Step], wrong: Outcome
) -> None:
    way: dict[type[Step], tuple[Outcome, ...]] = {
        RenderStep: (),
        RewriteStep: (TranscriptRefused("judged"),),
        GenerateStep: (Ready(),),
        InstructStep: (Ready(), UNPARSED),
        ShrinkStep: (Ready(), RequestFailed("long", too_long=True)),
        BatchStep: (Ready(), Answered(CALLS, ONE)),
        AwaitStep: (Ready(), Answered(CALLS, ONE), BatchOutcome(external=CALLS.calls)),
    }
    with pytest.raises(AssertionError):
        play(turn(Bounds()), iter([*way[step], wrong]))


def test_a_media_rejection_replaces_the_named_media_and_the_third_replaces_all_media() -> None:
    refused = MediaRefused("400", ("a",), ("b", "c"))
    unnamed = MediaRefused("400", (), ("b",))
    outcomes: list[Outcome] = [
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
    steps, ended = play(turn(Bounds()), iter(outcomes))
    left_out = [step.media for step in steps if isinstance(step, RewriteStep)]
    assert left_out == [("b",), ("a",), ("a", "b", "c")]
    assert not any(step.plain for step in steps if isinstance(step, RewriteStep))
    assert ended is not None
    assert (ended.status, ended.can_fail_over, ended.refused) == ("failed", True, False)


EMPTY = Answered(NOTHING, ONE, "empty")
UNPARSED = Answered(WORDS, ONE, "unparsed")


def kinds(steps: list[Step]) -> list[str]:
    """Return the kinds of the steps between the first request and the end."""
    return [type(step).__name__ for step in steps if not isinstance(step, RenderStep | GenerateStep)]


def test_a_second_empty_answer_fails_the_turn_and_allows_failover() -> None:
    steps, ended = play(turn(Bounds()), iter([Ready(), EMPTY, Ready(), EMPTY]))
    assert [step.repeat_reason != "" for step in steps if isinstance(step, RenderStep)] == [False, True]
    assert ended is not None
    assert (ended.status, ended.can_fail_over, ended.visible, ended.rounds) == ("failed", True, False, 2)
    assert (ended.usage, ended.cause) == (ONE + ONE, Cause("model_fault"))


def test_a_second_empty_answer_after_tool_results_completes_the_turn() -> None:
    ran: list[Outcome] = [Ready(), Answered(CALLS, ONE), BatchOutcome()]
    steps, ended = play(turn(Bounds()), iter([*ran, Ready(), EMPTY, Ready(), Ready(), EMPTY]))
    assert kinds(steps) == ["BatchStep", "InstructStep", "CloseStep"]
    assert ended is not None
    assert (ended.status, ended.reason, ended.rounds) == ("complete", "", 3)


def test_a_turn_resumed_from_its_await_step_counts_earlier_tool_results() -> None:
    waited: list[Outcome] = [
        Ready(),
        Answered(CALLS, ONE),
        BatchOutcome(external=CALLS.calls),
        CallsResolved(),
    ]
    steps, _ = play(turn(Bounds()), iter([*waited, Ready(), EMPTY]))
    assert isinstance(steps[-1], InstructStep)
    step = steps[3]
    assert isinstance(step, AwaitStep)
    assert play(turn(Bounds(), step), iter([CallsResolved(), Ready(), EMPTY]))[0] == steps[3:]


def test_a_second_unparsed_call_completes_the_turn() -> None:
    steps, ended = play(turn(Bounds()), iter([Ready(), UNPARSED, Ready(), Ready(), UNPARSED]))
    assert kinds(steps) == ["InstructStep", "CloseStep"]
    assert ended is not None
    assert (ended.status, ended.message) == ("complete", WORDS)


def test_an_answer_with_calls_resets_the_count_of_empty_answers() -> None:
    ran: list[Outcome] = [Ready(), Answered(CALLS, ONE), BatchOutcome()]
    steps, _ = play(
        turn(Bounds()), iter([Ready(), EMPTY, *ran, Ready(), EMPTY, Ready(), *ran, Ready(), UNPARSED])
    )
    assert kinds(steps) == ["BatchStep", "InstructStep", "BatchStep", "InstructStep"]


def test_the_retry_of_an_empty_answer_may_exceed_the_round_limit() -> None:
    steps, ended = play(turn(Bounds(max_rounds=1)), iter([Ready(), EMPTY, Ready(), Answered(WORDS, ONE)]))
    assert [(step.round, step.tools_off) for step in steps if isinstance(step, RenderStep)] == [
        (1, True),
        (2, True),
    ]
    assert ended is not None
    assert ended.status == "complete"


def test_with_tools_off_the_model_is_instructed_to_answer_with_text() -> None:
    for rounds, says in ((1, "Tools are disabled now"), (2, "Call the tool")):
        steps, _ = play(turn(Bounds(max_rounds=rounds)), iter([Ready(), UNPARSED]))
        told = steps[-1]
        assert isinstance(told, InstructStep)
        assert says in told.instruction


def test_an_empty_structured_answer_is_retried_before_it_is_corrected() -> None:
    steps, ended = play(
        turn(Bounds(has_format=True, max_corrections=1)),
        iter(
            [
                Ready(),
                EMPTY,
                Ready(),
                EMPTY,
                Checked("no", "no value"),
                Ready(),
                Ready(),
                EMPTY,
                Checked("no", "no value"),
            ]
        ),
    )
    assert kinds(steps) == ["CheckStep", "InstructStep", "CheckStep", "CloseStep"]
    assert ended is not None
    assert (ended.status, ended.reason) == (
        "failed",
        "the answer does not have the required format: no value",
    )


def test_a_call_written_as_text_is_never_parsed_as_a_structured_answer() -> None:
    steps, ended = play(
        turn(Bounds(has_format=True, max_corrections=1)),
        iter([Ready(), UNPARSED, Ready(), Ready(), UNPARSED]),
    )
    assert kinds(steps) == ["InstructStep", "CloseStep"]
    assert ended is not None
    assert (ended.status, ended.malformed) == ("failed", 1)
