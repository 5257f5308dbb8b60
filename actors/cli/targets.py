"""From `run`'s options to a configuration, a target in it, and tools."""

import argparse
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from actors.config import BackendSettings, Config, FileSettings, load
from actors.config.providers import kind_of
from actors.core.dialects.profiles import dialect
from actors.errors import ActorsError, ConfigError
from actors.tools import Tool

SERVER = "server"
"""Name of the backend that --base-url makes."""

_OPTIONS = {"base_url": "--base-url", "model": "--model", "auth": "--auth"}


def target(options: argparse.Namespace) -> tuple[Config, str]:
    """Return the configuration and the target in it that the options name.

    Raises:
        ConfigError: No target is named and there is not just one, or an option's value cannot be used.
        UnknownTarget: `--dialect` names none.
    """
    config, name = configured(options)
    if name is not None:
        return config, name
    if len(config.targets) == 1:
        return config, config.targets[0]
    names = ", ".join(config.targets)
    hint = f"one of {names}" if names else "PROVIDER:MODEL, as openai:gpt-5.2"
    raise ConfigError(f"No target is named; give -m with {hint}, or --offline for a stand-in")


def configured(options: argparse.Namespace) -> tuple[Config, str | None]:
    """Return the configuration that the options name, and the target, if they name one.

    Raises:
        ConfigError: An option's value cannot be used.
        UnknownTarget: `--dialect` names none.
    """
    environ: Mapping[str, str] = os.environ
    if options.base_url is not None:
        if options.config is not None:
            raise ConfigError("--base-url and --config both say who is asked; give one of them")
        return Config(FileSettings(backends={SERVER: _server(options)}), environ), SERVER
    for option in ("dialect", "auth"):
        if getattr(options, option) is not None:
            raise ConfigError(f"--{option} is said of the server at --base-url; give that too")
    return load(options.config, environ), options.model


def _server(options: argparse.Namespace) -> BackendSettings:
    spoken = dialect(options.dialect or "openai")
    if options.model is None:
        raise ConfigError("--base-url needs the model's name there; give it with -m")
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


def tools(given: str | None) -> list[Tool[..., Any]]:  # Any: any function
    """Return the tools that a Python file defines, in its order, or those that `module:name` names. Either is run.

    Raises:
        ConfigError: It cannot be run, or there is no tool.
        ToolDefinitionError: A tool in it cannot be offered.
    """
    if given is None:
        return []
    is_file = given.endswith(".py") or ":" not in given or Path(given).is_file()
    return _of_file(given) if is_file else _of_module(given)


def _of_file(path: str) -> list[Tool[..., Any]]:  # Any: any function
    if not Path(path).is_file():
        raise ConfigError(f"No file {path!r} to take tools from; --tools wants a Python file, or MODULE:NAME")
    spec = spec_from_file_location("actors_cli_tools", path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path!r} is not a Python file; --tools wants one, as tools.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # its annotations are looked up there
    try:
        spec.loader.exec_module(module)
    except ActorsError:
        raise
    except (Exception, SystemExit) as error:  # other people's code
        raise ConfigError(f"Cannot run {path}: {type(error).__name__}: {error}") from error
    if not (found := [value for value in vars(module).values() if isinstance(value, Tool)]):
        raise ConfigError(f"{path} defines no tool; decorate a function with @tool")
    return found


def _of_module(given: str) -> list[Tool[..., Any]]:  # Any: any function
    module, _, name = given.partition(":")
    sys.path.insert(0, "")
    try:
        found = getattr(import_module(module), name)
        listed = [found] if isinstance(found, Tool) else list(found)
    except ActorsError:
        raise
    except (Exception, SystemExit) as error:  # other people's code
        raise ConfigError(f"Cannot take tools from {given}: {type(error).__name__}: {error}") from error
    if not listed or not all(isinstance(each, Tool) for each in listed):
        raise ConfigError(f"{given} is no tool and no list of tools; decorate a function with @tool")
    return listed
