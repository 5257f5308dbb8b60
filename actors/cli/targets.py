"""Convert options to a configuration and a target, to the tools of `--tools`, and to the MCP servers of `--mcp`."""

import argparse
import os
import shlex
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from actors.config import BackendSettings, Config, FileSettings, load
from actors.config.fields import NAME
from actors.config.providers import kind_of
from actors.config.settings import McpSettings
from actors.core.dialects.profiles import dialect
from actors.errors import ActorsError, ConfigError
from actors.tools import Approval, Tool
from actors.tools.tool import is_tool

SERVER = "server"
"""Name of the backend that the option --base-url defines."""
_OPTIONS = {"base_url": "--base-url", "model": "--model", "auth": "--auth"}


@asynccontextmanager
async def serve_target(
    options: argparse.Namespace, *, needs_target: bool
) -> AsyncGenerator[tuple[Config, str | None]]:
    """Yield the configuration and the target that the options select.

    With `--offline`, local stand-ins for the providers run until the `async with` block ends.

    Args:
        needs_target: True to raise an error if no target is selected. A stored conversation needs none.

    Raises:
        ConfigError: The options contradict each other or select no target, or a value cannot be used.
        UnknownTarget: There is no dialect with the name that `--dialect` gives.
    """
    if not options.offline:
        config, name = _load_config(options)
        yield config, _only_target(config) if name is None and needs_target else name
        return
    from actors.cli.offline import run_stand_ins

    for option in ("config", "base_url", "dialect", "auth"):
        if getattr(options, option) is not None:
            raise ConfigError(f"--offline uses a stand-in; omit --{option.replace('_', '-')}")
    async with run_stand_ins(options.model) as made:
        yield made


def _only_target(config: Config) -> str:
    if len(config.targets) == 1:
        return config.targets[0]
    names = ", ".join(config.targets)
    hint = f"one of {names}" if names else "PROVIDER:MODEL, such as openai:gpt-5.2"
    raise ConfigError(f"No target is selected; use -m with {hint}, or --offline for a stand-in")


def _load_config(options: argparse.Namespace) -> tuple[Config, str | None]:
    if options.base_url is not None:
        if options.config is not None:
            raise ConfigError("--base-url and --config cannot be combined; omit one of them")
        return Config(FileSettings(backends={SERVER: _server_settings(options)}), os.environ), SERVER
    for option in ("dialect", "auth"):
        if getattr(options, option) is not None:
            raise ConfigError(f"--{option} describes the server at --base-url; add --base-url")
    return load(options.config, os.environ), options.model


def _server_settings(options: argparse.Namespace) -> BackendSettings:
    spoken = dialect(options.dialect or "openai")
    if options.model is None:
        raise ConfigError("--base-url needs the name of a model on that server; add -m MODEL")
    try:
        return BackendSettings(
            kind=kind_of(spoken),
            dialect=spoken.name,
            model=options.model,
            base_url=options.base_url,
            auth=options.auth,
        )
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        option = _OPTIONS.get(str(fault["loc"][0]), str(fault["loc"][0]))
        raise ConfigError(f"{option} {fault['msg'].removeprefix('Value error, ')}") from None


def load_tools(name: str | None) -> list[Tool[..., Any]]:  # Any: tools differ in result type
    """Run the code that `--tools` names, and return its tools.

    For a Python file, these are all its tools; for `module:name`, the tool or list of tools with that name.

    Raises:
        ConfigError: The code cannot be run, or defines no tool.
        ToolDefinitionError: A tool is invalid.
    """
    if name is None:
        return []
    if name.endswith(".py") or ":" not in name or Path(name).is_file():
        if found := [value for value in vars(_run_file(name)).values() if is_tool(value)]:
            return found
        raise ConfigError(f"{name} defines no tool; decorate a function with @tool")
    return _tools_of_module(name)


def _run_file(path: str) -> ModuleType:
    if not Path(path).is_file():
        raise ConfigError(f"No file {path!r}; --tools must be a Python file or MODULE:NAME")
    spec = spec_from_file_location("actors_cli_tools", path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path!r} is not a Python file; --tools must be a Python file, such as tools.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # type annotations are looked up in the module
    try:
        spec.loader.exec_module(module)
    except ActorsError:
        raise
    except (Exception, SystemExit) as error:  # foreign code may raise anything
        raise ConfigError(f"Cannot run {path}: {type(error).__name__}: {error}") from error
    return module


def _tools_of_module(reference: str) -> list[Tool[..., Any]]:  # Any: tools differ in result type
    module, _, name = reference.partition(":")
    sys.path.insert(0, "")
    try:
        found: Any = getattr(import_module(module), name)  # Any: the module may define any object
        listed: list[Tool[..., Any]] = [found] if is_tool(found) else list(found)
    except ActorsError:
        raise
    except (Exception, SystemExit) as error:  # foreign code may raise anything
        raise ConfigError(f"Cannot load tools from {reference}: {type(error).__name__}: {error}") from error
    if not listed or not all(isinstance(each, Tool) for each in listed):
        raise ConfigError(
            f"{reference} is neither a tool nor a list of tools; decorate a function with @tool"
        )
    return listed


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
