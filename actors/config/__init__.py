"""Configuration: `actors.toml` and the environment, to typed and frozen settings.

    [backends.claude]
    kind = "anthropic"                  # or any other of `actors.config.providers`
    model = "claude-sonnet-5"
    auth = "ANTHROPIC_API_KEY"          # the variable that holds the key, never the key
    account = "team"                    # a label, part of the binding
    base_url = "https://api.anthropic.com"
    limits = { idle_timeout = 30, concurrency = 16 }
    reasoning = { mode = "adaptive", effort = "high" }

    [backends.work]
    kind = "vertex"
    model = "gemini-3-pro"
    base_url = "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4/publishers/google"
    auth = { command = ["gcloud", "auth", "print-access-token"], lifetime = 3000 }

    [pools.main]
    members = ["claude", "openai:gpt-5.2"]
    policy = "failover"                 # or "round_robin", "manual"
    cooldown = 60

    [limits]
    max_rounds = 25

The environment is an argument: nothing here reads it. Keys are looked up when a target is resolved, so a
rotated key is seen, and they are `SecretStr` from that moment on. What pydantic says of a wrong file is
rewritten to one line with the place and without the value, because a value may be a key in the wrong line.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path

from pydantic import SecretStr, ValidationError

from actors.config.backend import (
    Aws,
    AwsKeys,
    Backend,
    Credential,
    Key,
    ResolvedPool,
    TokenCommand,
    split_query,
)
from actors.config.complaints import clip, describe, hint, location_of, syntax
from actors.config.contradictions import contradictions
from actors.config.dialects import custom_dialect
from actors.config.environment import Noting, guard
from actors.config.fields import HeaderVariable, base_url, header_value, label
from actors.config.models import matching_overrides
from actors.config.providers import PROVIDERS, Kind, OwnHost, Provider, aws_region
from actors.config.settings import (
    Auth,
    BackendLimits,
    BackendSettings,
    FileSettings,
    JournalSettings,
    McpSettings,
    PoolSettings,
    ReasoningSettings,
    RuntimeLimits,
    TenantSettings,
)
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.narrow import for_model
from actors.core.dialects.profiles import PROFILES, dialect
from actors.core.models.facts import Overrides
from actors.core.render import RenderTarget
from actors.core.settings.spending import Prices
from actors.core.settings.values import RequestSettings, ToolChoiceSetting
from actors.core.values.identity import Binding
from actors.errors import ConfigError, MissingKey, UnknownTarget

__all__ = [
    "PROVIDERS",
    "Auth",
    "Aws",
    "AwsKeys",
    "Backend",
    "BackendLimits",
    "BackendSettings",
    "Config",
    "Credential",
    "FileSettings",
    "HeaderVariable",
    "JournalSettings",
    "Key",
    "Kind",
    "McpSettings",
    "OwnHost",
    "PoolSettings",
    "Prices",
    "Provider",
    "ReasoningSettings",
    "RequestSettings",
    "ResolvedPool",
    "RuntimeLimits",
    "TenantSettings",
    "TokenCommand",
    "ToolChoiceSetting",
    "load",
]

MAX_FILE_BYTES = 1024 * 1024


MAX_CACHED = 256
"""Maximum resolved backends in the cache."""


_NOTHING_READ: Mapping[str, str | None] = {}


@dataclass(frozen=True)
class Config:
    """The settings of a runtime, and the environment that contains its keys.

    Args:
        settings: The contents of the file.
        environ: Read at each `resolve`; never shown.
        source: Name of the file for messages; None without a file.
    """

    settings: FileSettings
    environ: Mapping[str, str] = field(repr=False, compare=False)
    source: str | None = None
    _dialects: Mapping[str, Dialect] = field(init=False, repr=False, compare=False)
    _resolved: dict[str, tuple[Backend, Mapping[str, str | None]]] = field(
        init=False,
        repr=False,
        compare=False,
        default_factory=dict[str, tuple[Backend, Mapping[str, str | None]]],
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "environ", guard(self.environ))
        own = {name: custom_dialect(name, table) for name, table in self.settings.dialects.items()}
        object.__setattr__(self, "_dialects", own)

    def dialect(self, name: str) -> Dialect:
        """Return the custom or built-in profile with this name.

        Raises:
            UnknownTarget: There is no profile with this name.
        """
        return self._dialects.get(name) or dialect(name)

    def dialect_of(self, binding: Binding) -> Dialect:
        """Return the profile of a binding, narrowed to the binding's model (`[models]` included).

        Raises:
            UnknownTarget: There is no profile with the binding's dialect.
        """
        return for_model(self.dialect(binding.dialect), binding.model, self._model_overrides(binding))

    def _model_overrides(self, binding: Binding) -> tuple[Overrides, ...]:
        """Return the `[models]` tables that match a binding, the least specific first."""
        settings = self.settings.backends.get(binding.backend)
        names = {binding.backend} if settings is None else {binding.backend, settings.kind}
        return matching_overrides(self.settings.models, names, binding.model)

    def _reader(self, binding: Binding) -> RenderTarget:
        """Return the render target of a binding: its treatment of reasoning, and whether thinking has a budget."""
        settings = self.settings.backends.get(binding.backend)
        if settings is None:
            return RenderTarget(binding)
        return RenderTarget(binding, settings.thinking, self._has_budget(binding, settings.reasoning.mode))

    def _has_budget(self, binding: Binding, mode: str) -> bool:
        """Return True if requests limit thinking by a budget: by configuration, or because the model has no other
        mode."""
        modes = self.dialect_of(binding).model.thinking
        return mode == "manual" or (mode == "adaptive" and "adaptive" not in modes and "enabled" in modes)

    @property
    def limits(self) -> RuntimeLimits:
        """The `[limits]` table."""
        return self.settings.limits

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the configured backends and pools, in the order of the file."""
        return (*self.settings.backends, *self.settings.pools)

    def resolve(self, target: str) -> Backend | ResolvedPool:
        """Return the backend or pool of a target: a configured name, or `provider:model`.

        Raises:
            UnknownTarget: The target does not exist.
            MissingKey: The environment variable for the key is not set.
            ConfigError: An environment variable has an invalid value.
        """
        if not isinstance(target, str):
            raise UnknownTarget(
                f"A target is a string, such as a backend's name, not a value of type {type(target).__name__}"
            )
        if (pool := self.settings.pools.get(target)) is not None:
            members = tuple(self.backend(member) for member in pool.members)
            return ResolvedPool(
                name=target,
                members=members,
                policy=pool.policy,
                cooldown=pool.cooldown,
                failover_after_output=pool.failover_after_output,
                failover_on_refusal=pool.failover_on_refusal,
            )
        return self.backend(target)

    def backend(self, target: str) -> Backend:
        """Return the backend of a target. Raises the errors of `resolve`, and UnknownTarget for a pool.

        The result is cached until an environment variable that it depends on changes.
        """
        backend, seen = self._resolved.get(target, (None, _NOTHING_READ))
        if backend is None or [*map(self.environ.get, seen)] != [*seen.values()]:
            if len(self._resolved) >= MAX_CACHED:
                self._resolved.clear()
            noting = Noting(self.environ)
            backend = replace(self, environ=noting)._backend_of(target)
            self._resolved[target] = backend, noting.seen
        return backend

    def speaking(self, backend: Backend, name: str) -> Backend:
        """Return a backend that continues a turn which began in the dialect `name`.

        Some kinds have two dialects: that of `openai` depends on the base URL, which may have changed since.

        Raises:
            ConfigError: No dialect of the backend's kind has the same wire family, or the dialect no longer exists.
        """
        if backend.dialect == name:
            return backend
        spoken = {self.dialect(each).family for each in (*PROVIDERS[backend.kind].dialects, backend.dialect)}
        known = self._dialects.get(name) or PROFILES.get(name)
        if known is None or known.family not in spoken:
            raise ConfigError(
                f"The open turn began in dialect {name!r}, and backend {backend.name!r} speaks {backend.dialect!r} "
                f"at {backend.endpoint}; configure the backend as it was, or cancel the turn"
            )
        return backend.model_copy(update={"dialect": name})

    def price_list(self, kind: str) -> str:
        """Return the provider id in `genai-prices` for a kind of backend; empty if there is none."""
        return PROVIDERS[kind].price_list if kind in PROVIDERS else ""

    def credential_source(self, binding: Binding) -> str:
        """Return a description of the source of a binding's credential, such as the variable that contains the key."""
        settings = self.settings.backends.get(binding.backend)
        auth = None if settings is None else settings.auth
        if auth is not None and auth.command is not None:
            return "the output of its token command"
        if auth is not None and auth.aws is not None:
            return "the AWS keys"
        named = None if auth is None else auth.bearer or auth.key
        kind = binding.backend if settings is None else settings.kind
        usual = next((each.key_variable for name, each in PROVIDERS.items() if name == kind), "")
        if named is None and (not usual or (settings is not None and settings.base_url is not None)):
            return "requests without a key (auth, or --auth, names the variable that holds one)"
        return f"the key in {named or usual}"

    def check_backend(self, target: str) -> None:
        """Raise UnknownTarget if no backend has this name. Its key may be missing."""
        if target not in self.settings.backends:
            self._kind(target)

    def _backend_of(self, target: str) -> Backend:
        if (settings := self.settings.backends.get(target)) is not None:
            return self._configured_backend(target, settings)
        return self._provider_backend(self._kind(target), target.partition(":")[2])

    def _kind(self, target: str) -> Kind:
        name, colon, _ = target.partition(":")
        if not colon:
            raise UnknownTarget(self._no_such(target))
        if name in PROVIDERS:
            return name
        raise UnknownTarget(f"No provider {clip(name)}; {hint(name, PROVIDERS, 'providers')}")

    def _configured_backend(self, name: str, settings: BackendSettings) -> Backend:
        provider = PROVIDERS[settings.kind]
        if not (settings.base_url or provider.endpoint):
            raise ConfigError(f"Backend {name!r} of kind {settings.kind!r} needs a base_url")
        endpoint, query = split_query(settings.base_url or provider.endpoint)
        return Backend(
            name=name,
            kind=settings.kind,
            dialect=self.dialect(settings.dialect or provider.dialect_at(endpoint)).name,
            model=settings.model,
            endpoint=endpoint,
            query=query,
            account=settings.account or "",
            upstream=settings.upstream or "",
            credential=self._credential(f"Backend {name!r}", settings, provider),
            headers=tuple(self._headers(f"Backend {name!r}", settings)),
            thinking=settings.thinking,
            reasoning=settings.reasoning,
            request=settings.request,
            cache=settings.cache,
            stream=settings.stream,
            limits=settings.limits,
        )

    def _credential(self, owner: str, settings: BackendSettings, provider: Provider) -> Credential | None:
        auth = settings.auth
        if auth is None:
            # The usual variable's key belongs to the provider itself, not to whatever base_url names.
            is_its_own = settings.base_url is None and provider.key_variable
            return self._default(owner, provider, provider.endpoint) if is_its_own else None
        if auth.command is not None:
            return TokenCommand(auth.command, auth.lifetime)
        if auth.aws is not None:
            return self._aws(owner, auth.aws)
        if auth.bearer is not None:
            return Key("authorization", self._secret(owner, auth.bearer))
        return Key(provider.header, self._secret(owner, auth.key or ""))

    def _headers(self, owner: str, settings: BackendSettings) -> Iterable[tuple[str, SecretStr]]:
        for name, value in settings.headers.items():
            if isinstance(value, HeaderVariable):
                value = self._header_value(owner, name, value.variable)
            yield name, value

    def _header_value(self, owner: str, header: str, variable: str) -> SecretStr:
        """Return the header value in an environment variable."""
        if not (value := self.environ.get(variable, "").strip()):
            raise MissingKey(
                f"{owner} needs the header {header!r} in the environment variable {variable}; it is not set"
            )
        try:
            return SecretStr(header_value(value))
        except ValueError:
            raise ConfigError(
                f"Environment variable {variable} does not contain a valid header value; "
                "use printable ASCII without surrounding spaces"
            ) from None

    def _aws(self, owner: str, region: str) -> Aws:
        if not self.environ.get("AWS_ACCESS_KEY_ID", "").strip():
            return Aws(region, None)
        token = self.environ.get("AWS_SESSION_TOKEN", "").strip()
        access_key = self._secret(owner, "AWS_ACCESS_KEY_ID").get_secret_value()
        secret_key = self._secret(owner, "AWS_SECRET_ACCESS_KEY")
        return Aws(region, AwsKeys(access_key, secret_key, SecretStr(token) if token else None))

    def _default(self, owner: str, provider: Provider, endpoint: str) -> Credential | None:
        """Return the credential for a provider's own endpoint without an `auth` setting: its key, or an AWS
        signature."""
        key_is_there = bool(self.environ.get(provider.key_variable, "").strip())
        if not key_is_there and (region := aws_region(endpoint)):
            return self._aws(owner, region)
        return Key(provider.header, self._secret(owner, provider.key_variable))

    def _provider_backend(self, kind: Kind, model: str) -> Backend:
        provider = PROVIDERS[kind]
        try:
            label(model)
        except ValueError:
            raise UnknownTarget(
                f"Target {clip(f'{kind}:{model}')} names no model; use {kind}:MODEL"
            ) from None
        endpoint, query = split_query(self._url(kind, provider))
        return Backend(
            name=kind,
            kind=kind,
            dialect=provider.dialect_at(endpoint),
            model=model,
            endpoint=endpoint,
            query=query,
            credential=self._usual_key(kind, provider),
        )

    def _usual_key(self, kind: Kind, provider: Provider) -> Credential | None:
        """Return the key in the provider's usual variable; a local server needs none."""
        endpoint = self._url(kind, provider)
        is_local = endpoint != provider.endpoint and provider.endpoint != ""
        if not provider.key_variable or (is_local and not self.environ.get(provider.key_variable)):
            return None
        return self._default(f"Provider {kind!r}", provider, endpoint)

    def _url(self, kind: Kind, provider: Provider) -> str:
        if not (url := self.environ.get(provider.url_variable, "").strip()):
            if not provider.endpoint:
                raise ConfigError(
                    f"Provider {kind!r} has no address of its own; set {provider.url_variable}, or use a base_url"
                )
            return provider.endpoint
        try:
            return base_url(url)
        except ValueError as error:
            raise ConfigError(f"Environment variable {provider.url_variable} {error}") from None

    def _secret(self, owner: str, variable: str) -> SecretStr:
        key = self.environ.get(variable, "").strip()
        if not key:
            raise MissingKey(f"{owner} needs a key in the environment variable {variable}; it is not set")
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ConfigError(
                f"Environment variable {variable} contains characters that are not allowed in a key; set it again"
            )
        return SecretStr(key)

    def _no_such(self, name: str) -> str:
        if name in PROVIDERS:
            return f"Target {name!r} names a provider but no model; use {name}:MODEL"
        if self.source is None:
            return f"No backend {clip(name)}, there is no actors.toml; use PROVIDER:MODEL, as openai:gpt-5.2"
        return f"No backend {clip(name)} in {self.source}; {hint(name, self.targets, 'it has')}"


def load(path: str | PathLike[str] | None, environ: Mapping[str, str]) -> Config:
    """Read a configuration file; with None, return a configuration without a file.

    Args:
        path: An `actors.toml`.
        environ: Source of keys and other variables, read now and later.

    Raises:
        ConfigError: The file cannot be read, is not TOML, or has an invalid setting. The message is one line with the
            place, without the value.
    """
    if path is None:
        return Config(FileSettings(), environ)
    source = Path(path).name
    text = _text(Path(path))
    try:
        settings = FileSettings.model_validate(tomllib.loads(text))
    except RecursionError:
        raise ConfigError(f"{source} is not valid TOML: it is nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source} is not valid TOML: {syntax(error)}") from None
    except ValidationError as error:
        raise ConfigError(describe(error, source, text)) from None
    for place, problem in contradictions(settings):
        raise ConfigError(f"{source}{location_of(text, place)}: {problem}")
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
        return data.decode("utf-8-sig")  # some editors begin a file with a byte order mark
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path.name}, line {line}: not UTF-8") from None
