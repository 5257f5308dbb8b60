"""Keep the target, the system prompt and the tools of one session, and configuration changes that are not applied yet.

A log cannot contain the code of tools, so this module keeps the tool objects while the session is open. The log
contains only the names of the tools and a digest of the configuration (`actors.core.log.events.Configured`). When an
ask begins, the session compares this digest with the digest of the live configuration, and logs a difference.
"""

from collections.abc import Awaitable, Callable, Iterable
from itertools import chain
from types import EllipsisType
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from actors.core.log.events import Configured, SwitchApplied
from actors.core.session.state import SessionState
from actors.core.settings.asking import StoredAskSettings, check_forced_tool
from actors.core.settings.values import ToolChoice
from actors.errors import ConfigError
from actors.provider.budgets import SharedBudget
from actors.provider.resolver import Resolver, used_up_limit
from actors.tools import Tool, Toolset
from actors.tools.tool import Handover
from actors.tools.toolset_owner import ToolsetOwner
from actors.tools.toolsets import SessionTools, ToolItem, Toolsets

CreateResolver: TypeAlias = Callable[[Toolset, str | None], Resolver]
"""Returns a resolver of targets for a session with these tools and this system prompt."""


class ConfigChange(Struct):
    """A change of the system prompt, the tools or both. The value `...` means no change.

    Args:
        system: The new system prompt.
        session_tools: The new tools.
        status: `pending` until the session accepts the change, then `accepted`. `dropped` means that the caller has
            withdrawn a pending change, for example because the caller was cancelled. The toolsets of a dropped change
            are released.
    """

    system: str | EllipsisType | None
    session_tools: SessionTools | EllipsisType
    status: Literal["pending", "accepted", "dropped"] = "pending"


class UnwrittenChange(Struct):
    """A configuration change that is applied but not yet in the log.

    Args:
        system, session_tools: The system prompt and the tools before the change, to undo it.
        change: The applied change.
        drop_on_failure: True to drop the change if it cannot be logged, False to keep it until it is applied again.
    """

    system: str | None
    session_tools: SessionTools
    change: ConfigChange
    drop_on_failure: bool


PrepareChange: TypeAlias = Callable[
    [str | EllipsisType | None, Iterable[ToolItem] | EllipsisType, str], Awaitable[ConfigChange]
]
"""Opens the toolsets of a change and returns the change. Arguments: system prompt, tools, target."""


class Configuration(Struct):
    """The live configuration of a session. It survives crashes and restarts of the session's actors.

    The configuration does not reference the session, except through the tools.

    Args:
        target: The target of the next ask. A switch changes the target once the switch is durable.
        system: The system prompt.
        session_tools: The tools that the model may call.
        toolsets: The open toolsets of the runtime. The session releases its toolsets through this object.
        shared: The budget that a subagent shares with its parent and siblings.
        lent: The session's own budget, which the session shares with its subagents.
    """

    target: str
    system: str | None
    session_tools: SessionTools
    toolsets: Toolsets
    shared: SharedBudget | None = None
    lent: SharedBudget | None = None
    _change: ConfigChange | None = None
    _unwritten: tuple[UnwrittenChange, ...] = ()

    @property
    def is_changing(self) -> bool:
        """True if a change waits to be applied."""
        return self._change is not None

    def check_forced_tool(self, ask_settings: StoredAskSettings | None) -> None:
        """Check that the session will have the tool that an ask forces.

        A waiting change is applied before the next ask, so the check uses the tools of that change.

        Raises:
            ConfigError: The session will not have the tool.
        """
        if ask_settings is not None and isinstance(ask_settings.tool_choice, ToolChoice):
            session_tools = (
                self.session_tools
                if self._change is None or self._change.session_tools is ...
                else self._change.session_tools
            )
            session_tools.refresh()
            check_forced_tool(ask_settings.tool_choice, session_tools.tools.names)

    def hold(self, change: ConfigChange, *, as_older: bool = False) -> None:
        """Keep a change until `apply_change` applies it. If another change already waits, merge the two changes.

        If both changes set the system prompt or the tools, the newer change wins.

        Args:
            change: The change to keep.
            as_older: True to treat `change` as the older of the two changes.
        """
        if as_older and (first := self._change) is not None:
            self._change = change
            change.status, change = "accepted", first
        change.status = "accepted"
        if (held := self._change) is not None:
            if change.system is ...:
                change.system = held.system
            if change.session_tools is ...:
                change.session_tools = held.session_tools
            elif held.session_tools is not ...:
                self.toolsets.release(held.session_tools.owners)
        self._change = change

    def drop(self, change: ConfigChange) -> None:
        """Withdraw a change and release its toolsets. This has no effect if the session has accepted the change."""
        if change.status == "pending":
            change.status = "dropped"
            if change.session_tools is not ...:
                self.toolsets.release(change.session_tools.owners)

    def apply_change(self, *, drop_on_failure: bool = False) -> None:
        """Apply the waiting change. `restore` can undo the change until `confirm_written` makes it permanent.

        With `drop_on_failure`, `restore` drops the change. Otherwise, `restore` makes the change wait again.
        """
        assert self._change is not None
        change, self._change = self._change, None
        self._unwritten += (UnwrittenChange(self.system, self.session_tools, change, drop_on_failure),)
        if change.system is not ...:
            self.system = change.system
        if change.session_tools is not ...:
            self.session_tools = change.session_tools

    def confirm_written(self) -> None:
        """Make the oldest applied change permanent after it was logged.

        The toolsets that the change replaced are released.
        """
        if self._unwritten:
            first, *others = self._unwritten
            self._unwritten = tuple(others)
            if first.change.session_tools is not ...:
                self.toolsets.release(first.session_tools.owners)

    def restore(self) -> None:
        """Undo the applied changes that are not in the log."""
        unwritten, self._unwritten = self._unwritten, ()
        for each in reversed(unwritten):
            self.system, self.session_tools = each.system, each.session_tools
            if each.drop_on_failure:
                each.change.status = "pending"
                self.drop(each.change)
            else:
                self.hold(each.change, as_older=True)

    def release_toolsets(self) -> None:
        """Release all open toolsets, because the session has ended."""
        if owners := self.owners:
            self.toolsets.release(owners)

    @property
    def owners(self) -> tuple[ToolsetOwner, ...]:
        """The owners of all open toolsets, including toolsets in waiting changes and in changes that can be undone."""
        held = (
            ()
            if self._change is None or self._change.session_tools is ...
            else self._change.session_tools.owners
        )
        before = [
            each.session_tools.owners for each in self._unwritten if each.change.session_tools is not ...
        ]
        return (*self.session_tools.owners, *held, *chain(*before))


class ActiveConfig:
    """The configuration in the form that a session's actors use: the tools by name, and a resolver of targets.

    The scheduler shares the dict `tools`, so changes update the dict in place. After a crash, new actors get the same
    configuration.

    Args:
        configuration: The live configuration.
        create_resolver: Creates a resolver for tools and a system prompt.
        prepare_change: Opens the toolsets of a change and returns the change.
    """

    resolver: Resolver

    def __init__(
        self, configuration: Configuration, create_resolver: CreateResolver, prepare_change: PrepareChange
    ) -> None:
        self._configuration = configuration
        self._create_resolver, self._prepare_change = create_resolver, prepare_change
        self.tools: dict[str, Tool[..., Any]] = {}  # Any: tools have functions of any type
        self._rebuild_tools()

    def budgets(self, tenant: str, target: str) -> tuple[SharedBudget, ...]:
        """Return the shared budgets that count requests to `target`. The session's own budget is not included."""
        shared, others = self._configuration.shared, self.resolver.budgets(tenant, target)
        return others if shared is None else (shared, *others)

    def exhausted_budget(self, state: SessionState, target: str) -> str | None:
        """Return a message if a budget for requests to `target` is used up; otherwise None."""
        others = (budget.used_up_limit() for budget in self.budgets(state.tenant, target))
        return used_up_limit(self.resolver, state) or next(filter(None, others), None)

    def budget_rejection(self, state: SessionState) -> str | None:
        """Return the reason to reject an ask, because a budget is used up. `None` means that no budget is used up.

        If a shared budget is used up, its count of rejections is incremented.
        """
        if (why := used_up_limit(self.resolver, state)) is not None:
            return f"{why}; open a new session"
        for budget in self.budgets(state.tenant, state.target):
            if (why := budget.used_up_limit()) is not None:
                budget.refused += 1
                return why
        return None

    def refresh(self) -> Resolver:
        """Adopt the current tools of the session's toolsets, and return a resolver for them.

        The session calls this when an ask begins. Within a turn, only `refresh_unless` changes the tools.
        """
        session_tools = self._configuration.session_tools
        session_tools.refresh()
        if session_tools.tools is not self._adopted_tools:
            self._rebuild_tools()
        return self.resolver

    @property
    def may_change(self) -> bool:
        """True if the tools may change within a turn."""
        return self._configuration.session_tools.may_change

    async def check_for_changes(self) -> bool:
        """Return True if a toolset that allows changes within a turn has changed its tools.

        If the toolset is reading its list of tools, first wait until it has read the list.
        """
        return await self._configuration.session_tools.check_for_changes()

    def refresh_unless(self, why_not: Callable[["ActiveConfig"], str]) -> str:
        """Adopt the current tools of the toolsets within a turn, unless `why_not` returns a reason not to.

        If `why_not` returns a reason or raises `ConfigError`, restore the previous tools and return the reason.
        Otherwise, return the empty string.

        Args:
            why_not: Checks the configuration with the current tools. Returns an empty string if the turn may use them.
        """
        session_tools = self._configuration.session_tools
        before = session_tools.arrangement
        self.refresh()
        try:
            why = why_not(self)
        except ConfigError as error:
            why = str(error)
        if why:
            session_tools.restore(before)
            self._rebuild_tools()
        return why

    def hold(self, change: ConfigChange, *, as_older: bool = False) -> None:
        """Keep a change until it can be applied. See `Configuration.hold`."""
        self._configuration.hold(change, as_older=as_older)

    async def prepare(self, handover: Handover) -> ConfigChange:
        """Open the toolsets of a handover, and return its configuration change.

        The caller must then hold the change or drop it.

        Raises:
            ConfigError: The target does not accept these tools.
            ToolsetFailed: A toolset cannot be opened.
        """
        return await self._prepare_change(handover.system, handover.tools, handover.target)

    def drop(self, change: ConfigChange) -> None:
        """Withdraw a change and release its toolsets. See `Configuration.drop`."""
        self._configuration.drop(change)

    @property
    def is_changing(self) -> bool:
        """True if a change waits to be applied."""
        return self._configuration.is_changing

    def apply_change(self, *, drop_on_failure: bool = False) -> Resolver:
        """Apply the waiting change and return the new resolver. See `Configuration.apply_change`."""
        self._configuration.apply_change(drop_on_failure=drop_on_failure)
        self._rebuild_tools()
        return self.resolver

    def confirm_written(self, event: SwitchApplied | Configured) -> None:
        """Record that a switch or an applied configuration change is in the log."""
        if isinstance(event, SwitchApplied):
            self._configuration.target = event.target
        else:
            self._configuration.confirm_written()

    def retarget(self, target: str) -> None:
        """After a crash, set the target to the target in the log."""
        self._configuration.target = target

    def restore(self) -> None:
        """After a crash, undo the configuration changes that are not in the log."""
        self._configuration.restore()
        self._rebuild_tools()

    @property
    def configured_event(self) -> Configured:
        """The log event that records the current configuration."""
        return Configured(self._configuration.system, tuple(self.tools), self.resolver.config_digest)

    def _rebuild_tools(self) -> None:
        """Update the dict of tools and the resolver from the configuration."""
        tools = self._adopted_tools = self._configuration.session_tools.tools
        self.tools.clear()
        self.tools.update({tool.name: tool for tool in tools})
        self.resolver = self._create_resolver(tools, self._configuration.system)
