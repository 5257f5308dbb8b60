"""Open the toolsets of a configuration change, before the session's actors apply the change.

A change comes from the program (`Session.configure`) or from a model that calls a `handoff` tool.
"""

from collections.abc import Iterable
from types import EllipsisType

from actors.runtime.session_host import SessionHost
from actors.session.configuration import ConfigChange, Configuration
from actors.tools import Toolset
from actors.tools.toolsets import ToolItem


async def prepare_change(
    configuration: Configuration,
    host: SessionHost,
    system: str | EllipsisType | None,
    tools: Iterable[ToolItem] | EllipsisType,
    target: str | None = None,
) -> ConfigChange:
    """Open the toolsets of a configuration change, and return the change. The caller must either apply or drop it.

    Args:
        configuration: The configuration to change.
        host: Opens the toolsets.
        system, tools: The new system prompt and tools; `...` means no change.
        target: The target that must accept the tools; by default, the session's target.
    """
    if tools is ...:
        return ConfigChange(system, ...)
    prompt = configuration.system if system is ... else system

    def check_target(tools: Toolset) -> None:
        host.backends.resolver(tools, prompt).pool(target or configuration.target)

    return ConfigChange(system, await host.toolsets.open(tools, check_target))
