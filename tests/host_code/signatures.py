"""Find the public parameters that accept code of the program: functions, or objects with methods."""

import collections.abc
import inspect
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from types import FunctionType, SimpleNamespace
from typing import Any, Unpack, get_args, get_origin, get_type_hints, is_typeddict

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

import actors
from actors import mcp
from actors.config import Config
from actors.hosts import SessionRouter
from actors.journal.storage import Storage
from actors.provider import dumps
from actors.runtime.journal_admin import JournalAdmin
from actors.telemetry import otel, prometheus
from actors.tools import toolset
from actors.tools.mcp import options
from actors.tools.toolsets import LiveTools
from actors.transport import Transport

PUBLIC = (
    *(getattr(actors, name) for name in actors.__all__ if name not in ("Dialect", "SessionEvent")),
    *(getattr(mcp, name) for name in mcp.__all__ if name not in ("Elicit", "ElicitationAnswer", "Sample")),
    otel.Tracing,
    prometheus.PrometheusCollector,
    Config,
    JournalAdmin,
    SessionRouter,
)
"""The public callables: names of `actors`, and of the modules that its documentation imports from.

The functions that `RayHosts` takes run in Ray actors. `tests.commands.ray_hosts` covers them.
"""

SERVICES = (
    AbstractAsyncContextManager,
    LiveTools,
    Storage,
    Transport,
    otel.Tracing,
    TracerProvider,
    MeterProvider,
)
"""Types of objects whose methods the runtime calls and which a program may implement."""

UNTYPED = (("output", Any), ("tools", Iterable[Any]), ("environ", Mapping[str, str]))
"""Parameters whose types do not show that code is called: output types have validators, a mapping may be a vault."""

_NAMES = {
    **vars(typing),
    **vars(collections.abc),
    **vars(options),
    **vars(toolset),
    "Tracing": otel.Tracing,
    "OnRefusal": dumps.OnRefusal,
    "Config": Config,
    "TracerProvider": TracerProvider,
    "MeterProvider": MeterProvider,
    "ElicitationAnswer": object,  # the result of a function, which is not inspected
}
"""Names in annotations that are imported only for type checkers."""


def code_parameters() -> set[str]:
    """Return the public parameters that accept code, as `Owner.parameter` or `Owner.method.parameter`."""
    return {name for owner in PUBLIC for name in parameters_of(owner)}


def parameters_of(owner: Any) -> Iterator[str]:  # Any: a class or a function
    """Yield the parameters of one class or function that accept code."""
    if is_typeddict(owner):
        yield from _accepting(owner.__name__, _hints(owner))
    elif isinstance(owner, type):
        yield from _accepting(owner.__name__, _hints(_constructor(owner)))
        for name, member in _members(owner).items():
            function = getattr(member, "__func__", member)
            if not name.startswith("_") and isinstance(function, FunctionType):
                yield from _accepting(f"{owner.__name__}.{name}", _hints(function))
    elif callable(owner) and hasattr(owner, "__name__"):
        yield from _accepting(owner.__name__, _hints(owner))


def _members(kind: type) -> dict[str, object]:
    """Return the members of a class, including those that it inherits from other classes of the package."""
    bases = [each for each in reversed(kind.__mro__) if each.__module__.partition(".")[0] == "actors"]
    return {name: member for each in (*bases, kind) for name, member in vars(each).items()}


def _constructor(kind: type) -> Any:  # Any: a function, or a class with annotated fields
    own = vars(kind).get("__init__")
    return own if isinstance(own, FunctionType) and own.__annotations__ else kind


def _hints(function: Any) -> dict[str, Any]:  # Any: a function or a class; types
    module = inspect.getmodule(function)
    known = _everywhere(len(sys.modules)) | (vars(module) if module else {}) | _NAMES
    if isinstance(function, type) or is_typeddict(function):
        return get_type_hints(function, known)
    taken = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    return get_type_hints(SimpleNamespace(__annotations__=taken), known)


@lru_cache(maxsize=1)
def _everywhere(loaded: int) -> dict[str, Any]:  # Any: any values
    """Return the names of all modules of the package, because annotations may name imports for type checkers only.

    Args:
        loaded: The number of loaded modules, so that the cache is refreshed after an import.
    """
    modules = [module for name, module in sorted(sys.modules.items()) if name.partition(".")[0] == "actors"]
    return {name: value for module in modules for name, value in vars(module).items()}


def _accepting(owner: str, hints: Mapping[str, Any]) -> Iterator[str]:  # Any: types
    for name, hint in hints.items():
        if get_origin(hint) is Unpack:
            yield from _accepting(owner, _hints(get_args(hint)[0]))
        elif not name.startswith("_") and (_is_untyped(name, hint) or _is_code(hint)):
            yield f"{owner}.{name}"


def _is_untyped(name: str, hint: Any) -> bool:  # Any: a type
    return any((name, each) in UNTYPED for each in (hint, *get_args(hint)))


def _is_code(hint: Any) -> bool:  # Any: a type
    """Return True if values or parts of a type are functions or services."""
    origin = get_origin(hint) or hint
    if origin in (Callable, *SERVICES):
        return True
    return origin is not actors.Tool and any(map(_is_code, get_args(hint)))
