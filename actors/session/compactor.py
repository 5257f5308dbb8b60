"""Compact the history of a session: replace long results by placeholders, and turns by a summary from a backend.

`actors.core.history.compaction` chooses the results and the turns, and defines the content of a summary. This module
requests the summary. If the backend writes no summary, only results are replaced.

Like any request, the request for a summary is logged before its first byte is sent, and its usage counts towards
budgets and attempts. The request continues the lane with the same tools, so the provider's cache is used, but the model
may not call the tools. The request does not become part of the lane, because no later request continues it.
"""

from functools import partial
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from actors.adapters.failure import TOO_LONG, Failure
from actors.core.history import compaction
from actors.core.history.compaction import CompactionResult, result_tokens
from actors.core.history.history import History, extend
from actors.core.lanes.lane import Rendered
from actors.core.ledger import Ledger
from actors.core.log.events import Compacted, EpochBegan, ResultsTrimmed, RoundEnded, TrimReason
from actors.core.settings.values import ToolChoiceSetting
from actors.core.turn.answers import content_cut
from actors.core.turn.turn import PARAMETER_REFUSALS
from actors.core.values.identity import CallId
from actors.core.values.progress import Cause
from actors.core.values.stream import Usage
from actors.errors import Fault, KernelError
from actors.kernel.turnstile import compute
from actors.provider.attempts import AbortedAnswer, Answer, BrokenAnswer, Generated
from actors.provider.resolver import expected_tokens
from actors.renderer.renderer_actor import Shrink
from actors.session.requests import RequestPlan, TurnRequests

LONG = 256
"""Maximum number of messages that the event loop searches (a few milliseconds). Threads search longer histories."""
NOTHING_LEFT = "nothing is left to shorten"
MIN_SAVING = 1 / 3
"""The share of an overlong request that shortening results must save. If it saves less, turns are summarised too."""


class _Summary(Struct, frozen=True):
    """The text of a summary. If no summary was written, the text is empty and `reason` explains why."""

    text: str = ""
    reason: str = ""
    usage: Usage = Usage()
    cause: Cause | None = None


class Compactor:
    """The compaction of a session's history within one turn. The backend of that turn writes the summary."""

    def __init__(self, requests: TurnRequests) -> None:
        self._requests, self._ask = requests, requests.ask
        self._log, self._settings = requests.ask.log, requests.ask.resolver.compaction
        self.cause: Cause | None = None
        """The failure of the request for a summary; None if it did not fail."""

    async def compact(self) -> CompactionResult:
        """Summarise all turns except the last ones, then shorten long results. Without a summary, shorten all results.

        The setting `keep_turns` is the number of turns that are not summarised.
        """
        return await self._summarise(self._log.state.history.length, self._settings.keep_turns)

    async def shrink_next_request(self, tokens: int) -> CompactionResult:
        """Reduce the next request to about `tokens` before a turn begins.

        If shortening results is enough, no turn is summarised.
        """
        ledger = await self._ask.ledger.query()
        short = await self._find_shortenable(
            ledger, include_small=False, before_index=self._log.state.asked_at
        )
        if short and self._tokens_after_shortening(ledger, short) <= tokens:
            return await self._log_shortened(short)
        return await self._summarise(self._log.state.asked_at, self._settings.keep_turns)

    async def summarise_all(self) -> CompactionResult:
        """Summarise all earlier turns.

        Another backend does this if the history is too long even for the request for a summary.
        """
        return await self._summarise(self._log.state.asked_at, 0)

    async def compact_after_overflow(self, *, is_repeated: bool) -> CompactionResult:
        """Compact the history within a turn whose request was too long.

        First shorten all results of earlier turns, then summarise these turns. If neither changes anything, shorten the
        results of the current turn that the model has already seen.

        Args:
            is_repeated: True if an earlier compaction did not save enough. Then all turns except the current one are
                summarised.
        """
        ledger = await self._ask.ledger.query()
        before = self._next_request_tokens(ledger)
        short = await self._find_shortenable(
            ledger, include_small=True, before_index=self._log.state.asked_at
        )
        short |= await self._find_shortenable(
            ledger, include_small=False, before_index=self._log.state.history.length
        )
        made = await self._log_shortened(short) if short else CompactionResult()
        if short and self._next_request_tokens(ledger) <= before * (1 - MIN_SAVING):
            return made
        summarised = await self._summarise_in_parts(0 if is_repeated else self._settings.keep_turns)
        if short or summarised.messages or self._ask.cancelled:
            return replace(summarised, results=made.results)
        seen = compaction.last_batch_index(self._log.state.history.since(0))
        short = await self._find_shortenable(ledger, include_small=True, before_index=seen)
        return (
            replace(summarised, results=(await self._log_shortened(short)).results) if short else summarised
        )

    async def _summarise_in_parts(self, kept_turns: int) -> CompactionResult:
        """Summarise the turns before this one, except the last `kept_turns` turns.

        If these turns are too long for one request, summarise only the older half of them.
        """
        whole = await self._summarise_turns(self._log.state.asked_at, kept_turns)
        if whole.messages or self.cause is None or self.cause.kind not in TOO_LONG:
            return whole
        messages = self._log.state.history.since(0)
        older = [at for at in compaction.turn_starts(messages) if 0 < at <= self._log.state.asked_at // 2]
        if not older:
            return whole
        half = await self._summarise_turns(older[-1], kept_turns)
        return replace(half, usage=whole.usage + half.usage)

    async def _summarise(self, before_index: int, kept_turns: int) -> CompactionResult:
        """Summarise the turns before message index `before_index`, then shorten long results.

        The last `kept_turns` turns are not summarised. Without a summary, all results are shortened.
        """
        made = await self._summarise_turns(before_index, kept_turns)
        if self._ask.cancelled:
            return made
        ledger = await self._ask.ledger.query()
        if not made.messages:
            short = await self._find_shortenable(
                ledger, include_small=bool(made.error), before_index=before_index
            )
        else:
            short = await self._find_shortenable(
                ledger, include_small=False, before_index=self._log.state.history.length
            )
        return replace(made, results=(await self._log_shortened(short)).results) if short else made

    # ---- shorten results

    async def _find_shortenable(
        self, ledger: Ledger, *, include_small: bool, before_index: int
    ) -> dict[CallId, TrimReason]:
        """Return the results before message index `before_index` that can be shortened, each with the reason.

        With `include_small`, small results are included.
        """
        history = self._log.state.history
        work = partial(
            compaction.results_to_trim,
            history,
            ledger,
            self._settings,
            include_small=include_small,
            before=before_index,
        )
        return await compute(work, is_long=history.length > LONG)

    def _tokens_after_shortening(self, ledger: Ledger, results: dict[CallId, TrimReason]) -> int:
        """Return the estimated tokens of the next request if these results are shortened."""
        ratio = self._ask.resolver.calibrations[self._requests.backend.binding].ratio
        return self._next_request_tokens(ledger) - round(result_tokens(results, ledger, ratio))

    def _next_request_tokens(self, ledger: Ledger) -> int:
        return expected_tokens(self._ask.resolver, self._log.state, ledger, self._requests.backend.binding)

    async def _log_shortened(self, results: dict[CallId, TrimReason]) -> CompactionResult:
        """Log that these results are shortened, and return their number as a `CompactionResult`."""
        await self._log_and_begin_epochs(ResultsTrimmed(tuple(results.items())))
        return CompactionResult(results=len(results))

    async def _log_and_begin_epochs(self, event: ResultsTrimmed | Compacted) -> None:
        """Log the event together with the session's next events, and begin a new epoch in every lane."""
        self._log.hold(event)
        await self._ask.refs.renderer.send(Shrink(event))

    # ---- summarise turns

    async def _summarise_turns(self, before_index: int, kept_turns: int) -> CompactionResult:
        """Summarise the turns before message index `before_index`, except the last `kept_turns` turns."""
        stop = compaction.messages_to_summarise(self._log.state.history.since(0), kept_turns, before_index)
        if not stop:
            return CompactionResult(error=NOTHING_LEFT)
        summary = await self._request_summary(before_index)
        self.cause = summary.cause
        if not summary.text:
            return CompactionResult(error=summary.reason, usage=summary.usage)
        history, ledger = self._log.state.history, await self._ask.ledger.query()
        if compaction.is_summary_longer(summary.text, history, ledger, stop):
            return CompactionResult(
                error="the summary is longer than the messages that it replaces", usage=summary.usage
            )
        scope = compaction.summary_scope(history, ledger, stop)
        await self._log_and_begin_epochs(
            Compacted(0, stop, compaction.summary_message(summary.text, scope, self._settings))
        )
        return CompactionResult(stop, usage=summary.usage)

    async def _request_summary(self, before_index: int) -> _Summary:
        """Request a summary of the messages before index `before_index`, and log the end of the round."""
        binding = self._requests.backend.binding
        if (over := await self._ask.reserve_budget(binding)) is not None:
            return _Summary(reason=over, cause=Cause("limit"))
        try:
            generated = await self._send_summary_request(before_index)
        except KernelError as error:
            return _Summary(reason=f"the provider's actor did not answer: {error}")
        if isinstance(generated, Fault):
            return _Summary(
                reason=f"the request for a summary violates a rule of its dialect and was not sent: {generated}"
            )
        tally, usage = self._ask.tally, generated.usage
        self._ask.count_usage(binding, usage, is_round=True)
        fault = None if isinstance(generated, Answer) else "no summary"
        kept = generated.calls, generated.left_out, tally.cut
        self._log.hold(RoundEnded(self._requests.turn, 0, None, usage, tally.finish, fault, *kept))
        return _read_summary(generated)

    async def _send_summary_request(self, before_index: int) -> Generated | Fault:
        """Send the request for a summary, and return its outcome.

        A request that violates a rule is not sent, and the violation is returned. If the provider rejects parameters or
        attachments, send the request again without them.
        """
        requests, refusals = self._requests, 0
        plan = RequestPlan(
            0,
            self._tool_choice,
            omitted=requests.backend.omissions(self._tool_choice, None),
            is_side_request=True,
        )
        while True:
            rendered = await requests.prepare(
                plan, partial(self._history_with_instruction, before_index), lambda _: False
            )
            if rendered.report.faults:
                return rendered.report.faults[0]
            # While the request was rendered and logged, no stop function was set that a cancellation could call.
            if self._ask.cancelled:
                return AbortedAnswer(None, Usage(), 0)
            generated = await requests.send(plan, requests.build(plan, rendered))
            refusals += 1
            if not isinstance(generated, BrokenAnswer) or refusals > PARAMETER_REFUSALS:
                return generated
            if omitted := requests.parameters_to_omit(plan, rendered, generated.failure, refusals - 1):
                plan = replace(plan, omitted=plan.omitted + omitted)
            elif not await self._leave_out_media(plan, generated.failure, rendered):
                return generated

    def _history_with_instruction(self, before_index: int) -> History:
        """Return the messages before index `before_index`, followed by the instruction to summarise them."""
        return extend(self._log.state.history.upto(before_index), (compaction.summary_instruction(),))

    async def _leave_out_media(self, plan: RequestPlan, failure: Failure, rendered: Rendered) -> bool:
        """Begin an epoch without the rejected attachments. Return False if no attachment was rejected."""
        if failure.kind != "media":
            return False
        length, state = self._log.state.history.length, rendered.lane._state
        media = self._requests.media_to_omit(plan, rendered, failure, length)
        if media is None:
            return False
        binding, names = self._requests.backend.binding, media.media or media.suspects
        event = EpochBegan(binding, state.epoch + 1, "media", state.plain, failure.message, names)
        await self._requests.begin_epoch(event)
        return True

    @property
    def _tool_choice(self) -> ToolChoiceSetting | None:
        """The tool choice of the request for a summary: `none`, or None to send no tool choice.

        No tool choice is sent if the dialect marks the content to cache, because a changed tool choice would invalidate
        the cached messages.
        """
        is_marked = self._requests.backend.adapter.dialect.caching.marks in ("block", "part")
        return None if is_marked else "none"


def _read_summary(generated: Generated) -> _Summary:
    """Return the text of the summary, or the reason why the model wrote no summary."""
    usage = generated.usage
    match generated:
        case Answer(message=message) if message.calls:
            return _Summary(reason="the model called a tool and wrote no summary", usage=usage)
        case Answer(cut=cut) if cut not in (None, "length"):
            return _Summary(reason=f"the model wrote an incomplete summary ({cut})", usage=usage)
        case Answer(message=message) if content_cut(message, has_tools=False) is None:
            return _Summary(message.text + (" [It was cut here.]" if generated.cut else ""), usage=usage)
        case Answer():
            return _Summary(reason="the model wrote no summary", usage=usage)
        case AbortedAnswer():
            return _Summary(reason="the compaction was cancelled", usage=usage)
        case BrokenAnswer(failure=failure):
            cause = Cause(failure.kind, failure.status)
            return _Summary(reason=failure.message, usage=usage, cause=cause)
        case _:
            assert_never(generated)
