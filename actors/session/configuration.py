"""Hold the target, the system prompt and the tools of one session, and the changes of these that wait.

The log has the names of the tools and a digest of the configuration (`actors.core.log.events.Configured`). Whenever an
ask begins, the digest is compared with the live configuration, and a difference is logged. No log can hold the code of
the tools, so this module keeps the tools for as long as the session is open.
"""

from collections.abc import Awaitable, Callable, Iterable
from itertools import chain
from types import EllipsisType
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from actors.core.log.events import Configured, SwitchApplied
from actors.core.session.state import SessionState
from actors.core.settings.asking import Asked, check_forced_tool
from actors.core.settings.values import ToolChoice
from actors.errors import ConfigError
from actors.provider.budgets import SharedBudget
from actors.provider.resolver import Resolver, used_up_limit
from actors.tools import Tool, Toolset
from actors.tools.handover import Handover
from actors.tools.toolsets import SessionTools, ToolItem, Toolsets
from actors.tools.toolsets.owner import ToolsetOwner

Resolve: TypeAlias = Callable[[Toolset, str | None], Resolver]
"""Returns what targets mean to a session with these tools and this system prompt."""


class Change(Struct):
    """A change of the system prompt, the tools or both; `...` stands for no change.

    `fate`: `taken` once the session holds the change; `dropped` if its caller withdrew it first (for example because
    the caller was cancelled), which releases the toolsets that were opened for it.
    """

    system: str | EllipsisType | None
    offer: SessionTools | EllipsisType
    fate: Literal["offered", "taken", "dropped"] = "offered"


class Unwritten(Struct):
    """A change that is live and not yet in the log.

    Args:
        system, offer: The system prompt and the tools before the change.
        change: The applied change.
        or_drop: Whether the change is dropped if it cannot be logged. Otherwise it waits again.
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
    """The live configuration of a session. It survives crashes and restarts of the session's actors.

    It has no reference to the session, except those that the tools themselves hold.

    Args:
        target: The target of the next ask, as in the log: a switch changes it once the switch is durable.
        system: The system prompt.
        offer: The tools that the model may call.
        toolsets: Releases the toolsets that the session no longer uses.

    `shared`: the budget that a subagent shares with its parent and siblings. `lent`: the session's own budget, as its
    subagents share it.
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
        """Check the tool that an ask forces against the tools that will be live when the ask begins.

        A change that waits is applied before the next ask, so its tools count.

        Raises:
            ConfigError: The session will not have the tool.
        """
        if asked is not None and isinstance(asked.tool_choice, ToolChoice):
            offer = self.offer if self._change is None or self._change.offer is ... else self._change.offer
            offer.refresh()
            check_forced_tool(asked.tool_choice, offer.tools.names)

    def hold(self, change: Change, *, behind: bool = False) -> None:
        """Hold a change until `take_up` applies it. It overrides the parts that it shares with a change held before.

        `behind`: treat the change as older than the one that is already held.
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
        """Withdraw a change that no session holds, and release its toolsets."""
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
    """The configuration as the actors of a session use it: its tools by name, and a resolver made with these tools.

    `tools` is shared with the scheduler, so it is updated in place. `change` prepares a change and opens its toolsets.
    """

    resolver: Resolver

    def __init__(self, configuration: Configuration, resolve: Resolve, change: Prepare) -> None:
        self._configuration, self._resolve, self._change = configuration, resolve, change
        self.tools: dict[str, Tool[..., Any]] = {}  # Any: any function
        self._take_over()

    def budgets(self, tenant: str, target: str) -> tuple[SharedBudget, ...]:
        """Return the shared budgets in which the session's requests count, in addition to the session's own budget."""
        shared, others = self._configuration.shared, self.resolver.budgets(tenant, target)
        return others if shared is None else (shared, *others)

    def why_over(self, state: SessionState, target: str) -> str | None:
        """Return the reason if a budget for requests to `target` is used up, else None."""
        others = (budget.used_up_limit() for budget in self.budgets(state.tenant, target))
        return used_up_limit(self.resolver, state) or next(filter(None, others), None)

    def refusal(self, state: SessionState) -> str | None:
        """Return the reason to reject an ask and a suggested fix if a budget is used up, else None.

        A shared budget counts the rejection.
        """
        if (why := used_up_limit(self.resolver, state)) is not None:
            return f"{why}; open another"
        for budget in self.budgets(state.tenant, state.target):
            if (why := budget.used_up_limit()) is not None:
                budget.refused += 1
                return why
        return None

    def refresh(self) -> Resolver:
        """Read the current tools of the session's toolsets, and return a resolver for them.

        Called when an ask begins. Within a turn, only `refresh_if` changes the tools.
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
        """Hold a change; see `Configuration.hold`."""
        self._configuration.hold(change, behind=behind)

    async def prepare(self, handover: Handover) -> Change:
        """Open the toolsets of a handover, and return its change. The caller holds the change or drops it.

        Raises:
            ConfigError: The target takes no such tools.
            ToolsetFailed: A toolset cannot be opened.
        """
        return await self._change(handover.system, handover.tools, handover.target)

    def drop(self, change: Change) -> None:
        """Release the toolsets of a change that is not held."""
        self._configuration.drop(change)

    @property
    def is_changing(self) -> bool:
        """True if a change waits."""
        return self._configuration.is_changing

    def take_up(self, *, or_drop: bool = False) -> Resolver:
        """Apply the change that waits, and return the new resolver; see `Configuration.take_up`."""
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
        """Set the target to that of the log, after a crash."""
        self._configuration.target = target

    def restore(self) -> None:
        """Undo the changes that did not reach the log, after a crash."""
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
