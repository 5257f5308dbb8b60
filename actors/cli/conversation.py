"""From the command line to an open session: the one way of `actors run` and `actors chat`."""

import argparse
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from actors.cli.approvals import Approvals, ruled, rules
from actors.cli.servers import with_servers
from actors.cli.targets import target, tools
from actors.config import Config
from actors.core.asking import AskSettings
from actors.core.spending import Budget
from actors.errors import ConfigError, MissingKey
from actors.handle import Session
from actors.runtime import Runtime
from actors.tools import Tool
from actors.toolsets import Item


@asynccontextmanager
async def conversation(
    options: argparse.Namespace, approve: Approvals
) -> AsyncIterator[tuple[Session, Config]]:
    """Give a session as the options say, and its configuration, for the time of the block.

    Raises:
        ConfigError: An option, a file or a target cannot be used.
    """
    verdicts = rules(options)
    async with _configured(options) as (found, name):
        config, servers = with_servers(found, options.mcp, verdicts)
        offered: list[Item] = [*ruled(_offered(options), verdicts, are_all=not servers), *servers]
        async with Runtime(config) as runtime:
            yield await _opened(runtime, name, offered, options, approve), config


def settings(options: argparse.Namespace) -> AskSettings:
    """Return what bounds each ask."""
    bounds = AskSettings()
    if options.max_rounds is not None:
        bounds["rounds"] = options.max_rounds
    if options.timeout is not None:
        bounds["total"] = options.timeout
    return bounds


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
            name, tools=offered, system=options.system, id=options.id, approve=approve, budget=budget
        )
    except MissingKey as error:
        raise MissingKey(f"{error}; --offline asks a stand-in that needs none") from None


def _offered(options: argparse.Namespace) -> list[Tool[..., Any]]:  # Any: any function
    if options.offline and options.tools is None:
        from actors.cli.offline import roll

        return [roll]
    return tools(options.tools)


@asynccontextmanager
async def _configured(options: argparse.Namespace) -> AsyncIterator[tuple[Config, str]]:
    if not options.offline:
        yield target(options)
        return
    from actors.cli.offline import stand_ins

    for option in ("config", "base_url", "dialect", "auth"):
        if getattr(options, option) is not None:
            raise ConfigError(f"--offline asks a stand-in; leave --{option.replace('_', '-')} out")
    async with stand_ins(options.model) as made:
        yield made
