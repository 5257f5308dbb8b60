"""Validate the values of `actors.toml`, and decode tables to structs with the ranges that their fields have.

No message repeats a value, because it may be a secret in the wrong line.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, TypeVar
from urllib.parse import urlsplit

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, WrapValidator, create_model

from actors.config.providers import PROVIDERS, Kind
from actors.core.data.jsonio import is_object
from actors.core.settings.durations import parse_duration
from actors.core.settings.ranges import Range
from actors.errors import nearest

F = TypeVar("F", bound=Struct)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,127}")


def variable_name(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError("takes the name of an environment variable in capitals, not the key itself")
    return name


def duration_text(text: object) -> int:
    if not isinstance(text, str):
        raise ValueError("takes a string, such as '90 days'")
    return parse_duration(text)


def label(text: str) -> str:
    if not text or len(text) > 200 or not text.isprintable():
        raise ValueError("takes 1 to 200 printable characters")
    return text


def endpoint(url: str) -> str:
    """Return `url` without its last slash. It may hold no credentials: endpoints are shown and logged."""
    if "@" in url or "?" in url or "#" in url:
        raise ValueError("takes a URL without user, password, query or fragment; keys go in auth")
    return base_url(url)


def base_url(url: str) -> str:
    """Return `url` without the last slash of its path. Its query is kept, and never shown."""
    if not _is_http(url):
        raise ValueError("takes an http or https URL, as https://host/v1")
    place, _, query = url.partition("?")
    if "@" in place or "#" in url:
        raise ValueError("takes a URL without user, password or fragment; keys go in auth")
    return f"{place.rstrip('/')}?{query}" if query else place.rstrip("/")


def _is_http(url: str) -> bool:
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port out of range, an unclosed bracket
        return False


def database(url: str) -> str:
    """Return `url`. It may hold no password: a configuration is shown and shared."""
    if not url.startswith(POSTGRES) or not url.isprintable():
        raise ValueError("takes a postgresql:// address, as postgresql://user@host/database")
    place, _, query = url.partition("://")[2].partition("?")
    if ":" in place.rpartition("@")[0] or "password" in query.lower():
        raise ValueError("takes an address without a password; set PGPASSWORD, or keep it in ~/.pgpass")
    return url


POSTGRES = ("postgresql://", "postgres://")
Variable = Annotated[str, AfterValidator(variable_name)]
Label = Annotated[str, AfterValidator(label)]
Endpoint = Annotated[str, AfterValidator(endpoint)]
BaseUrl = Annotated[str, AfterValidator(base_url)]
Database = Annotated[str, AfterValidator(database)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


def kind_name(name: str) -> Kind:
    if name in PROVIDERS:
        return name
    close = nearest(name, PROVIDERS)
    raise ValueError(f"did you mean {close!r}?" if close else f"must be one of {', '.join(PROVIDERS)}")


class Frozen(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", strict=True, hide_input_in_errors=True
    )


class HeaderVariable(Frozen):
    """A header's value that the environment holds, for one that is a secret."""

    variable: Variable


_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_MAX_HEADERS = 32
_MAX_HEADER = 4096
_OURS = {
    "connection",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    "upgrade",
    "te",
    "expect",
}
_CREDENTIALS = {"authorization", "x-api-key", "x-goog-api-key", "proxy-authorization"}


def header_value(text: str) -> str:
    """Return `text` if a header can hold it. The message does not repeat it: it may be a secret."""
    if (
        not text
        or len(text) > _MAX_HEADER
        or not text.isascii()
        or not text.isprintable()
        or text != text.strip()
    ):
        raise ValueError(f"takes 1 to {_MAX_HEADER} printable ASCII characters without blanks around them")
    return text


def checked_headers(given: object) -> object:
    """Check the names and make each value a secret, or the variable that holds it."""
    if not is_object(given) or len(given) > _MAX_HEADERS:
        raise ValueError(f"takes a table of at most {_MAX_HEADERS} headers")
    return {_header_name(name): _header_value(value) for name, value in given.items()}


def _header_name(name: str) -> str:
    lowered = name.lower()
    if not _HEADER.fullmatch(name):
        raise ValueError("takes names of letters, digits and '-'")
    if lowered in _CREDENTIALS:
        raise ValueError(f"takes no {lowered!r}; credentials go in auth")
    if lowered in _OURS:
        raise ValueError(f"takes no {lowered!r}: it is set for each request")
    return lowered


def _header_value(value: object) -> SecretStr | HeaderVariable:
    match value:
        case str():
            return SecretStr(header_value(value))
        case {"variable": str() as variable} if is_object(value) and len(value) == 1:
            return HeaderVariable(variable=variable_name(variable))
        case _:
            raise ValueError('takes texts, or { variable = "NAME" } for one that is a secret')


def stored_form(allowed: Range, default: Any, value: object) -> Any:  # Any: each range has its own type
    """Return the stored form of a value. None, which no file can contain, stands for the default."""
    if value is None and default is not ...:
        return default
    if not allowed.accepts(value):
        raise ValueError(f"takes {allowed.words}")
    return allowed.store(value)


def model(name: str, ranges: Mapping[str, Range], defaults: Mapping[str, Any]) -> type[Frozen]:
    """Return the model of a table whose keys have these ranges. A key without a default must be given."""
    keys: dict[str, Any] = {  # Any: a type, and a default of that type
        key: (Annotated[Any, AfterValidator(partial(stored_form, allowed, default))], default)
        for key, allowed in ranges.items()
        for default in [defaults.get(key, ...)]
    }
    return create_model(name, __base__=Frozen, **keys)


def table(kind: type[F], ranges: Mapping[str, Range], check: Callable[[F], None] = lambda _: None) -> Any:
    """Return the type of a table whose keys are fields of a struct: it decodes the table to the struct.

    Args:
        kind: The struct. Its defaults are those of the table.
        ranges: The range of each key.
        check: Raises ValueError for values that contradict each other.
    """
    defaults = {field.name: field.default for field in fields(kind) if field.default is not NODEFAULT}

    def decode_value(given: object, decode: Callable[[object], Any]) -> F:  # Any: an instance of the model
        if isinstance(given, kind):
            return given
        made = kind(**dict(decode(given)))
        check(made)
        return made

    return Annotated[model(kind.__name__, ranges, defaults), WrapValidator(decode_value)]
