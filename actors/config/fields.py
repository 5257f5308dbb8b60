"""Validate the values of `actors.toml`, and decode its tables to structs.

No error message repeats a value, because the value may be a misplaced secret.
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
from actors.core.settings.values import Range, parse_duration
from actors.errors import nearest

F = TypeVar("F", bound=Struct)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,127}")


def check_variable_name(name: str) -> str:
    """Return `name` if it is a valid name of an environment variable, in capital letters.

    Raises:
        ValueError: `name` is not a valid name, so it may be the key itself.
    """
    if not _VARIABLE.fullmatch(name):
        raise ValueError("must be the name of an environment variable in capitals, not the key itself")
    return name


def parse_duration_text(text: object) -> int:
    """Return the seconds in a string such as `90 days`."""
    if not isinstance(text, str):
        raise ValueError("must be a string, such as '90 days'")
    return parse_duration(text)


def check_label(text: str) -> str:
    """Return `text` if it consists of 1 to 200 printable characters; otherwise raise ValueError."""
    if not text or len(text) > 200 or not text.isprintable():
        raise ValueError("must be 1 to 200 printable characters")
    return text


def normalize_endpoint(url: str) -> str:
    """Return a URL without its trailing slash.

    Raise ValueError if the URL may contain credentials. They are not allowed, because endpoints are shown and logged.
    """
    if "@" in url or "?" in url or "#" in url:
        raise ValueError("must be a URL without user, password, query or fragment; put keys into auth")
    return normalize_base_url(url)


def normalize_base_url(url: str) -> str:
    """Return a URL without the trailing slash of its path. The URL may have a query, which is never shown."""
    if not _is_http(url):
        raise ValueError("must be an http or https URL, such as https://host/v1")
    place, _, query = url.partition("?")
    if "@" in place or "#" in url:
        raise ValueError("must be a URL without user, password or fragment; put keys into auth")
    return f"{place.rstrip('/')}?{query}" if query else place.rstrip("/")


def _is_http(url: str) -> bool:
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # for example, a port out of range or an unclosed bracket
        return False


def check_database_url(url: str) -> str:
    """Return `url` if it is a `postgresql://` address without a password; otherwise raise ValueError."""
    if not url.startswith(POSTGRES) or not url.isprintable():
        raise ValueError("must be a postgresql:// address, such as postgresql://user@host/database")
    place, _, query = url.partition("://")[2].partition("?")
    if ":" in place.rpartition("@")[0] or "password" in query.lower():
        raise ValueError(
            "must be an address without a password; put the password into PGPASSWORD or ~/.pgpass"
        )
    return url


POSTGRES = ("postgresql://", "postgres://")
Variable = Annotated[str, AfterValidator(check_variable_name)]
Label = Annotated[str, AfterValidator(check_label)]
Endpoint = Annotated[str, AfterValidator(normalize_endpoint)]
BaseUrl = Annotated[str, AfterValidator(normalize_base_url)]
Database = Annotated[str, AfterValidator(check_database_url)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


def check_kind(name: str) -> Kind:
    """Return `name` if it is a kind of backend; otherwise raise ValueError with the nearest kind."""
    if name in PROVIDERS:
        return name
    close = nearest(name, PROVIDERS)
    raise ValueError(
        f"unknown kind; did you mean {close!r}?" if close else f"must be one of {', '.join(PROVIDERS)}"
    )


class FrozenModel(BaseModel):
    """An immutable pydantic model, such as a table of `actors.toml`.

    An unknown key or a value of the wrong type raises an error, which does not contain the value.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", strict=True, hide_input_in_errors=True
    )


class HeaderVariable(FrozenModel):
    """A header whose value is secret.

    Args:
        variable: Name of the environment variable that contains the value.
    """

    variable: Variable


_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_MAX_HEADERS = 32
_MAX_HEADER = 4096
_TRANSPORT_HEADERS = {
    "connection",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    "upgrade",
    "te",
    "expect",
}
_CREDENTIAL_HEADERS = {"authorization", "x-api-key", "x-goog-api-key", "proxy-authorization"}


def check_header_value(text: str) -> str:
    """Return `text` if it is valid as the value of an HTTP header.

    The error message does not contain `text`, which may be a secret.
    """
    if (
        not text
        or len(text) > _MAX_HEADER
        or not text.isascii()
        or not text.isprintable()
        or text != text.strip()
    ):
        raise ValueError(f"must be 1 to {_MAX_HEADER} printable ASCII characters without surrounding spaces")
    return text


def check_headers(headers: object) -> object:
    """Return a valid table of headers, with names in lower case. Each value becomes a secret or a `HeaderVariable`."""
    if not is_object(headers) or len(headers) > _MAX_HEADERS:
        raise ValueError(f"must be a table of at most {_MAX_HEADERS} headers")
    return {_check_header_name(name): _parse_header_value(value) for name, value in headers.items()}


def _check_header_name(name: str) -> str:
    lowered = name.lower()
    if not _HEADER.fullmatch(name):
        raise ValueError("must have names of letters, digits and '-'")
    if lowered in _CREDENTIAL_HEADERS:
        raise ValueError(f"must not contain {lowered!r}; put credentials into auth")
    if lowered in _TRANSPORT_HEADERS:
        raise ValueError(f"must not contain {lowered!r}, which is set for each request")
    return lowered


def _parse_header_value(value: object) -> SecretStr | HeaderVariable:
    match value:
        case str():
            return SecretStr(check_header_value(value))
        case {"variable": str() as variable} if is_object(value) and len(value) == 1:
            return HeaderVariable(variable=check_variable_name(variable))
        case _:
            raise ValueError('must contain strings, or { variable = "NAME" } for a secret')


def to_stored_form(allowed: Range, default: Any, value: object) -> Any:  # Any: each range has its own type
    """Validate the value of a key, and convert it to the form in which it is stored.

    Args:
        allowed: The allowed values.
        default: The default of the key; `...` if the key is required.
        value: The value; None selects the default.
    """
    if value is None and default is not ...:
        return default
    if not allowed.accepts(value):
        raise ValueError(f"must be {allowed.description}")
    return allowed.store(value)


def table_model(name: str, ranges: Mapping[str, Range], defaults: Mapping[str, Any]) -> type[FrozenModel]:
    """Return a pydantic model for a table. `ranges` defines the allowed values of each key.

    Keys without a default are required.
    """
    keys: dict[str, Any] = {  # Any: each key has its own type
        key: (Annotated[Any, AfterValidator(partial(to_stored_form, allowed, default))], default)
        for key, allowed in ranges.items()
        for default in [defaults.get(key, ...)]
    }
    return create_model(name, __base__=FrozenModel, **keys)


def struct_table(
    kind: type[F], ranges: Mapping[str, Range], check: Callable[[F], None] = lambda _: None
) -> Any:
    """Return a type for pydantic fields that validates a table and converts it to a msgspec struct.

    Args:
        kind: The type of the struct. Its fields define the defaults.
        ranges: The allowed values of each key.
        check: Called with the struct. Raises ValueError if values contradict each other.
    """
    defaults = {field.name: field.default for field in fields(kind) if field.default is not NODEFAULT}

    def decode_value(table: object, decode: Callable[[object], Any]) -> F:  # Any: tables differ in type
        if isinstance(table, kind):
            return table
        made = kind(**dict(decode(table)))
        check(made)
        return made

    return Annotated[table_model(kind.__name__, ranges, defaults), WrapValidator(decode_value)]
