"""Shrinking: a session's history made shorter, by marks and by a summary that a backend writes.

What may be shortened and what a summary says is `actors.core.history.compaction`; here a request asks for the
summary. It is like any other, and counts as one: in the log before its first byte, in usage, budget and attempts. It
goes on where the lane stands, with the same tools, which may not be called, so that the provider's cache is read; and
no request continues it, so the lane stays as it was until the history is shorter. If there is no summary, marks are
all there is.
"""

from contextlib import suppress
from functools import partial
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from actors.adapters.failure import TOO_LONG, Failure
from actors.adapters.request import Request
from actors.core.history import compaction
from actors.core.history.compaction import CompactionResult
from actors.core.history.estimate import tokens_of_results
from actors.core.lanes.lane import Rendered, seals
from actors.core.ledger import Ledger
from actors.core.log.events import Compacted, EpochBegan, Omission, RequestSent, RoundEnded, Short, Shortened
from actors.core.settings.values import ToolChoice
from actors.core.turn.no_content import content_cut
from actors.core.turn.turn import PARAMETER_REFUSALS
from actors.core.values.identity import CallId
from actors.core.values.progress import Cause, RefusedRequest
from actors.core.values.stream import Usage
from actors.errors import Fault, KernelError
from actors.kernel import Ref
from actors.kernel.turnstile import compute
from actors.ledger.ledger_actor import LedgerSnapshot
from actors.provider.backend import ResolvedBackend
from actors.provider.provider_actor import Abort, ProviderCommand
from actors.provider.resolver import expected
from actors.provider.rounds import Aborted, Answer, Broken, Generate, Generated
from actors.renderer.renderer_actor import Invalidate, Render, Shrink
from actors.session.inflight import AskInFlight
from actors.session.refusals import learn, refused_media, refused_parameters

LONG = 256
"""Messages of a history in which results to shorten are looked for while the event loop waits: a few milliseconds."""
NOTHING_LEFT = "nothing is left that could be made shorter"
ENOUGH = 1 / 3
"""Share of a history that marks must save, for a request that was too long to be tried again without a summary."""


class _Written(Struct, frozen=True):
    """What came of a request for a summary: its words, or why there are none."""

    words: str = ""
    why: str = ""
    usage: Usage = Usage()
    cause: Cause | None = None


class Shrinker:
    """Makes a history shorter, in one turn of an ask, by the backend that this is bound to."""

    def __init__(
        self, ask: AskInFlight, backend: ResolvedBackend, provider: Ref[ProviderCommand], turn: int
    ) -> None:
        self._ask, self._log, self._refs = ask, ask.log, ask.refs
        self._backend, self._provider, self._turn = backend, provider, turn
        self._settings = ask.resolver.compaction
        self._omitted: tuple[Omission, ...] = ()
        self.cause: Cause | None = None
        """Why the backend wrote no summary, if it was asked and did not."""

    async def by_hand(self) -> CompactionResult:
        """Summarise what is not kept word for word, and shorten what is; if no summary is written, shorten all."""
        return await self._summarised(self._log.state.history.length, self._settings.keep_turns)

    async def to_fit(self, tokens: int) -> CompactionResult:
        """Make room before a turn, until a request has about so many tokens: by marks alone if they do."""
        known = await self._known()
        short = await self._cheap(known, old=False, before=self._log.state.asked_at)
        if short and self._left(known, short) <= tokens:
            return await self._shorten(short)
        return await self._summarised(self._log.state.asked_at, self._settings.keep_turns)

    async def for_another(self) -> CompactionResult:
        """Make room for a backend whose request was too long, and so was that for a summary: no turn before is kept."""
        return await self._summarised(self._log.state.asked_at, 0)

    async def after_overflow(self, *, again: bool) -> CompactionResult:
        """Make room in the midst of a turn whose request was too long: everything that may be shortened is.

        `again`: that was not enough, so no turn but this one is kept. Where nothing else is left, neither are the
        results of this turn that its model has had before.
        """
        known = await self._known()
        before = self._estimated(known)
        short = await self._cheap(known, old=True, before=self._log.state.asked_at)
        short |= await self._cheap(known, old=False, before=self._log.state.history.length)
        made = await self._shorten(short) if short else CompactionResult()
        if short and self._estimated(known) <= before * (1 - ENOUGH):
            return made
        dear = await self._in_parts(0 if again else self._settings.keep_turns)
        if short or dear.messages or self._ask.cancelled:
            return replace(dear, results=made.results)
        seen = compaction.last_batch(self._log.state.history.since(0))
        short = await self._cheap(known, old=True, before=seen)
        return replace(dear, results=(await self._shorten(short)).results) if short else dear

    async def _in_parts(self, keep: int) -> CompactionResult:
        """Have the turns before this one summarised; if they are too long at once, the older half of them."""
        whole = await self._dear(self._log.state.asked_at, keep)
        if whole.messages or self.cause is None or self.cause.kind not in TOO_LONG:
            return whole
        messages = self._log.state.history.since(0)
        older = [at for at in compaction.edges(messages) if 0 < at <= self._log.state.asked_at // 2]
        if not older:
            return whole
        half = await self._dear(older[-1], keep)
        return replace(half, usage=whole.usage + half.usage)

    async def _summarised(self, before: int, keep: int) -> CompactionResult:
        made = await self._dear(before, keep)
        if self._ask.cancelled:
            return made
        known = await self._known()
        if not made.messages:
            short = await self._cheap(known, old=bool(made.why), before=before)
        else:
            short = await self._cheap(known, old=False, before=self._log.state.history.length)
        return replace(made, results=(await self._shorten(short)).results) if short else made

    # ---- by marks

    async def _cheap(self, known: Ledger, *, old: bool, before: int) -> dict[CallId, Short]:
        history = self._log.state.history
        work = partial(compaction.cheap, history, known, self._settings, old=old, before=before)
        return await compute(work, is_long=history.length > LONG)

    def _left(self, known: Ledger, short: dict[CallId, Short]) -> int:
        """Return the tokens that would be left."""
        ratio = self._ask.resolver.calibrations[self._backend.binding].ratio
        return self._estimated(known) - round(tokens_of_results(short, known, ratio))

    def _estimated(self, known: Ledger) -> int:
        return expected(self._ask.resolver, self._log.state, known, self._backend.binding)

    async def _shorten(self, short: dict[CallId, Short]) -> CompactionResult:
        await self._hold(Shortened(tuple(short.items())))
        return CompactionResult(results=len(short))

    async def _hold(self, event: Shortened | Compacted) -> None:
        """Have it written with what comes next, and let every lane know."""
        self._log.hold(event)
        await self._refs.renderer.tell(Shrink(event))

    # ---- by a summary

    async def _dear(self, before: int, keep: int) -> CompactionResult:
        """Have the turns before a message summarised, but for the last `keep_turns`."""
        stop = compaction.cut(self._log.state.history.since(0), keep, before)
        if not stop:
            return CompactionResult(why=NOTHING_LEFT)
        written = await self._written(before)
        self.cause = written.cause
        if not written.words:
            return CompactionResult(why=written.why, usage=written.usage)
        history, known = self._log.state.history, await self._known()
        if compaction.is_longer(written.words, history, known, stop):
            return CompactionResult(why="the summary is longer than what it stands for", usage=written.usage)
        stands_for = compaction.needed(history, known, stop)
        await self._hold(Compacted(0, stop, compaction.summary(written.words, stands_for, self._settings)))
        return CompactionResult(stop, usage=written.usage)

    async def _written(self, before: int) -> _Written:
        """Ask for the summary of the first messages, and have it written that it was answered."""
        binding = self._backend.binding
        if (over := await self._ask.admitted(binding)) is not None:
            return _Written(why=over, cause=Cause("limit"))
        try:
            generated = await self._exchanged(before)
        except KernelError as error:
            return _Written(why=f"the provider's actor did not answer: {error}")
        if isinstance(generated, Fault):
            return _Written(why=f"the request for a summary was refused here: {generated}")
        tally = self._ask.tally
        self._ask.settle(binding, generated.usage, is_round=True)
        fault = None if isinstance(generated, Answer) else "no summary"
        usage, calls, left_out = generated.usage, generated.calls, generated.left_out
        event = RoundEnded(self._turn, 0, None, usage, tally.finish, fault, calls, left_out, tally.cut)
        self._log.hold(event)
        return _read(generated)

    async def _exchanged(self, before: int) -> Generated | Fault:
        """Send the request for a summary, again without what its provider refuses, and return how that ended."""
        self._omitted, refusals = self._backend.omissions(self._choice, None), 0
        while True:
            rendered = await self._sent(before)
            if rendered.report.faults:
                return rendered.report.faults[0]
            if (
                self._ask.cancelled
            ):  # while the request was rendered and written, when no exchange could be stopped
                return Aborted(None, Usage(), 0)
            generated = await self._generated(rendered)
            self._ask.tally.heard(generated, self._backend.binding)
            refusals += 1
            if not isinstance(generated, Broken) or refusals > PARAMETER_REFUSALS:
                return generated
            if not await self._leaves_out(generated.failure, rendered, refusals - 1):
                return generated

    async def _leaves_out(self, failure: Failure, rendered: Rendered, refusals: int) -> bool:
        """Leave out of the next request what was refused; return False if the request can go without nothing of it."""
        backend, history = self._backend, self._log.state.history
        build = partial(self._request, rendered)
        if omitted := refused_parameters(failure, self._omitted, refusals, build):
            settings = backend.asked_settings(self._choice, None)
            self._ask.tally.refusals.append(learn(backend, settings, omitted, failure.message))
            self._omitted += omitted
            return True
        if failure.kind != "media":
            return False
        cause, known = Cause(failure.kind, failure.status), await self._known()
        media = refused_media(failure, cause, build(self._omitted).body, history, known, history.length)
        if media is None:
            return False
        state, binding = rendered.lane.state, backend.binding
        begins = EpochBegan(
            binding, state.epoch + 1, "media", state.plain, failure.message, media.media or media.others
        )
        self._log.hold(begins)
        await self._refs.renderer.tell(Invalidate(begins, history.length))
        self._ask.tally.refusals.append(RefusedRequest(binding, "media", failure.message, ("media",)))
        return True

    @property
    def _choice(self) -> ToolChoice | None:
        """The tool choice of the request for a summary.

        Where marks ask for the cache, a tool choice stands in front of the messages: it would be missed.
        """
        is_marked = self._backend.adapter.dialect.caching.marks in ("block", "part")
        return None if is_marked else "none"

    def _request(self, rendered: Rendered, omitted: tuple[Omission, ...]) -> Request:
        return self._backend.request(rendered, self._log.state.session, self._choice, None, omitted)

    async def _generated(self, rendered: Rendered) -> Generated:
        ask, provider, state = self._ask, self._provider, self._log.state
        request = self._request(rendered, self._omitted)
        key = f"{state.session}/{self._turn}/summary"
        binding, first = self._backend.binding, state.calls + 1
        generate = Generate(key, request, binding, first, self._turn, 0, None, state.session, state.tenant)
        ask.stoppable(lambda context: context.tell(provider, Abort(key)))
        try:
            return await provider.ask(generate)
        except KernelError:
            raise
        except BaseException:  # as in a turn: nobody will read it
            with suppress(KernelError):
                provider.tell_nowait(Abort(key))
            raise
        finally:
            ask.finished()

    async def _sent(self, before: int) -> Rendered:
        """Return what asks for the summary, written as sent if it may be."""
        binding, log = self._backend.binding, self._log
        while True:
            known = self._ask.ledger.snapshot
            history = log.state.history.upto(before).extended((compaction.instruction(),))
            rendered = await self._refs.renderer.ask(Render(binding, history, known.ledger, aside=True))
            if (begins := rendered.begins) is not None:
                log.hold(begins)
                await self._refs.renderer.tell(Invalidate(begins, log.state.history.length))
            if rendered.report.faults or await self._sealed(rendered, known):
                return rendered

    async def _sealed(self, rendered: Rendered, known: LedgerSnapshot) -> bool:
        binding, state = self._backend.binding, rendered.lane.state
        sealed = seals(rendered, known.ledger)
        names = self._request(rendered, self._omitted).omitted if self._omitted else ()
        omitted = tuple([omission for omission in self._omitted if omission.name in names])
        place = self._turn, 0, binding, state.epoch, state.cursor
        sent = RequestSent(*place, sealed, aside=True, omitted=omitted)
        if not await self._ask.ledger.seal(sent, known):
            return False
        self._ask.tally.sent(self._turn, 0)
        return True

    async def _known(self) -> Ledger:
        return await self._ask.ledger.query()


def _read(generated: Generated) -> _Written:
    """Return the words of a summary, or why there are none."""
    usage = generated.usage
    match generated:
        case Answer(message=message) if message.calls:
            return _Written(why="the model called a tool and wrote no summary", usage=usage)
        case Answer(cut=cut) if cut not in (None, "length"):
            return _Written(why=f"the model wrote no whole summary ({cut})", usage=usage)
        case Answer(message=message) if content_cut(message, has_tools=False) is None:
            return _Written(message.text + (" [It was cut here.]" if generated.cut else ""), usage=usage)
        case Answer():
            return _Written(why="the model wrote no summary", usage=usage)
        case Aborted():
            return _Written(why="it was cancelled", usage=usage)
        case Broken(failure=failure):
            cause = Cause(failure.kind, failure.status)
            return _Written(why=failure.message, usage=usage, cause=cause)
        case _:
            assert_never(generated)
