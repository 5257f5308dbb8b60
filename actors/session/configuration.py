"""Configuration: the target, the system prompt and the tools of one session as they are live, and changes that wait.

The log says which they are (`actors.core.log.events.Configured`), by their names and a digest; what is live is compared
with that whenever an ask begins. What tools do is in no log: it is kept here, for as long as the session is open.
"""

from collections.abc import Awaitable, Callable, Iterable
from itertools import chain
from types import EllipsisType
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from actors.core.log.events import Configured, SwitchApplied
from actors.core.session.state import SessionState
from actors.core.settings.asking import Asked, check_choice
from actors.core.settings.values import ToolChoice
from actors.errors import ConfigError
from actors.provider.budgets import SharedBudget
from actors.provider.resolver import Resolver, over_budget
from actors.tools import Tool, Toolset
from actors.tools.handover import Handover
from actors.tools.toolsets import SessionTools, ToolItem, Toolsets
from actors.tools.toolsets.owner import ToolsetOwner

Resolve: TypeAlias = Callable[[Toolset, str | None], Resolver]
"""Returns what targets mean to a session with these tools and this system prompt."""


class Change(Struct):
    """What the next turns of a session are to have; what is `...` stays as it is.

    `fate`: whether a session took it, or whoever offered it has gone and taken back what was opened for it.
    """

    system: str | EllipsisType | None
    offer: SessionTools | EllipsisType
    fate: Literal["offered", "taken", "dropped"] = "offered"


class Unwritten(Struct):
    """A change that is live and not yet in the log.

    Args:
        system, offer: What was live before.
        change: What was taken up.
        or_drop: If it is not written, it is over; else it waits again.
    """

    system: str | None
    offer: SessionTools
    change: Change
    or_drop: bool


Prepare: TypeAlias = Callable[
    [str | EllipsisType | None, Iterable[ToolItem] | EllipsisType, str], Awaitable[Change]
]
"""Returns a change of system prompt and tools for a target, with its toolsets open."""


class Configuration(Struct):
    """One for a session's life, whatever becomes of its actors. It refers to a session only by what tools refer to.

    Args:
        target: The target of the next ask, as the log has it: a switch counts once it is durable.
        system: The system prompt.
        offer: What the session's model may call.
        toolsets: They are given what the session no longer uses.

    `shared`: the budget that a subagent shares with others. `lent`: that of the session, as those below share it.
    """

    target: str
    system: str | None
    offer: SessionTools
    toolsets: Toolsets
    shared: SharedBudget | None = None
    lent: SharedBudget | None = None
    _change: Change | None = None
    _unwritten: tuple[Unwritten, ...] = ()

    @property
    def is_changing(self) -> bool:
        """True if a change waits."""
        return self._change is not None

    def check(self, asked: Asked | None) -> None:
        """Refuse an ask that forces a tool which will not be there when it begins: what waits is live by then.

        Raises:
            ConfigError: There is no such tool.
        """
        if asked is not None and isinstance(asked.tool_choice, ToolChoice):
            offer = self.offer if self._change is None or self._change.offer is ... else self._change.offer
            offer.refresh()
            check_choice(asked.tool_choice, offer.tools.names)

    def hold(self, change: Change, *, behind: bool = False) -> None:
        """Keep a change until it is taken up. Of what several ask for, the latest counts, each of the two by itself.

        `behind`: what waits already counts as the later.
        """
        if behind and (first := self._change) is not None:
            self._change = change
            change.fate, change = "taken", first
        change.fate = "taken"
        if (held := self._change) is not None:
            if change.system is ...:
                change.system = held.system
            if change.offer is ...:
                change.offer = held.offer
            elif held.offer is not ...:
                self.toolsets.release(held.offer.owners)
        self._change = change

    def drop(self, change: Change) -> None:
        """Take back a change that the session did not take."""
        if change.fate == "offered":
            change.fate = "dropped"
            if change.offer is not ...:
                self.toolsets.release(change.offer.owners)

    def take_up(self, *, or_drop: bool = False) -> None:
        """Apply the waiting change. `restore` undoes it until `confirm_written` makes it permanent.

        `or_drop`: `restore` drops the change instead of letting it wait again.
        """
        assert self._change is not None
        change, self._change = self._change, None
        self._unwritten += (Unwritten(self.system, self.offer, change, or_drop),)
        if change.system is not ...:
            self.system = change.system
        if change.offer is not ...:
            self.offer = change.offer

    def confirm_written(self) -> None:
        """Make the oldest applied change permanent, because it is in the log. Release the toolsets it replaced."""
        if self._unwritten:
            first, *others = self._unwritten
            self._unwritten = tuple(others)
            if first.change.offer is not ...:
                self.toolsets.release(first.offer.owners)

    def restore(self) -> None:
        """Undo the applied changes that did not reach the log."""
        unwritten, self._unwritten = self._unwritten, ()
        for each in reversed(unwritten):
            self.system, self.offer = each.system, each.offer
            if each.or_drop:
                each.change.fate = "offered"
                self.drop(each.change)
            else:
                self.hold(each.change, behind=True)

    def release(self) -> None:
        """Release the toolsets, because the session has ended."""
        if owners := self.owners:
            self.toolsets.release(owners)

    @property
    def owners(self) -> tuple[ToolsetOwner, ...]:
        """The owners of open toolsets: in use, of the waiting change, and of changes that `restore` may undo."""
        held = () if self._change is None or self._change.offer is ... else self._change.offer.owners
        before = [each.offer.owners for each in self._unwritten if each.change.offer is not ...]
        return (*self.offer.owners, *held, *chain(*before))


class Equipment:
    """What the actors of a session make of its configuration.

    `tools` are by name, and the scheduler's too; `resolver` is what targets mean with them. `change` opens what others
    need.
    """

    resolver: Resolver

    def __init__(self, configuration: Configuration, resolve: Resolve, change: Prepare) -> None:
        self._configuration, self._resolve, self._change = configuration, resolve, change
        self.tools: dict[str, Tool[..., Any]] = {}  # Any: any function
        self._take_over()

    def budgets(self, tenant: str, target: str) -> tuple[SharedBudget, ...]:
        """Return the budgets that the session's requests count in, beside one of its own."""
        shared, others = self._configuration.shared, self.resolver.budgets(tenant, target)
        return others if shared is None else (shared, *others)

    def why_over(self, state: SessionState, target: str) -> str | None:
        """Return which budget is used up that a request to a target would count in, if one is."""
        others = (budget.why_over() for budget in self.budgets(state.tenant, target))
        return over_budget(self.resolver, state) or next(filter(None, others), None)

    def refusal(self, state: SessionState) -> str | None:
        """Return why an ask is refused before it begins, if a budget is used up, with the way out; it is counted."""
        if (why := over_budget(self.resolver, state)) is not None:
            return f"{why}; open another"
        for budget in self.budgets(state.tenant, state.target):
            if (why := budget.why_over()) is not None:
                budget.refused += 1
                return why
        return None

    def refresh(self) -> Resolver:
        """Take over what the session's toolsets offer now, and return what targets mean with these tools.

        Called when an ask begins: the tools of a turn stay as they are, but for `refresh_if`.
        """
        offer = self._configuration.offer
        offer.refresh()
        if offer.tools is not self._offered:
            self._take_over()
        return self.resolver

    @property
    def may_change(self) -> bool:
        """True if the tools may change within a turn."""
        return self._configuration.offer.may_change

    async def catch_up(self) -> bool:
        """Say whether toolsets changed that are declared within turns; see `SessionTools.catch_up`."""
        return await self._configuration.offer.catch_up()

    def refresh_if(self, why_not: Callable[["Equipment"], str]) -> str:
        """Take over what the toolsets offer now, within a turn, unless `why_not` says why that waits; return it.

        It is called with what would be in force, and may raise `ConfigError` instead.
        """
        offer = self._configuration.offer
        before = offer.arrangement
        self.refresh()
        try:
            why = why_not(self)
        except ConfigError as error:
            why = str(error)
        if why:
            offer.restore(before)
            self._take_over()
        return why

    def hold(self, change: Change, *, behind: bool = False) -> None:
        """Keep a change until it is taken up; see `Configuration.hold`."""
        self._configuration.hold(change, behind=behind)

    async def prepare(self, handover: Handover) -> Change:
        """Open the toolsets of a handover, and return its change. The caller holds the change or drops it.

        Raises:
            ConfigError: The target takes no such tools.
            ToolsetFailed: A toolset cannot be opened.
        """
        return await self._change(handover.system, handover.tools, handover.target)

    def drop(self, change: Change) -> None:
        """Give back what was opened for a change that nobody holds."""
        self._configuration.drop(change)

    @property
    def is_changing(self) -> bool:
        """True if a change waits."""
        return self._configuration.is_changing

    def take_up(self, *, or_drop: bool = False) -> Resolver:
        """Let the change that waits be live, and return what targets mean with it; see `Configuration.take_up`."""
        self._configuration.take_up(or_drop=or_drop)
        self._take_over()
        return self.resolver

    def confirm_written(self, event: SwitchApplied | Configured) -> None:
        """Record that a switch or an applied change is in the log."""
        if isinstance(event, SwitchApplied):
            self._configuration.target = event.target
        else:
            self._configuration.confirm_written()

    def retarget(self, target: str) -> None:
        """Take the target from the log, which was read again."""
        self._configuration.target = target

    def restore(self) -> None:
        """Go back to what is in the log."""
        self._configuration.restore()
        self._take_over()

    @property
    def configured_event(self) -> Configured:
        """The log event for the present configuration."""
        return Configured(self._configuration.system, tuple(self.tools), self.resolver.config_digest)

    def _take_over(self) -> None:
        tools = self._offered = self._configuration.offer.tools
        self.tools.clear()
        self.tools.update({tool.name: tool for tool in tools})
        self.resolver = self._resolve(tools, self._configuration.system)
