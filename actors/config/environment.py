"""Look up environment variables in a mapping that the program passes as `environ=`, and record their names.

The mapping may be a vault that is temporarily unavailable, so each exception that it raises becomes a `ConfigError`.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Never

from actors.errors import ConfigError
from actors.kernel.host_code import call_host


class RecordingEnvironment(Mapping[str, str]):
    """An environment that forwards lookups to another environment and records them.

    `seen` maps each requested variable to its value, or to None if the variable is not set.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.seen: dict[str, str | None] = {}

    def __getitem__(self, name: str) -> str:
        self.seen[name] = self._environ.get(name)
        return self._environ[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._environ)

    def __len__(self) -> int:
        return len(self._environ)


class Environment(Mapping[str, str]):
    """An environment that forwards lookups to a mapping from the program.

    Each exception that the mapping raises becomes a `ConfigError`.
    """

    __slots__ = ("_environ",)

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def __getitem__(self, name: str) -> str:
        value: object = call_host(
            partial(self._environ.get, name), partial(_raise_config_error, f"reading variable {name!r}")
        )
        if value is None:
            raise KeyError(name)
        if not isinstance(value, str):
            kind = type(value).__name__
            raise ConfigError(
                f"environ= returned a value of type {kind} for variable {name!r}; return a string"
            )
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(
            call_host(
                partial(list[str], self._environ), partial(_raise_config_error, "listing the variables")
            )
        )

    def __len__(self) -> int:
        return call_host(partial(len, self._environ), partial(_raise_config_error, "listing the variables"))


def _raise_config_error(action: str, error: BaseException) -> Never:
    """Raise `ConfigError` without the original exception's message, which may contain a secret."""
    raise ConfigError(
        f"environ= raised {type(error).__name__} while {action}; fix the mapping that you passed as environ="
    ) from error


def guard(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return an environment whose lookups raise only `ConfigError`.

    A plain `dict` never fails and is returned unchanged.
    """
    kind = type(environ)
    return (
        environ
        if kind is dict or isinstance(environ, Environment | RecordingEnvironment)
        else Environment(environ)
    )
