"""Configuration: `actors.toml` and the environment, to typed and frozen settings.

    [backends.claude]
    kind = "anthropic"                  # or "openai"
    model = "claude-sonnet-5"
    auth = "ANTHROPIC_API_KEY"          # the variable that holds the key, never the key
    account = "team"                    # a label, part of the binding
    base_url = "https://api.anthropic.com"
    limits = { idle = 30, concurrency = 16 }

    [pools.main]
    members = ["claude", "openai:gpt-5.2"]
    policy = "failover"                 # or "round_robin", "manual"
    cooldown = 60

    [limits]
    rounds = 25

The environment is an argument: nothing here reads it. Keys are looked up when a target is resolved, so a
rotated key is seen, and they are `SecretStr` from that moment on. What pydantic says of a wrong file is
rewritten to one line with the place and without the value, because a value may be a key in the wrong line.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError

from actors.core.dialect import dialect
from actors.core.identity import Binding
from actors.errors import ConfigError, MissingKey, UnknownTarget

Kind: TypeAlias = Literal["openai", "anthropic"]
Policy: TypeAlias = Literal["manual", "round_robin", "failover"]
Thinking: TypeAlias = Literal["native", "drop", "text"]

MAX_FILE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a kind of backend is found when nothing else is said."""

    dialect: str
    endpoint: str
    key_variable: str
    url_variable: str


PROVIDERS: Mapping[Kind, Provider] = {
    "openai": Provider("openai_chat", "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "anthropic": Provider(
        "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
    ),
}

# --- what the values must look like; no message repeats the value ------------------------------------

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,127}")


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError("takes the name of an environment variable in capitals, not the key itself")
    return name


def _label(text: str) -> str:
    if not text or len(text) > 200 or not text.isprintable():
        raise ValueError("takes 1 to 200 printable characters")
    return text


def _endpoint(url: str) -> str:
    """Return `url` without its last slash. It may hold no credentials: endpoints are shown and logged."""
    if not _is_http(url):
        raise ValueError("takes an http or https URL, as https://host/v1")
    if "@" in url or "?" in url or "#" in url:
        raise ValueError("takes a URL without user, password, query or fragment; keys go in auth")
    return url.rstrip("/")


def _is_http(url: str) -> bool:
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port out of range, an unclosed bracket
        return False


def _dialect(name: str) -> str:
    try:
        return dialect(name).name
    except UnknownTarget as error:
        raise ValueError(str(error)) from None


Variable = Annotated[str, AfterValidator(_variable)]
Label = Annotated[str, AfterValidator(_label)]
Endpoint = Annotated[str, AfterValidator(_endpoint)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class BackendLimits(_Settings):
    """What one backend may take: times in seconds, requests at once, attempts for one round.

    Args:
        connect: Until the connection stands.
        first_byte: From the request's last byte to the answer's first.
        idle: Between two pieces of a stream.
        total: For one attempt as a whole; None has no end of its own.
        concurrency: Requests in flight; more wait.
        attempts: Of one round, the first included.
    """

    connect: Seconds = 10.0
    first_byte: Seconds = 120.0
    idle: Seconds = 60.0
    total: Seconds | None = 900.0
    concurrency: Count = 64
    attempts: Annotated[int, Field(ge=1, le=20)] = 4


class RuntimeLimits(_Settings):
    """What one session may take.

    Args:
        rounds: Requests of one turn before the model is asked for a final text with its tools off.
        corrections: Times in a turn that the model may correct invalid arguments.
        waiting_asks: Asks that wait behind the one in flight; one more is refused as busy.
        tool_threads: Threads for tools that are not async.
    """

    rounds: Count = 25
    corrections: Annotated[int, Field(ge=0)] = 3
    waiting_asks: Annotated[int, Field(ge=0)] = 8
    tool_threads: Count = 32


class BackendSettings(_Settings):
    """One `[backends.NAME]` table. `base_url` without `auth` means that no key is sent.

    `stream = false` is for a backend that cannot stream: its whole answers give the same events.
    """

    kind: Kind
    model: Label
    base_url: Endpoint | None = None
    auth: Variable | None = None
    account: Label | None = None
    max_tokens: Count | None = None
    thinking: Thinking = "native"
    stream: bool = True
    dialect: Annotated[str, AfterValidator(_dialect)] | None = None
    limits: BackendLimits = BackendLimits()


class PoolSettings(_Settings):
    """One `[pools.NAME]` table. Members are backends or `provider:model`, in order; cooldown in seconds.

    `failover_after_output` lets another member continue an answer of which some was shown already.
    """

    members: Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
    policy: Policy = "failover"
    cooldown: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 60.0
    failover_after_output: bool = False


class FileSettings(_Settings):
    """A whole `actors.toml`."""

    backends: dict[str, BackendSettings] = {}
    pools: dict[str, PoolSettings] = {}
    limits: RuntimeLimits = RuntimeLimits()


# --- what a target resolves to -----------------------------------------------------------------------


class Backend(_Settings):
    """A backend that can be talked to.

    Args:
        endpoint: Base URL; the adapter's path is put behind it.
        account: Label of the account, part of the binding; empty if none was given.
        key: For this endpoint and no other; None if it takes none.
        max_tokens: Most tokens of one answer; None leaves it to the dialect.
        stream: Whether answers are asked for as streams.
        thinking: What becomes of reasoning blocks: kept where the dialect can, dropped, or sent as text.
    """

    name: str
    kind: Kind
    dialect: str
    model: str
    endpoint: str
    account: str = ""
    key: SecretStr | None = None
    max_tokens: int | None = None
    thinking: Thinking = "native"
    stream: bool = True
    limits: BackendLimits = BackendLimits()

    @property
    def binding(self) -> Binding:
        """What a switch to this backend binds a session to. No secret is in it."""
        return Binding(self.name, self.dialect, self.endpoint, self.account, self.model)


class Pool(_Settings):
    """Backends that stand in for each other, in order. `cooldown` is in seconds."""

    name: str
    members: tuple[Backend, ...]
    policy: Policy
    cooldown: float
    failover_after_output: bool = False


@dataclass(frozen=True)
class Config:
    """The settings of a runtime, and the environment its keys are in.

    Args:
        settings: What the file says.
        environ: Looked up at each `resolve`; never shown.
        source: Name of the file, for messages; None if there is none.
    """

    settings: FileSettings
    environ: Mapping[str, str] = field(repr=False, compare=False)
    source: str | None = None

    @property
    def limits(self) -> RuntimeLimits:
        """The `[limits]` table."""
        return self.settings.limits

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the configured backends and pools, in the order of the file."""
        return (*self.settings.backends, *self.settings.pools)

    def resolve(self, target: str) -> Backend | Pool:
        """Return the backend or pool a target names: a configured name, or `provider:model`.

        Raises:
            UnknownTarget: Nothing has that name.
            MissingKey: The variable that should hold the key is not set.
            ConfigError: A variable holds something that cannot be used.
        """
        if (pool := self.settings.pools.get(target)) is not None:
            members = tuple(self.backend(member) for member in pool.members)
            return Pool(
                name=target,
                members=members,
                policy=pool.policy,
                cooldown=pool.cooldown,
                failover_after_output=pool.failover_after_output,
            )
        return self.backend(target)

    def backend(self, target: str) -> Backend:
        """Return the backend a target names. Raises as `resolve` does, and for a pool UnknownTarget."""
        if (settings := self.settings.backends.get(target)) is not None:
            return self._configured(target, settings)
        name, colon, model = target.partition(":")
        if not colon:
            raise UnknownTarget(self._no_such(target))
        for kind in PROVIDERS:
            if kind == name:
                return self._provided(kind, model)
        raise UnknownTarget(f"No provider {_clip(name)}; {_hint(name, PROVIDERS, 'providers')}")

    def _configured(self, name: str, settings: BackendSettings) -> Backend:
        provider = PROVIDERS[settings.kind]
        # The usual variable's key belongs to the provider itself, not to whatever base_url names.
        variable = settings.auth or (provider.key_variable if settings.base_url is None else None)
        return Backend(
            name=name,
            kind=settings.kind,
            dialect=settings.dialect or provider.dialect,
            model=settings.model,
            endpoint=settings.base_url or provider.endpoint,
            account=settings.account or "",
            key=None if variable is None else self._key(f"Backend {name!r}", variable),
            max_tokens=settings.max_tokens,
            thinking=settings.thinking,
            stream=settings.stream,
            limits=settings.limits,
        )

    def _provided(self, kind: Kind, model: str) -> Backend:
        provider = PROVIDERS[kind]
        try:
            _label(model)
        except ValueError:
            raise UnknownTarget(
                f"Target {_clip(f'{kind}:{model}')} names no model; use {kind}:MODEL"
            ) from None
        endpoint = self._url(provider)
        is_local = endpoint != provider.endpoint and not self.environ.get(provider.key_variable)
        key = None if is_local else self._key(f"Provider {kind!r}", provider.key_variable)
        return Backend(
            name=kind, kind=kind, dialect=provider.dialect, model=model, endpoint=endpoint, key=key
        )

    def _url(self, provider: Provider) -> str:
        if not (url := self.environ.get(provider.url_variable, "").strip()):
            return provider.endpoint
        try:
            return _endpoint(url)
        except ValueError as error:
            raise ConfigError(f"Environment variable {provider.url_variable} {error}") from None

    def _key(self, owner: str, variable: str) -> SecretStr:
        key = self.environ.get(variable, "").strip()
        if not key:
            raise MissingKey(f"{owner} needs a key in the environment variable {variable}; it is not set")
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ConfigError(
                f"Environment variable {variable} holds characters no key can have; set it again"
            )
        return SecretStr(key)

    def _no_such(self, name: str) -> str:
        if name in PROVIDERS:
            return f"Target {name!r} names a provider but no model; use {name}:MODEL"
        if self.source is None:
            return f"No backend {_clip(name)}, there is no actors.toml; use PROVIDER:MODEL, as openai:gpt-5.2"
        return f"No backend {_clip(name)} in {self.source}; {_hint(name, self.targets, 'it has')}"


def load(path: str | Path | None, environ: Mapping[str, str]) -> Config:
    """Read a configuration file; None is a configuration without one.

    Args:
        path: An `actors.toml`.
        environ: Where keys and the usual variables are looked up, now or later.

    Raises:
        ConfigError: The file cannot be read, is no TOML, or says something it cannot say. One line, with the
            place, without the value.
    """
    if path is None:
        return Config(FileSettings(), environ)
    source = Path(path).name
    text = _text(Path(path))
    try:
        settings = FileSettings.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source} is not valid TOML: {error}") from None
    except ValidationError as error:
        raise ConfigError(_explained(error, source, text)) from None
    for place, problem in _contradictions(settings):
        raise ConfigError(f"{source}{_at(text, place)}: {problem}")
    return Config(settings, environ, source)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        raise ConfigError(f"Cannot read {path}: {reason}") from None
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"Cannot read {path}: it is larger than {MAX_FILE_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path.name}, line {line}: not UTF-8") from None


def _contradictions(settings: FileSettings) -> Iterable[tuple[tuple[str, ...], str]]:
    """Yield what no single value shows: names that clash, members that do not exist."""
    for table, names in (("backends", settings.backends), ("pools", settings.pools)):
        for name in names:
            if not _NAME.fullmatch(name):
                yield (table, name), f"{_clip(name)} is no name; use letters, digits, '_', '-' and '.'"
    for name, pool in settings.pools.items():
        place = ("pools", name, "members")
        if name in settings.backends:
            yield ("pools", name), f"{name!r} is the name of a backend too; rename the pool"
        for member in pool.members:
            if member not in settings.backends and member.partition(":")[0] not in PROVIDERS:
                yield place, f"no backend {_clip(member)}; {_hint(member, settings.backends, 'there are')}"
        if len(set(pool.members)) < len(pool.members):
            yield place, "a member is named twice"


def _clip(name: str) -> str:
    return repr(name[:80])


def _hint(name: str, known: Iterable[str], label: str) -> str:
    names = list(known)
    if close := get_close_matches(name, names, n=1):
        return f"did you mean {close[0]!r}?"
    return f"{label}: {', '.join(names[:20]) or 'none'}"


# --- messages without values -------------------------------------------------------------------------


def _explained(error: ValidationError, source: str, text: str) -> str:
    """Return one line for the first fault. Inputs are left out: a missing key's error holds its siblings."""
    fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = tuple(str(part) for part in fault["loc"] if not isinstance(part, int))
    table, key = ".".join(place[:-1]), place[-1] if place else ""
    where = f"{source}{_at(text, place)}: "
    owner = f"[{table}]" if table else "the file"
    if fault["type"] == "extra_forbidden":
        return f"{where}{owner} has no key {_clip(key)}; {_hint(key, _known(place[:-1]), 'keys')}"
    if fault["type"] == "missing":
        return f"{where}{owner} lacks the key {key!r}"
    reason = fault["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return f"{where}{owner} {key}: {' '.join(reason.split())[:300]}"


_TABLES: Mapping[tuple[str, int], type[_Settings]] = {
    ("backends", 2): BackendSettings,
    ("backends", 3): BackendLimits,
    ("pools", 2): PoolSettings,
    ("limits", 1): RuntimeLimits,
}


def _known(table: Sequence[str]) -> Iterable[str]:
    model = _TABLES.get((table[0], len(table))) if table else FileSettings
    return model.model_fields if model else ()


_HEADER = re.compile(r"\s*\[\[?(?P<key>[^\[\]]+)\]\]?\s*(#.*)?")
_ENTRY = re.compile(r"(?P<indent>\s*)(?P<key>[^=#\[\]{}]+?)\s*=.*")


def _at(text: str, place: Sequence[str]) -> str:
    """Return `, line 3, column 1` for the key or table at `place`, or as near as the text shows it."""
    table: tuple[str, ...] = ()
    best, found = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = here = _dotted(header["key"])
            column = line.index("[") + 1
        elif entry := _ENTRY.fullmatch(line):
            here = (*table, *_dotted(entry["key"]))
            column = len(entry["indent"]) + 1
        else:
            continue
        depth = min(len(here), len(place))
        if best < depth and here[:depth] == tuple(place[:depth]):
            best, found = depth, f", line {number}, column {column}"
    return found


def _dotted(key: str) -> tuple[str, ...]:
    """Return the parts of a TOML key, as TOML reads them."""
    try:
        value: Any = tomllib.loads(f"{key} = 0")  # Any: nested tables
    except tomllib.TOMLDecodeError:
        return ()
    parts = []
    while isinstance(value, dict) and value:
        name, value = next(iter(value.items()))
        parts.append(name)
    return tuple(parts)
