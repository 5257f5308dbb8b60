"""From the command line to an open session: the one way of `actors run` and `actors chat`."""

import argparse
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from secrets import token_hex
from typing import Any

from actors.cli.approvals import Approvals, ruled, rules
from actors.cli.journal import journal
from actors.cli.servers import with_servers
from actors.cli.targets import configured, target, tools
from actors.config import Config
from actors.core.settings.asking import AskSettings
from actors.core.settings.spending import Budget
from actors.errors import ConfigError, MissingKey
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.tools import Tool
from actors.tools.toolsets import Item


@asynccontextmanager
async def conversation(
    options: argparse.Namespace, approve: Approvals
) -> AsyncIterator[tuple[Session, Config]]:
    """Give a session as the options say, and its configuration, for the time of the block.

    Raises:
        ConfigError: An option, a file or a target cannot be used.
    """
    verdicts = rules(options)
    _check_named(options)
    async with _configured(options) as (found, name):
        config, servers = with_servers(found, options.mcp, verdicts)
        offered: list[Item] = [*ruled(_offered(options), verdicts, are_all=not servers), *servers]
        is_kept = goes_on(options)
        kept = journal(options, config, makes=not is_kept)
        async with Runtime(config, journal=kept, gc="tuned") as runtime:
            if is_kept:
                yield await _resumed(runtime, name, offered, options, approve), config
            else:
                assert name is not None
                yield await _opened(runtime, name, offered, options, approve), config


def settings(options: argparse.Namespace) -> AskSettings:
    """Return what bounds each ask."""
    bounds = AskSettings()
    if options.max_rounds is not None:
        bounds["max_rounds"] = options.max_rounds
    if options.timeout is not None:
        bounds["timeout"] = options.timeout
    return bounds


def goes_on(options: argparse.Namespace) -> bool:
    """Say whether the options name a conversation that is kept."""
    return bool(options.goes_on) or options.resume is not None or options.fork is not None


def _check_named(options: argparse.Namespace) -> None:
    """Refuse options that name several conversations, or would have to change one that is kept.

    Raises:
        ConfigError: One cannot be heeded.
    """
    named = [bool(options.goes_on), options.resume is not None, bool(options.fork)]
    if sum(named) > 1:
        raise ConfigError(
            "--continue, --resume ID and --fork ID each name a conversation; give one, and --fork alone for a copy"
        )
    if not goes_on(options):
        return
    if options.max_cost is not None:
        raise ConfigError(
            "--max-cost is set when a conversation begins, and this one keeps what it began with; leave it out"
        )
    if options.id is not None and options.fork is None:
        raise ConfigError(
            "--id names a new conversation, or the copy of --fork; one that is gone on with keeps its id; leave it out"
        )


async def _resumed(
    runtime: Runtime,
    name: str | None,
    offered: Sequence[Item],
    options: argparse.Namespace,
    approve: Approvals,
) -> Session:
    kept = options.fork or options.resume or await _last(runtime)
    if options.fork is not None:
        kept = await runtime.journal.fork(kept, id=options.id or _made_up())
    system = ... if options.system is None else options.system
    return await runtime.resume(kept, tools=offered, system=system, target=name, approve=approve)


async def _last(runtime: Runtime) -> str:
    """Return the session that was used last and can be gone on with.

    Raises:
        ConfigError: There is none.
    """
    for each in await runtime.journal.list():
        if each.state != "closed":
            return each.id
    raise ConfigError("No conversation is kept here; begin one without --continue, or name a --journal")


def _made_up() -> str:
    """Return an id that tells people when it began."""
    return f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{token_hex(2)}"


async def _opened(
    runtime: Runtime,
    name: str,
    offered: Sequence[Item],
    options: argparse.Namespace,
    approve: Approvals,
) -> Session:
    budget = None if options.max_cost is None else Budget(money=options.max_cost)
    try:
        return await runtime.open(
            name,
            tools=offered,
            system=options.system,
            id=options.id or _made_up(),
            approve=approve,
            budget=budget,
        )
    except MissingKey as error:
        raise MissingKey(f"{error}; --offline asks a stand-in that needs none") from None


def _offered(options: argparse.Namespace) -> list[Tool[..., Any]]:  # Any: any function
    if options.offline and options.tools is None:
        from actors.cli.offline import roll

        return [roll]
    return tools(options.tools)


@asynccontextmanager
async def _configured(options: argparse.Namespace) -> AsyncIterator[tuple[Config, str | None]]:
    if not options.offline:
        yield configured(options) if goes_on(options) else target(options)
        return
    from actors.cli.offline import stand_ins

    for option in ("config", "base_url", "dialect", "auth"):
        if getattr(options, option) is not None:
            raise ConfigError(f"--offline asks a stand-in; leave --{option.replace('_', '-')} out")
    async with stand_ins(options.model) as made:
        yield made
