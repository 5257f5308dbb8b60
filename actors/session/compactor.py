"""Compact the history of a session: shorten results to marks, and replace turns by a summary from a backend.

`actors.core.history.compaction` decides which results and turns may go and what a summary contains. This module
requests the summary. As for every request, the log has the request before its first byte is sent, and its usage counts
in budgets and attempts. The request continues the lane with the same tools, so that the provider's cache is read, but
the model may not call them. No later request continues from it, so the lane does not advance. If the backend writes no
summary, only results are shortened.
"""

from functools import partial
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from actors.adapters.failure import TOO_LONG, Failure
from actors.core.history import compaction
from actors.core.history.compaction import CompactionResult
from actors.core.history.estimate import result_tokens
from actors.core.history.history import History, extend
from actors.core.lanes.lane import Rendered
from actors.core.ledger import Ledger
from actors.core.log.events import Compacted, EpochBegan, ResultsTrimmed, RoundEnded, Short
from actors.core.settings.values import ToolChoiceSetting
from actors.core.turn.no_content import content_cut
from actors.core.turn.turn import PARAMETER_REFUSALS
from actors.core.values.identity import CallId
from actors.core.values.progress import Cause
from actors.core.values.stream import Usage
from actors.errors import Fault, KernelError
from actors.kernel.turnstile import compute
from actors.provider.answers import AbortedAnswer, Answer, BrokenAnswer, Generated
from actors.provider.resolver import expected_tokens
from actors.renderer.renderer_actor import Shrink
from actors.session.requests import RequestPlan, TurnRequests

LONG = 256
"""Longest history, in messages, that is searched in the event loop: a few milliseconds. Longer ones use a thread."""
NOTHING_LEFT = "nothing is left that could be made shorter"
ENOUGH = 1 / 3
"""Share of a request that was too long which shortening must save; otherwise turns are summarised too."""


class _Summary(Struct, frozen=True):
    """The text of a summary, or the reason why there is none."""

    text: str = ""
    why: str = ""
    usage: Usage = Usage()
    cause: Cause | None = None


class Compactor:
    """Compacts the history within one turn, on the backend of that turn's requests."""

    def __init__(self, requests: TurnRequests) -> None:
        self._requests, self._ask = requests, requests.ask
        self._log, self._settings = requests.ask.log, requests.ask.resolver.compaction
        self.cause: Cause | None = None
        """The failure of the request for a summary; None if it did not fail."""

    async def compact(self) -> CompactionResult:
        """Summarise all but the last turns, and shorten results; without a summary, shorten all results."""
        return await self._summarise(self._log.state.history.length, self._settings.keep_turns)

    async def make_room(self, tokens: int) -> CompactionResult:
        """Reduce the next request to about `tokens` before a turn: by shortening results alone if that suffices."""
        known = await self._ask.ledger.query()
        short = await self._shortenable(known, old=False, before=self._log.state.asked_at)
        if short and self._tokens_left(known, short) <= tokens:
            return await self._shorten(short)
        return await self._summarise(self._log.state.asked_at, self._settings.keep_turns)

    async def make_room_elsewhere(self) -> CompactionResult:
        """Summarise every earlier turn, for a backend that rejected even the request for a summary as too long."""
        return await self._summarise(self._log.state.asked_at, 0)

    async def after_overflow(self, *, again: bool) -> CompactionResult:
        """Compact within a turn whose request was too long: shorten all results of earlier turns, then summarise.

        `again`: an earlier compaction was not enough, so only the current turn is kept. If nothing else can be
        compacted, shorten the results of this turn too that the model has already seen.
        """
        known = await self._ask.ledger.query()
        before = self._next_request_tokens(known)
        short = await self._shortenable(known, old=True, before=self._log.state.asked_at)
        short |= await self._shortenable(known, old=False, before=self._log.state.history.length)
        made = await self._shorten(short) if short else CompactionResult()
        if short and self._next_request_tokens(known) <= before * (1 - ENOUGH):
            return made
        summarised = await self._summarise_in_parts(0 if again else self._settings.keep_turns)
        if short or summarised.messages or self._ask.cancelled:
            return replace(summarised, results=made.results)
        seen = compaction.last_batch_index(self._log.state.history.since(0))
        short = await self._shortenable(known, old=True, before=seen)
        return replace(summarised, results=(await self._shorten(short)).results) if short else summarised

    async def _summarise_in_parts(self, keep: int) -> CompactionResult:
        """Summarise the turns before this one, or only their older half if together they exceed one request."""
        whole = await self._summarise_turns(self._log.state.asked_at, keep)
        if whole.messages or self.cause is None or self.cause.kind not in TOO_LONG:
            return whole
        messages = self._log.state.history.since(0)
        older = [at for at in compaction.turn_starts(messages) if 0 < at <= self._log.state.asked_at // 2]
        if not older:
            return whole
        half = await self._summarise_turns(older[-1], keep)
        return replace(half, usage=whole.usage + half.usage)

    async def _summarise(self, before: int, keep: int) -> CompactionResult:
        """Summarise the turns before a message, then shorten results: all of them if there is no summary."""
        made = await self._summarise_turns(before, keep)
        if self._ask.cancelled:
            return made
        known = await self._ask.ledger.query()
        if not made.messages:
            short = await self._shortenable(known, old=bool(made.error), before=before)
        else:
            short = await self._shortenable(known, old=False, before=self._log.state.history.length)
        return replace(made, results=(await self._shorten(short)).results) if short else made

    # ---- marks

    async def _shortenable(self, known: Ledger, *, old: bool, before: int) -> dict[CallId, Short]:
        history = self._log.state.history
        work = partial(compaction.results_to_trim, history, known, self._settings, old=old, before=before)
        return await compute(work, is_long=history.length > LONG)

    def _tokens_left(self, known: Ledger, short: dict[CallId, Short]) -> int:
        """Return the tokens of the next request if these results are shortened."""
        ratio = self._ask.resolver.calibrations[self._requests.backend.binding].ratio
        return self._next_request_tokens(known) - round(result_tokens(short, known, ratio))

    def _next_request_tokens(self, known: Ledger) -> int:
        """Return the estimated tokens of the next request."""
        return expected_tokens(self._ask.resolver, self._log.state, known, self._requests.backend.binding)

    async def _shorten(self, short: dict[CallId, Short]) -> CompactionResult:
        await self._hold(ResultsTrimmed(tuple(short.items())))
        return CompactionResult(results=len(short))

    async def _hold(self, event: ResultsTrimmed | Compacted) -> None:
        """Write the event with the next append, and begin an epoch in every lane."""
        self._log.hold(event)
        await self._ask.refs.renderer.send(Shrink(event))

    # ---- summaries

    async def _summarise_turns(self, before: int, keep: int) -> CompactionResult:
        """Summarise the turns before message `before`, except the last `keep` turns."""
        stop = compaction.messages_to_summarise(self._log.state.history.since(0), keep, before)
        if not stop:
            return CompactionResult(error=NOTHING_LEFT)
        summary = await self._request_summary(before)
        self.cause = summary.cause
        if not summary.text:
            return CompactionResult(error=summary.why, usage=summary.usage)
        history, known = self._log.state.history, await self._ask.ledger.query()
        if compaction.is_summary_longer(summary.text, history, known, stop):
            return CompactionResult(
                error="the summary is longer than the messages that it replaces", usage=summary.usage
            )
        scope = compaction.summary_scope(history, known, stop)
        await self._hold(Compacted(0, stop, compaction.summary_message(summary.text, scope, self._settings)))
        return CompactionResult(stop, usage=summary.usage)

    async def _request_summary(self, before: int) -> _Summary:
        """Request a summary of the messages before index `before`, and log the end of that round."""
        binding = self._requests.backend.binding
        if (over := await self._ask.admit(binding)) is not None:
            return _Summary(why=over, cause=Cause("limit"))
        try:
            generated = await self._exchange(before)
        except KernelError as error:
            return _Summary(why=f"the provider's actor did not answer: {error}")
        if isinstance(generated, Fault):
            return _Summary(
                why=f"the request for a summary breaks a rule of its dialect and was not sent: {generated}"
            )
        tally, usage = self._ask.tally, generated.usage
        self._ask.settle(binding, usage, is_round=True)
        fault = None if isinstance(generated, Answer) else "no summary"
        kept = generated.calls, generated.left_out, tally.cut
        self._log.hold(RoundEnded(self._requests.turn, 0, None, usage, tally.finish, fault, *kept))
        return _summary_of(generated)

    async def _exchange(self, before: int) -> Generated | Fault:
        """Send the request for a summary; repeat it without the parts that its provider rejects. Return the outcome."""
        requests, refusals = self._requests, 0
        plan = RequestPlan(
            0, self._choice, omitted=requests.backend.omissions(self._choice, None), aside=True
        )
        while True:
            rendered = await requests.prepare(plan, partial(self._asking, before), lambda _: False)
            if rendered.report.faults:
                return rendered.report.faults[0]
            if self._ask.cancelled:  # while the request was rendered or logged, so no stop function ran
                return AbortedAnswer(None, Usage(), 0)
            generated = await requests.send(plan, requests.build(plan, rendered))
            refusals += 1
            if not isinstance(generated, BrokenAnswer) or refusals > PARAMETER_REFUSALS:
                return generated
            if omitted := requests.without_parameters(plan, rendered, generated.failure, refusals - 1):
                plan = replace(plan, omitted=plan.omitted + omitted)
            elif not await self._leave_out_media(plan, generated.failure, rendered):
                return generated

    def _asking(self, before: int) -> History:
        """Return the history before a message, followed by the instruction to summarise it."""
        return extend(self._log.state.history.upto(before), (compaction.summary_instruction(),))

    async def _leave_out_media(self, plan: RequestPlan, failure: Failure, rendered: Rendered) -> bool:
        """Begin an epoch without the rejected attachments; return False if the request has none."""
        if failure.kind != "media":
            return False
        length, state = self._log.state.history.length, rendered.lane._state
        media = self._requests.without_media(plan, rendered, failure, length)
        if media is None:
            return False
        binding, names = self._requests.backend.binding, media.media or media.others
        event = EpochBegan(binding, state.epoch + 1, "media", state.plain, failure.message, names)
        await self._requests.begin_epoch(event)
        return True

    @property
    def _choice(self) -> ToolChoiceSetting | None:
        """The tool choice of the request for a summary.

        None if the dialect caches by marks: there, a changed tool choice would invalidate the cached messages.
        """
        is_marked = self._requests.backend.adapter.dialect.caching.marks in ("block", "part")
        return None if is_marked else "none"


def _summary_of(generated: Generated) -> _Summary:
    """Return the text of a summary, or the reason why there is none."""
    usage = generated.usage
    match generated:
        case Answer(message=message) if message.calls:
            return _Summary(why="the model called a tool and wrote no summary", usage=usage)
        case Answer(cut=cut) if cut not in (None, "length"):
            return _Summary(why=f"the model wrote no whole summary ({cut})", usage=usage)
        case Answer(message=message) if content_cut(message, has_tools=False) is None:
            return _Summary(message.text + (" [It was cut here.]" if generated.cut else ""), usage=usage)
        case Answer():
            return _Summary(why="the model wrote no summary", usage=usage)
        case AbortedAnswer():
            return _Summary(why="it was cancelled", usage=usage)
        case BrokenAnswer(failure=failure):
            cause = Cause(failure.kind, failure.status)
            return _Summary(why=failure.message, usage=usage, cause=cause)
        case _:
            assert_never(generated)
