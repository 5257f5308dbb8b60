"""`--mcp`: the MCP servers that a session may use, of the configuration by name, or said on the command line."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import ValidationError

from actors.config import Config
from actors.config.fields import NAME
from actors.config.settings import McpSettings
from actors.errors import ConfigError
from actors.tools import Approval


def with_servers(
    config: Config, given: Sequence[str], rules: Mapping[str, Approval]
) -> tuple[Config, list[str]]:
    """Return a configuration that has these servers, and their names.

    Args:
        config: What else is configured.
        given: `NAME` of a table of the file, `NAME=COMMAND` or `NAME=URL`.
        rules: What becomes of calls of some tools, whatever else is said of them.

    Raises:
        ConfigError: One of them cannot be used, or two have one name. What stands behind a name is not repeated: it may
            hold a secret.
    """
    servers: dict[str, McpSettings] = {}
    for text in given:
        name, is_said, place = text.partition("=")
        if name in servers:
            raise ConfigError(f"--mcp names {name!r} twice; give each server a name of its own")
        servers[name] = _said(config, name, place) if is_said else _configured(config, name)
    ruled = {name: _ruled(settings, rules) for name, settings in servers.items()}
    settings = config.settings.model_copy(update={"mcp": {**config.settings.mcp, **ruled}})
    return replace(config, settings=settings), list(servers)


def _configured(config: Config, name: str) -> McpSettings:
    if (known := config.settings.mcp.get(name)) is not None:
        return known
    there = ", ".join(config.settings.mcp) or "none"
    if NAME.fullmatch(name) is None:
        raise ConfigError("--mcp takes NAME, NAME=COMMAND or NAME=URL, as files='npx -y some-server /data'")
    raise ConfigError(
        f"--config has no MCP server {name!r}; it has {there}; or give {name}=COMMAND or {name}=URL"
    )


def _said(config: Config, name: str, place: str) -> McpSettings:
    if NAME.fullmatch(name) is None:
        raise ConfigError(
            "--mcp takes a name of letters, digits, '.', '_' and '-' before the '=', as files='npx -y some-server'"
        )
    if name in config.settings.mcp:
        raise ConfigError(f"--mcp {name!r} is in --config already; leave '=...' out, or give another name")
    try:
        if "://" in place:
            return McpSettings(url=place)
        command, *arguments = shlex.split(place)
        return McpSettings(command=command, args=tuple(arguments))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        said = (
            fault["msg"].removeprefix("Value error, ").replace("keys go in auth", "a key goes into --config")
        )
        raise ConfigError(f"--mcp {name!r}: {fault['loc'][0]} {said}") from None
    except ValueError:  # nothing, or a quote that does not end
        raise ConfigError(f"--mcp {name!r} is no program and no address; check its quotes") from None


def _ruled(settings: McpSettings, rules: Mapping[str, Approval]) -> McpSettings:
    if not rules:
        return settings
    said = settings.approval
    known: Mapping[str, Approval] = {} if said is None else {"*": said} if isinstance(said, str) else said
    return settings.model_copy(update={"approval": {**known, **rules}})
