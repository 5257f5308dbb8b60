"""The sessions of a runtime: which are open, how one becomes so, and how one is deleted.

An id belongs to one caller from the moment it is asked for: what is opened, resumed or deleted is reserved first.
"""

import os
import re
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from types import EllipsisType
from typing import Any

import anyio
from msgspec import Struct
from msgspec.structs import asdict

from actors.core.data.form import replace
from actors.core.history.history import History
from actors.core.log.events import Closed, Event, Opened
from actors.core.session.closing import forked
from actors.core.settings.labels import Metadata, Scalar, checked_metadata, checked_title
from actors.core.settings.spending import Budget, checked_budget, checked_tenant
from actors.core.turn.batch import Approve
from actors.core.turn.guards import Repeats
from actors.errors import (
    ActorsError,
    ConfigError,
    HostFull,
    OwnSession,
    SessionElsewhere,
    SessionExists,
    UnknownSeq,
)
from actors.journal.journal_actor import Append, DeleteLog, ReadLog
from actors.journal.storage import Claim
from actors.journal.storage.directory import StoredSession
from actors.provider.resolver import Resolver, check_priced
from actors.runtime.activation import Activation
from actors.runtime.claims import claim_existing, claim_session, drafts
from actors.runtime.deletion import delete_logs, delete_unused, was_used_before
from actors.runtime.handle import Session
from actors.runtime.handles import OpenSessions
from actors.runtime.opening import below_caller, opened_for
from actors.runtime.resuming import form_of, read, resumable_replay, taken_up, unknown
from actors.runtime.session_host import Hosted, SessionHost
from actors.scheduler.executor import is_inside
from actors.session.imported import opened_on
from actors.tools import Toolset
from actors.tools.toolsets import Item

SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Equipped(Struct, frozen=True):
    """What a session works with that is in no log: whoever opens it gives it, and whoever resumes it gives it again.

    Args:
        tools: What its model may call.
        approve: Asked before calls of some of them.
        deps: What the host gave them.
        on_repeat: What is done about calls that are made again.
        output: The form of the answer that a resumed turn waits for.

    Raises:
        ConfigError: `approve` is no function.
    """

    tools: Iterable[Item] = ()
    approve: Approve | None = None
    deps: object = None
    on_repeat: Repeats | None = None
    output: Any = None  # Any: a type or JSON

    def __post_init__(self) -> None:
        if self.approve is not None and not callable(self.approve):
            raise ConfigError(
                f"approve= takes a function of a call, not {self.approve!r}; `lambda call: True` allows them all"
            )


class SessionFields(Struct, frozen=True):
    """Fields of a session's first event that whoever opens it gives; a resumed session keeps those of its log."""

    tenant: str
    budget: Budget | None
    title: str
    metadata: Metadata


def session_fields(
    tenant: str, budget: Budget | None, title: str, metadata: Mapping[str, Scalar] | None
) -> SessionFields:
    """Return fields of the first event of a session. Raises `ConfigError` if one cannot be used."""
    budget = None if budget is None else checked_budget(budget)
    return SessionFields(checked_tenant(tenant), budget, checked_title(title), checked_metadata(metadata))


def session_key() -> str:
    """Return what tells a new session from every other, in whatever process.

    The idempotency keys of its calls begin with it. So it is the system's randomness, drawn when it is needed: a seed,
    or the state of a generator that is copied by a fork, would give two processes the same.
    """
    return os.urandom(8).hex()


class Sessions:
    """The open sessions of one runtime."""

    def __init__(self) -> None:
        self.draw_key: Callable[[], str] = session_key
        """Gives each new session its key. Simulations have something else there."""
        self._open: dict[str, Session] = {}
        self._reserved: set[str] = set()
        self._deleting: set[str] = set()  # of those that are reserved: they take no room
        self._waiting = dict[str, anyio.Event]()
        self._named, self._apart = 0, ""
        self.ids = OpenSessions(self._open)
        """Their ids, oldest first: a view that is always up to date."""

    def clear(self) -> None:
        """Forget which are open: their runtime has been left."""
        self._open.clear()

    def ended(self, session: Hosted) -> None:
        """Take note that a session has ended."""
        self._open.pop(session.name, None)

    async def open(
        self,
        host: SessionHost,
        target: str,
        history: History,
        equipped: Equipped,
        given: str | None,
        fields: SessionFields,
    ) -> Session:
        """Open a session that goes on from a history; `given` is its id, or one is made up. See `Runtime.open`."""
        await host.begin(fields.tenant)
        self._check_room(host)
        name, claim = await self._claimed(host, given)
        return await self._begin(host, name, claim.fence, target, history, equipped, fields)

    async def open_or_resume(
        self,
        host: SessionHost,
        name: str,
        target: str,
        history: History,
        equipped: Equipped,
        fields: SessionFields,
    ) -> Session:
        """Return the session of this id: the one that is open, one from its log, or a new one. See `Runtime.open`."""
        await host.begin(fields.tenant)
        if (session := await self._open_already(name)) is not None:
            _check_tenant(name, session._activation.tenant, fields.tenant)
            return session
        self._check_room(host)
        claim = await self._claim_reserved(host, self._reserve(name))
        if not claim.last:
            return await self._begin(host, name, claim.fence, target, history, equipped, fields)
        return await self._go_on(host, name, claim, equipped, ..., None, fields.tenant)

    async def _open_already(self, name: str) -> Session | None:
        """Return the session of this id if it is open, once nobody opens, closes or deletes it any more."""
        while True:
            if name in self._reserved:
                await self._waiting.setdefault(name, anyio.Event()).wait()
            elif (session := self._open.get(name)) is None:
                return None
            elif (closing := session._activation.closing) is None:
                return session
            else:
                await closing.over.wait()

    async def _claim_reserved(self, host: SessionHost, name: str) -> Claim:
        """Claim a session that is reserved, and empty its log if that was in memory and has ended."""
        fence = 0
        try:
            claim = await claim_session(host, name)
            fence = claim.fence
            if claim.last and not host.is_durable and await _has_closed(host, name, claim.last):
                await host.journal.ask(DeleteLog(name))
                claim = await claim_session(host, name)
        except BaseException:
            self._give_up(host, name, fence)
            raise
        return claim

    async def _begin(
        self,
        host: SessionHost,
        name: str,
        fence: int,
        target: str,
        history: History,
        equipped: Equipped,
        fields: SessionFields,
    ) -> Session:
        """Write the first event of a session that is claimed, and open it."""
        try:
            opened = opened_on(name, target, history)
            opened = replace(opened, key=self.draw_key(), above=opened_for(), **asdict(fields))
            activation, resolver = await self._equipped(host, opened, fence, equipped)
        except BaseException:
            self._give_up(host, name, fence)
            raise
        try:
            await host.journal.ask(Append(name, fence, (replace(opened, preamble=resolver.preamble),)))
        except Exception:
            self._end(activation)
            raise
        except BaseException:  # nobody knows of its log, if it was written
            host.start(partial(_delete_log, host, name, partial(self._end, activation)), f"{name}/delete")
            raise
        session = self._open[name] = Session(activation)
        self._free(name)
        return session

    async def resume(
        self,
        host: SessionHost,
        name: str,
        equipped: Equipped,
        system: str | EllipsisType | None,
        target: str | None,
        wait: float,
    ) -> Session:
        """Go on with a session from its log. See `Runtime.resume`."""
        await host.begin("")
        self._check_room(host)
        self._reserve(name)
        try:
            claim = await claim_existing(host, name, wait)
        except BaseException:
            self._free(name)
            raise
        return await self._go_on(host, name, claim, equipped, system, target)

    async def _go_on(
        self,
        host: SessionHost,
        name: str,
        claim: Claim,
        equipped: Equipped,
        system: str | EllipsisType | None,
        target: str | None,
        tenant: str = "",
    ) -> Session:
        """Go on with a session that is claimed."""
        try:
            if not claim.last:
                raise unknown(name)
            opened, replay = await resumable_replay(host, name)
            state = replay.state
            _check_tenant(name, opened.tenant, tenant)
            form = form_of(state, equipped.output)
            opened = replace(
                opened,
                system=state.history.system if system is ... else system,
                target=target or state.target,
            )
            # An open turn goes on in its own dialect, whatever the target takes now.
            fits = state.pause is None
            activation, resolver = await self._equipped(host, opened, claim.fence, equipped, fits=fits)
            async with self._opened(activation) as session:
                await taken_up(activation, replay, resolver, form)
                if target not in (None, state.target):
                    await session.switch(target)
            return session
        finally:
            if name in self._open:
                self._free(name)
            else:
                self._give_up(host, name, claim.fence)

    @asynccontextmanager
    async def _opened(self, activation: Activation) -> AsyncGenerator[Session]:
        """Its session is open; what goes wrong inside closes it."""
        session = self._open[activation.name] = Session(activation)
        try:
            yield session
        except BaseException:
            with anyio.CancelScope(shield=True):
                await activation.close(in_order=False)
            raise

    async def _equipped(
        self, host: SessionHost, opened: Opened, fence: int, equipped: Equipped, *, fits: bool = True
    ) -> tuple[Activation, Resolver]:
        """Return a session that is claimed, its toolsets open, without actors yet; and what targets mean to it."""
        target, system, tenant, budget = opened.target, opened.system, opened.tenant, opened.budget
        bounds = host.bounds.heeding(equipped.on_repeat)
        resolvers = list[Resolver]()

        def check(tools: Toolset) -> None:
            resolvers.append(host.resolver(tools, system))
            check_priced(resolvers[0], target, tenant, budget, fits=fits)

        offer = await host.toolsets.open(equipped.tools, check)
        approve, deps = equipped.approve, equipped.deps
        return Activation(opened, fence, host, offer, approve, deps, below_caller(), bounds), resolvers[0]

    async def fork(self, host: SessionHost, source: str, at: int | None, given: str | None) -> str:
        """Write a log that goes on from another's; return its id. See `Runtime.journal.fork`."""
        events = await read(host.journal, source)
        last = len(events) if at is None else at
        if not 0 < last <= len(events):
            raise UnknownSeq(
                f"Session {source!r} has events 1 to {len(events)}; it cannot be forked at {last}"
            )
        key = self.draw_key()
        async with drafts(host, self._free) as draft:
            name, claim = await self._claimed(host, given)
            draft.add(name, claim)
            await draft.write(name, forked(events[:last], name, key))
        return name

    async def add(self, host: SessionHost, logs: Sequence[tuple[str, Sequence[Event]]]) -> None:
        """Write logs that were exported, under these ids: all of them or none. See `Runtime.journal.import_session`."""
        async with drafts(host, self._free) as draft:
            for name, _ in logs:
                draft.add(*await self._claimed(host, name))
            for name, log in reversed(logs):
                await draft.write(name, log)

    async def _claimed(self, host: SessionHost, given: str | None) -> tuple[str, Claim]:
        """Return an id that has no log, reserved and claimed."""
        while True:
            name = self._reserve(given)
            try:
                claim = await claim_session(host, name)
            except BaseException as error:
                self._free(name)
                if given is not None or not isinstance(error, SessionElsewhere):
                    raise
            else:
                if not claim.last:
                    return name, claim
                self._give_up(host, name, claim.fence)
                if given is not None:
                    raise SessionExists(
                        f"Session {name!r} has a log; resume it, as resume=True does, or take another id"
                    )
            self._apart = f"-{self.draw_key()}"  # of the sessions that others made in this journal

    def _free(self, name: str) -> None:
        """Let others take an id that was reserved."""
        self._reserved.discard(name)
        self._deleting.discard(name)
        if (waiting := self._waiting.pop(name, None)) is not None:
            waiting.set()

    def _give_up(self, host: SessionHost, name: str, fence: int) -> None:
        """Let others have a session that was claimed and is not open."""
        self._free(name)
        if fence:
            host.release(name, fence)

    def _end(self, activation: Activation) -> None:
        """Let others have a session that was to be opened, and close the toolsets that only it has."""
        self._free(activation.name)
        activation.ended()

    async def delete(
        self,
        host: SessionHost,
        name: str,
        before: float | None,
        on_deleted: Callable[[Collection[str]], None],
    ) -> Collection[str]:
        """End a session, and delete its log and those below it. See `JournalAdmin.delete`.

        It stays if it was used at `before` or since: it may have been used after it was listed. The ids of the deleted
        sessions are returned, and `on_deleted` is called with them even if the caller is cancelled.
        """
        if is_inside(host.system, name):
            raise OwnSession(f"A tool of session {name!r} cannot delete it: the deletion waits for the tool")
        if name in self._reserved:
            raise SessionExists(f"Session {name!r} is just being opened or deleted; try again")
        self._reserve_for_deletion(name)
        deleted: list[str] = []

        async def delete() -> None:
            try:
                if before is not None and not await was_used_before(host.journal, name, before):
                    return
                if (session := self._open.get(name)) is not None:
                    await session._activation.close()
                deleted.extend(await delete_logs(host.journal, name))
                on_deleted(deleted)
            finally:
                self._free(name)

        await host.carry_out(delete, f"{name}/delete")
        return deleted

    async def delete_unused(
        self,
        host: SessionHost,
        stored: Iterable[StoredSession],
        on_deleted: Callable[[Collection[str]], None],
    ) -> Collection[str]:
        """Delete the logs of sessions that are as they were listed, and those below them.

        A session that is open here, or that was used since, stays. The ids of the deleted sessions are returned, and
        `on_deleted` is called with them even if the caller is cancelled.
        """
        names = {
            each.id: each.events
            for each in stored
            if each.id not in self._open and each.id not in self._reserved
        }
        self._reserve_for_deletion(*names)
        held, deleted = {*names}, list[str]()

        def reserve(found: Sequence[str]) -> bool:
            below = {*found} - held
            if below & self._reserved or any(name in self._open for name in below):
                return False
            self._reserve_for_deletion(*below)
            held.update(below)
            return True

        async def delete() -> None:
            try:
                deleted.extend(await delete_unused(host.journal, names, reserve))
                on_deleted(deleted)
            finally:
                for name in held:
                    self._free(name)

        await host.carry_out(delete, "journal/retention/delete")
        return deleted

    def _check_room(self, host: SessionHost) -> None:
        """Refuse one more session if as many are open, or are being opened, as may be, and somebody has each."""
        most = host.most.sessions
        if len(self._open) + len(self._reserved) - len(self._deleting) < most:
            return  # whether or not some are open and reserved
        taken = self._open.keys() | (self._reserved - self._deleting)
        if len(taken) >= most and not host.let_one_go():
            raise HostFull(f"{len(self._open)} sessions are open, as limits.sessions says; close one")

    def _reserve_for_deletion(self, *names: str) -> None:
        """Keep sessions from being opened while they are deleted."""
        self._reserved.update(names)
        self._deleting.update(names)

    def _reserve(self, given: str | None) -> str:
        """Return the id of a session to be opened, which nobody else can take meanwhile."""
        if given is None:
            self._named += 1
            given = f"session-{self._named}{self._apart}"
        name: object = given  # what is given may be anything
        if not (isinstance(name, str) and SESSION_ID.fullmatch(name)):
            raise ConfigError(
                f"Session id {str(given)[:80]!r} is not usable; it takes 1 to 64 letters, digits, '_' or '-'"
            )
        if given in self._open or given in self._reserved:
            raise SessionExists(
                f"Session {given!r} is open already; take another id, or open it with resume=True"
            )
        self._reserved.add(given)
        return given


def _check_tenant(name: str, found: str, wanted: str) -> None:
    """Refuse a session of another tenant. Who names none gets any."""
    if wanted and found != wanted:
        raise SessionExists(f"Session {name!r} is of another tenant; take another id")


async def _has_closed(host: SessionHost, name: str, last: int) -> bool:
    """Return True if the last event of a log, which has this number, is its end."""
    page = await host.journal.ask(ReadLog(name, last - 1, urgent=True))
    return bool(page.events) and isinstance(page.events[-1], Closed)


async def _delete_log(host: SessionHost, name: str, release: Callable[[], None]) -> None:
    """Delete what was written of a session, and only then let others have it."""
    with suppress(ActorsError):
        await host.journal.ask(DeleteLog(name))
    release()
