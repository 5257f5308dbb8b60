"""Read `actors.toml` and the environment as typed, immutable settings.

    [backends.claude]
    kind = "anthropic"                  # or any other key of `PROVIDERS`
    model = "claude-sonnet-5"
    auth = "ANTHROPIC_API_KEY"          # the environment variable with the key, never the key itself
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

The environment is an argument; this package never reads the process's environment. Keys are looked up when a target is
resolved, so a rotated key takes effect, and are stored as `SecretStr`. A pydantic validation error becomes one line,
which says where the error is but does not contain the value, because the value may be a misplaced key.
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
    RecordingEnvironment,
    ResolvedPool,
    TokenCommand,
    guard,
    split_query,
)
from actors.config.complaints import hint, location_of, quote_clipped, syntax_message, validation_message
from actors.config.contradictions import contradictions
from actors.config.dialects import custom_dialect, matching_overrides
from actors.config.fields import HeaderVariable, check_header_value, check_label, normalize_base_url
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
"""Maximum number of resolved backends in the cache."""


_NOTHING_READ: Mapping[str, str | None] = {}
"""The environment variables that a backend depends on before it is resolved: none."""


@dataclass(frozen=True)
class Config:
    """The settings of a runtime, and the environment that contains its keys.

    Args:
        settings: The contents of the file.
        environ: The environment variables. They are read at each `resolve` and never shown.
        source: Name of the file for error messages; None if there is no file.
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
        """Return the custom or built-in dialect with this name. Custom dialects are tables of the configuration file.

        Raises:
            UnknownTarget: There is no dialect with this name.
        """
        return self._dialects.get(name) or dialect(name)

    def dialect_of(self, binding: Binding) -> Dialect:
        """Return the dialect of a binding, restricted to the features of the binding's model.

        `[models]` tables override the built-in facts about the model.

        Raises:
            UnknownTarget: The dialect of the binding does not exist.
        """
        return for_model(self.dialect(binding.dialect), binding.model, self._model_overrides(binding))

    def _model_overrides(self, binding: Binding) -> tuple[Overrides, ...]:
        """Return the `[models]` tables that match a binding, the least specific first."""
        settings = self.settings.backends.get(binding.backend)
        names = {binding.backend} if settings is None else {binding.backend, settings.kind}
        return matching_overrides(self.settings.models, names, binding.model)

    def _render_target(self, binding: Binding) -> RenderTarget:
        """Return how to render for a binding: the form of earlier reasoning, and whether thinking has a budget."""
        settings = self.settings.backends.get(binding.backend)
        if settings is None:
            return RenderTarget(binding)
        return RenderTarget(
            binding, settings.thinking, self._has_thinking_budget(binding, settings.reasoning.mode)
        )

    def _has_thinking_budget(self, binding: Binding, mode: str) -> bool:
        """Return True if requests limit thinking by a number of tokens.

        Requests have such a limit if the mode is `manual`, or if the model supports no other mode.
        """
        modes = self.dialect_of(binding).model.thinking
        return mode == "manual" or (mode == "adaptive" and "adaptive" not in modes and "enabled" in modes)

    @property
    def limits(self) -> RuntimeLimits:
        """The `[limits]` table of the file, with defaults."""
        return self.settings.limits

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the configured backends, followed by those of the pools, in the order of the file."""
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
        """Return the backend of a target. Raises the same errors as `resolve`, and UnknownTarget for a pool.

        The result is cached until one of the environment variables that it depends on changes.
        """
        backend, seen = self._resolved.get(target, (None, _NOTHING_READ))
        if backend is None or [*map(self.environ.get, seen)] != [*seen.values()]:
            if len(self._resolved) >= MAX_CACHED:
                self._resolved.clear()
            recording = RecordingEnvironment(self.environ)
            backend = replace(self, environ=recording)._resolve_backend(target)
            self._resolved[target] = backend, recording.seen
        return backend

    def with_dialect(self, backend: Backend, name: str) -> Backend:
        """Return a copy of a backend that uses the dialect `name`, to continue a turn that began in this dialect.

        The backend may have another dialect now. For example, the dialect of the kind `openai` depends on the base URL,
        which may have changed since the turn began.

        Raises:
            ConfigError: No dialect of the backend's kind has the same wire family, or the dialect no longer exists.
        """
        if backend.dialect == name:
            return backend
        spoken = {self.dialect(each).family for each in (*PROVIDERS[backend.kind].dialects, backend.dialect)}
        known = self._dialects.get(name) or PROFILES.get(name)
        if known is None or known.family not in spoken:
            raise ConfigError(
                f"The open turn began in dialect {name!r}, but backend {backend.name!r} now has dialect "
                f"{backend.dialect!r} at {backend.endpoint}; restore the backend's earlier configuration, "
                "or cancel the turn"
            )
        return backend.model_copy(update={"dialect": name})

    def price_list(self, kind: str) -> str:
        """Return a kind's id in the package `genai-prices`; empty if the package has no prices for the kind."""
        return PROVIDERS[kind].price_list if kind in PROVIDERS else ""

    def credential_source(self, binding: Binding) -> str:
        """Describe the source of a binding's credential for error messages, such as `the key in OPENAI_API_KEY`."""
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
            return "requests without a key (set auth, or --auth, to the name of a variable with the key)"
        return f"the key in {named or usual}"

    def check_backend(self, target: str) -> None:
        """Raise UnknownTarget if a target is neither a configured backend nor `provider:model`.

        Keys are not checked.
        """
        if target not in self.settings.backends:
            self._provider_kind(target)

    def _resolve_backend(self, target: str) -> Backend:
        if (settings := self.settings.backends.get(target)) is not None:
            return self._configured_backend(target, settings)
        return self._provider_backend(self._provider_kind(target), target.partition(":")[2])

    def _provider_kind(self, target: str) -> Kind:
        name, colon, _ = target.partition(":")
        if not colon:
            raise UnknownTarget(self._unknown_target_message(target))
        if name in PROVIDERS:
            return name
        raise UnknownTarget(f"No provider {quote_clipped(name)}; {hint(name, PROVIDERS, 'providers')}")

    def _configured_backend(self, name: str, settings: BackendSettings) -> Backend:
        provider = PROVIDERS[settings.kind]
        if not (settings.base_url or provider.endpoint):
            raise ConfigError(
                f"Backend {name!r} of kind {settings.kind!r} needs a base_url, because this kind has no default address"
            )
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
            headers=tuple(self._header_values(f"Backend {name!r}", settings)),
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
            # The key in the default variable must be sent only to the provider's own endpoint, never to a `base_url`.
            is_its_own = settings.base_url is None and provider.key_variable
            return self._default_credential(owner, provider, provider.endpoint) if is_its_own else None
        if auth.command is not None:
            return TokenCommand(auth.command, auth.lifetime)
        if auth.aws is not None:
            return self._aws_credential(owner, auth.aws)
        if auth.bearer is not None:
            return Key("authorization", self._read_secret(owner, auth.bearer))
        return Key(provider.header, self._read_secret(owner, auth.key or ""))

    def _header_values(self, owner: str, settings: BackendSettings) -> Iterable[tuple[str, SecretStr]]:
        for name, value in settings.headers.items():
            if isinstance(value, HeaderVariable):
                value = self._read_header_value(owner, name, value.variable)
            yield name, value

    def _read_header_value(self, owner: str, header: str, variable: str) -> SecretStr:
        """Return the value of a request header from an environment variable. `owner` names the backend in errors."""
        if not (value := self.environ.get(variable, "").strip()):
            raise MissingKey(
                f"{owner} needs the header {header!r} in the environment variable {variable}; it is not set"
            )
        try:
            return SecretStr(check_header_value(value))
        except ValueError:
            raise ConfigError(
                f"Environment variable {variable} does not contain a valid header value; "
                "use printable ASCII without surrounding spaces"
            ) from None

    def _aws_credential(self, owner: str, region: str) -> Aws:
        if not self.environ.get("AWS_ACCESS_KEY_ID", "").strip():
            return Aws(region, None)
        token = self.environ.get("AWS_SESSION_TOKEN", "").strip()
        access_key = self._read_secret(owner, "AWS_ACCESS_KEY_ID").get_secret_value()
        secret_key = self._read_secret(owner, "AWS_SECRET_ACCESS_KEY")
        return Aws(region, AwsKeys(access_key, secret_key, SecretStr(token) if token else None))

    def _default_credential(self, owner: str, provider: Provider, endpoint: str) -> Credential | None:
        """Return the credential for a provider's own endpoint if no `auth` is configured.

        The credential is the provider's key. If no key is set and the endpoint belongs to AWS, requests are signed.
        """
        key_is_there = bool(self.environ.get(provider.key_variable, "").strip())
        if not key_is_there and (region := aws_region(endpoint)):
            return self._aws_credential(owner, region)
        return Key(provider.header, self._read_secret(owner, provider.key_variable))

    def _provider_backend(self, kind: Kind, model: str) -> Backend:
        provider = PROVIDERS[kind]
        try:
            check_label(model)
        except ValueError:
            raise UnknownTarget(
                f"Target {quote_clipped(f'{kind}:{model}')} has no valid model name; use {kind}:MODEL"
            ) from None
        endpoint, query = split_query(self._provider_url(kind, provider))
        return Backend(
            name=kind,
            kind=kind,
            dialect=provider.dialect_at(endpoint),
            model=model,
            endpoint=endpoint,
            query=query,
            credential=self._usual_credential(kind, provider),
        )

    def _usual_credential(self, kind: Kind, provider: Provider) -> Credential | None:
        """Return the credential for requests to `provider:model`, from the environment. Return None for a kind without
        keys, or if no key is set and the environment replaces the provider's default endpoint.
        """
        endpoint = self._provider_url(kind, provider)
        is_local = endpoint != provider.endpoint and provider.endpoint != ""
        if not provider.key_variable or (is_local and not self.environ.get(provider.key_variable)):
            return None
        return self._default_credential(f"Provider {kind!r}", provider, endpoint)

    def _provider_url(self, kind: Kind, provider: Provider) -> str:
        if not (url := self.environ.get(provider.url_variable, "").strip()):
            if not provider.endpoint:
                raise ConfigError(
                    f"Provider {kind!r} has no default address; set {provider.url_variable}, or use a base_url"
                )
            return provider.endpoint
        try:
            return normalize_base_url(url)
        except ValueError as error:
            raise ConfigError(f"Environment variable {provider.url_variable} {error}") from None

    def _read_secret(self, owner: str, variable: str) -> SecretStr:
        key = self.environ.get(variable, "").strip()
        if not key:
            raise MissingKey(f"{owner} needs a key in the environment variable {variable}; it is not set")
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ConfigError(
                f"Environment variable {variable} contains characters that are not allowed in a key; set it again"
            )
        return SecretStr(key)

    def _unknown_target_message(self, name: str) -> str:
        if name in PROVIDERS:
            return f"Target {name!r} names a provider but no model; use {name}:MODEL"
        if self.source is None:
            return f"No backend {quote_clipped(name)}: no file is used; use PROVIDER:MODEL, such as openai:gpt-5.2"
        return f"No backend {quote_clipped(name)} in {self.source}; {hint(name, self.targets, 'it has')}"


def load(path: str | PathLike[str] | None, environ: Mapping[str, str]) -> Config:
    """Read a configuration file. With None as `path`, return a configuration that uses only the environment.

    Args:
        path: Path of an `actors.toml`, or None.
        environ: The environment variables with keys and addresses. They are also read later, when targets are resolved.

    Raises:
        ConfigError: The file cannot be read, is not TOML, or has an invalid setting. The message is one line that says
            where the error is, without the value.
    """
    if path is None:
        return Config(FileSettings(), environ)
    source = Path(path).name
    text = _read_text(Path(path))
    try:
        settings = FileSettings.model_validate(tomllib.loads(text))
    except RecursionError:
        raise ConfigError(f"{source} is not valid TOML: it is nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source} is not valid TOML: {syntax_message(error)}") from None
    except ValidationError as error:
        raise ConfigError(validation_message(error, source, text)) from None
    for place, problem in contradictions(settings):
        raise ConfigError(f"{source}{location_of(text, place)}: {problem}")
    return Config(settings, environ, source)


def _read_text(path: Path) -> str:
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
        raise ConfigError(f"{path.name}, line {line}: the file is not UTF-8") from None
