"""Create the toolsets of the MCP servers in `actors.toml`. Secrets are read when a server is first used."""

from typing import cast

from actors.config import Config
from actors.config.fields import HeaderVariable
from actors.config.settings import McpSettings
from actors.errors import MissingKey, UnknownTarget
from actors.tools.mcp import McpOptions, http, stdio
from actors.tools.toolsets import ToolSource


def configured_toolset(config: Config, name: str) -> ToolSource:
    """Return the toolset for a table `[mcp.NAME]` of the configuration.

    Raises:
        UnknownTarget: There is no table with this name.
        MissingKey: An environment variable that the table names is not set.
    """
    settings = config.settings.mcp.get(name)
    if settings is None:
        names = ", ".join(config.settings.mcp) or "none"
        raise UnknownTarget(f"No MCP server {name[:80]!r} in actors.toml; there are: {names}")
    options = _options(settings)
    if settings.url is not None:
        return http(settings.url, _headers(config, name, settings), name=name, **options)
    env = {variable: _variable_value(config, name, variable) for variable in settings.env}
    return stdio(settings.command or "", settings.args, env=env, cwd=settings.cwd, name=name, **options)


def _options(settings: McpSettings) -> McpOptions:
    """Return the options of `actors.mcp` that a table sets."""
    options = McpOptions(opening=settings.opening, waiting=settings.waiting, within_turn=settings.within_turn)
    if settings.tools is not None:
        options["only"] = settings.tools
    if settings.approval is not None:
        options["approval"] = settings.approval
    if settings.timeout is not None:
        options["timeout"] = settings.timeout
    limits = {
        "max_bytes": settings.max_bytes,
        "max_blocks": settings.max_blocks,
        "max_values": settings.max_values,
    }
    options.update(cast("McpOptions", {key: value for key, value in limits.items() if value is not None}))
    return options


def _headers(config: Config, name: str, settings: McpSettings) -> dict[str, str]:
    """Return the headers of a server, with the values of the environment variables that the table names."""
    headers = {
        header: _variable_value(config, name, value.variable)
        if isinstance(value, HeaderVariable)
        else value.get_secret_value()
        for header, value in settings.headers.items()
    }
    if settings.bearer is not None:
        headers["authorization"] = f"Bearer {_variable_value(config, name, settings.bearer)}"
    return headers


def _variable_value(config: Config, name: str, variable: str) -> str:
    """Return the value of an environment variable. Raises `MissingKey` if it is not set or empty."""
    if not (value := config.environ.get(variable, "").strip()):
        raise MissingKey(f"MCP server {name!r} needs the environment variable {variable}, which is not set")
    return value
