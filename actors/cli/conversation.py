"""Provide the parts that `actors run` and `actors chat` share: opening the session, approvals, and lines about answers.

The session is new or stored. The command-line options decide whether a tool call may run, or let the user decide at the
terminal. Both commands print the same lines about a missing or incomplete answer, and about notable events of a turn.
"""

import argparse
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from secrets import token_hex
from typing import Any, Literal, TypeAlias

import anyio

from actors.cli.journal import conversation_storage
from actors.cli.screen import one_line
from actors.cli.targets import load_tools, serve_target, with_servers
from actors.config import Config
from actors.core.settings.asking import AskSettings
from actors.core.settings.spending import Budget
from actors.core.stream_events.ask_events import AskResult, FailoverEvent
from actors.core.stream_events.events import (
    ResyncEvent,
    SessionEvent,
    SwitchAppliedEvent,
    SwitchFailedEvent,
    SwitchSupersededEvent,
)
from actors.core.stream_events.round_events import LaneRewrittenEvent
from actors.core.turn.answers import NO_CONTENT
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId
from actors.errors import ConfigError, MissingKey
from actors.provider import advice
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.tools import Tool
from actors.tools.toolsets import ToolItem

Answer: TypeAlias = Literal["yes", "no", "always"]
AskAtTerminal: TypeAlias = Callable[[str], Awaitable[Answer]]
"""A function that shows the text of one call to the user, and returns the user's answer."""
QUESTION = "[y]es, [n]o, [a]lways?"
_WIDTH = 300


def verdicts_of(options: argparse.Namespace) -> dict[str, Literal["allow", "deny"]]:
    """Return the decisions that `--allow-tool` and `--deny-tool` make in advance, by tool name.

    Raises:
        ConfigError: Both options name the same tool.
    """
    found: dict[str, Literal["allow", "deny"]] = dict.fromkeys(options.allow_tool, "allow")
    for name in options.deny_tool:
        if name in found:
            raise ConfigError(f"--allow-tool and --deny-tool both name {name!r}; omit one of them")
        found[name] = "deny"
    return found


def with_verdicts(
    tools: Sequence[Tool[..., Any]],  # Any: tools differ in result type
    verdicts: Mapping[str, Literal["allow", "deny"]],
    *,
    are_all_tools: bool,
) -> list[Tool[..., Any]]:  # Any: tools differ in result type
    """Return copies of the tools, with the `approval` that the verdicts set for their names.

    Args:
        are_all_tools: True if the session has no tools except `tools`. In this case, a verdict for any other name is an
            error.

    Raises:
        ConfigError: A verdict is for a tool that does not exist.
    """
    names = [tool.name for tool in tools]
    for name in verdicts if are_all_tools else ():
        if name not in names:
            raise ConfigError(
                f"--{verdicts[name]}-tool names an unknown tool, {name!r}; --tools has {', '.join(names) or 'none'}"
            )
    return [replace(tool, approval=verdicts.get(tool.name, tool.approval)) for tool in tools]


def parse_answer(line: str) -> Answer:
    """Return the answer in a line that a user typed. Any line that is not a clear yes or always means no."""
    word = line.strip().lower()
    if word in ("a", "always"):
        return "always"
    return "yes" if word in ("y", "yes") else "no"


def call_text(call: ToolCall) -> str:
    """Return one line that shows a call and its arguments, without control characters."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return one_line(f"{call.name}({arguments})", _WIDTH)


class Approvals:
    """The approval callback of a command. It decides about calls one at a time, in order of arrival.

    Args:
        policy: `allow` or `deny` applies to every call; `ask` asks the user.
        ask: Asks the user about a call. None means that there is no terminal: the policy `ask` then denies every call.
    """

    def __init__(self, policy: Literal["ask", "allow", "deny"], ask: AskAtTerminal | None) -> None:
        self._policy = policy
        self._ask = ask
        self._always: set[str] = set()
        self._lock = anyio.Lock()
        self.while_asking: Callable[[CallId], AbstractContextManager[None]] = lambda _call_id: nullcontext()
        """Returns a context manager that is entered while a call waits for the user's answer."""
        self.denied: list[str] = []
        """Names of the tools whose calls were denied because there was no terminal at which to ask the user."""

    async def __call__(self, call: ToolCall) -> bool:
        """Return True if the call may run."""
        if self._policy != "ask":
            return self._policy == "allow"
        if self._ask is None:
            self.denied.append(call.name)
            return False
        with self.while_asking(call.id):
            return await self._ask_person(call, self._ask) != "no"

    async def _ask_person(self, call: ToolCall, ask: AskAtTerminal) -> Answer:
        async with self._lock:
            if call.name in self._always:
                return "always"
            answer = await ask(call_text(call))
        if answer == "always":
            self._always.add(call.name)
        return answer


@asynccontextmanager
async def open_conversation(
    options: argparse.Namespace, approve: Approvals
) -> AsyncGenerator[tuple[Session, Config]]:
    """Start a runtime and open the session. Yield the session and its configuration.

    Raises:
        ConfigError: An option, a file or a target cannot be used.
    """
    verdicts = verdicts_of(options)
    continues = _is_continuation(options)
    async with serve_target(options, needs_target=not continues) as (found, target):
        config, servers = with_servers(found, options.mcp, verdicts)
        tools: list[ToolItem] = [
            *with_verdicts(_offered_tools(options), verdicts, are_all_tools=not servers),
            *servers,
        ]
        storage = conversation_storage(options, config, create=not continues)
        async with Runtime(config, journal=storage, gc="tuned") as runtime:
            if continues:
                yield await _resume_session(runtime, target, tools, options, approve), config
            else:
                assert target is not None
                yield await _open_new_session(runtime, target, tools, options, approve), config


def ask_settings(options: argparse.Namespace) -> AskSettings:
    """Return the settings for each ask, from the options `--max-rounds` and `--timeout`."""
    settings = AskSettings()
    if options.max_rounds is not None:
        settings["max_rounds"] = options.max_rounds
    if options.timeout is not None:
        settings["timeout"] = options.timeout
    return settings


def _is_continuation(options: argparse.Namespace) -> bool:
    """Return True if the options select a stored conversation instead of a new one.

    Raises:
        ConfigError: The options select several conversations, or set a value that is fixed for a stored conversation.
    """
    if sum((options.continues, options.resume is not None, bool(options.fork))) > 1:
        raise ConfigError(
            "--continue, --resume ID and --fork ID cannot be combined; to copy a conversation, use --fork ID alone"
        )
    if not options.continues and options.resume is None and options.fork is None:
        return False
    if options.max_cost is not None:
        raise ConfigError(
            "--max-cost is set when a conversation starts and cannot be changed; omit --max-cost"
        )
    if options.id is not None and options.fork is None:
        raise ConfigError(
            "--id sets the id of a new conversation, or of the copy that --fork makes; a continued conversation keeps "
            "its id, so omit --id"
        )
    return True


async def _resume_session(
    runtime: Runtime,
    target: str | None,
    tools: Sequence[ToolItem],
    options: argparse.Namespace,
    approve: Approvals,
) -> Session:
    session = options.fork or options.resume or await _latest_session_id(runtime)
    if options.fork is not None:
        session = await runtime.journal.fork(session, id=options.id or _new_id())
    system = ... if options.system is None else options.system
    return await runtime.resume(session, tools=tools, system=system, target=target, approve=approve)


async def _latest_session_id(runtime: Runtime) -> str:
    """Return the id of the most recently used session that is not closed.

    Raises:
        ConfigError: The journal contains no open session.
    """
    for each in await runtime.journal.list():
        if each.state != "closed":
            return each.id
    raise ConfigError("No conversation is stored; start one without --continue, or name a --journal")


def _new_id() -> str:
    """Return a new session id that contains the time, such as `20260131-174502-9f1c`."""
    return f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{token_hex(2)}"


async def _open_new_session(
    runtime: Runtime,
    target: str,
    tools: Sequence[ToolItem],
    options: argparse.Namespace,
    approve: Approvals,
) -> Session:
    budget = None if options.max_cost is None else Budget(money=options.max_cost)
    session_id = options.id or _new_id()
    try:
        return await runtime.open(
            target, tools=tools, system=options.system, id=session_id, approve=approve, budget=budget
        )
    except MissingKey as error:
        raise MissingKey(f"{error}; --offline uses a stand-in that needs no key") from None


def _offered_tools(options: argparse.Namespace) -> list[Tool[..., Any]]:  # Any: tools differ in result type
    if options.offline and options.tools is None:
        from actors.cli.offline import roll

        return [roll]
    return load_tools(options.tools)


def failure_reason(result: AskResult, config: Config) -> str:
    """Return one line that explains why an ask has no complete answer, with a suggested fix."""
    return (
        pending_calls_message(result.pending_calls)
        if result.pending_calls
        else advice.no_answer_message(result, config)
    )


def pending_calls_message(calls: Iterable[ToolCall]) -> str:
    """Return one line that lists the calls for which a turn waits, because they need a result or an approval."""
    return (
        f"the turn waits for external input: {', '.join(map(call_text, calls))}; "
        "enter it with `actors chat --continue`"
    )


def incomplete_answer_notes(result: AskResult) -> Iterator[str]:
    """Yield one line for each defect of an answer, such as an empty answer, a cut answer, or dropped content."""
    if result.incomplete in NO_CONTENT:
        if result.status == "complete":  # for other statuses, `failure_reason` says the same
            yield f"no complete answer from {result.binding}: {NO_CONTENT[result.incomplete]}"
    elif result.incomplete is not None:
        yield f"the answer was cut ({result.incomplete}): {result.binding} stopped with {result.finish_reason!r}"
    if result.dropped:
        kinds = ", ".join(f"{count} x {kind}" for kind, count in result.dropped)
        yield f"dropped from the answer: {kinds}"
    if result.status == "complete" and result.error:
        yield f"{result.error}: the last calls of the model were not run"


def event_note(event: SessionEvent) -> str:
    """Return a line about an event that a user should notice, such as a failover.

    Return an empty string for other events.
    """
    match event:
        case FailoverEvent(backend=backend):
            return f"failing over to {backend}"
        case LaneRewrittenEvent(reason=reason, detail=detail) if reason != "media":
            return f"the request is rendered again: {detail}"
        case SwitchAppliedEvent(target=target):
            return f"switched to {target}"
        case SwitchSupersededEvent(target=target):
            return f"the switch to {target} was replaced by a later one"
        case SwitchFailedEvent(error=error):
            return f"the switch failed: {error}"
        case ResyncEvent(missed=missed):
            return f"{missed} events were missed"
        case _:
            return ""
