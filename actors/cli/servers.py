"""Add the MCP servers of the option `--mcp` to a configuration."""

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
    config: Config, options: Sequence[str], verdicts: Mapping[str, Approval]
) -> tuple[Config, list[str]]:
    """Return the configuration with the servers added, and the names of these servers.

    Args:
        options: The values of `--mcp`. Each is the `NAME` of a table in the file, `NAME=COMMAND` or `NAME=URL`.
        verdicts: Approvals by tool name, which override the configuration.

    Raises:
        ConfigError: A server cannot be used, or two have the same name. The message does not repeat the command or URL,
            which may contain a secret.
    """
    servers: dict[str, McpSettings] = {}
    for option in options:
        name, equals, place = option.partition("=")
        if name in servers:
            raise ConfigError(f"--mcp names {name!r} twice; give each server its own name")
        settings = _server_from_option(config, name, place) if equals else _configured_server(config, name)
        servers[name] = _with_verdicts(settings, verdicts)
    updated = config.settings.model_copy(update={"mcp": {**config.settings.mcp, **servers}})
    return replace(config, settings=updated), list(servers)


def _configured_server(config: Config, name: str) -> McpSettings:
    if (settings := config.settings.mcp.get(name)) is not None:
        return settings
    if NAME.fullmatch(name) is None:
        raise ConfigError(
            "--mcp must be NAME, NAME=COMMAND or NAME=URL, such as files='npx -y some-server /data'"
        )
    known = ", ".join(config.settings.mcp) or "none"
    raise ConfigError(
        f"No MCP server {name!r} in --config, which has {known}; correct the name, or use {name}=COMMAND or {name}=URL"
    )


def _server_from_option(config: Config, name: str, command_or_url: str) -> McpSettings:
    if NAME.fullmatch(name) is None:
        raise ConfigError(
            "--mcp must have a name of letters, digits, '.', '_' and '-' before '=', such as files='npx -y some-server'"
        )
    if name in config.settings.mcp:
        raise ConfigError(f"--mcp {name!r} is already in --config; omit '=...', or use another name")
    try:
        if "://" in command_or_url:
            return McpSettings(url=command_or_url)
        command, *arguments = shlex.split(command_or_url)
        return McpSettings(command=command, args=tuple(arguments))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        message = (
            fault["msg"]
            .removeprefix("Value error, ")
            .replace("put keys into auth", "put a key into --config")
        )
        raise ConfigError(f"--mcp {name!r}: {fault['loc'][0]} {message}") from None
    except ValueError:  # an empty command, or an unclosed quote
        raise ConfigError(f"--mcp {name!r} is neither a command nor a URL; check the quotes") from None


def _with_verdicts(settings: McpSettings, verdicts: Mapping[str, Approval]) -> McpSettings:
    if not verdicts:
        return settings
    own = settings.approval
    known: Mapping[str, Approval] = {} if own is None else {"*": own} if isinstance(own, str) else own
    return settings.model_copy(update={"approval": {**known, **verdicts}})
