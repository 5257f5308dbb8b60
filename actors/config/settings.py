"""What an `actors.toml` may say: its tables as frozen models, and what their values must look like.

No message repeats a value.
"""

import re
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    create_model,
    model_validator,
)

from actors.config.providers import Kind
from actors.core.dialects.caching import Cache
from actors.core.history.compaction import Windows
from actors.core.policy.allowances import Period
from actors.core.policy.routing import Policy
from actors.core.schemas.repair import RepairMode
from actors.core.settings.durations import duration
from actors.core.settings.table import SETTINGS, names, out_of_range, stored
from actors.core.settings.values import RequestSettings
from actors.core.turn.guards import Repeats

Thinking: TypeAlias = Literal["native", "drop", "text"]
Verdict: TypeAlias = Literal["allow", "ask", "deny"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,127}")


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError("takes the name of an environment variable in capitals, not the key itself")
    return name


def _duration(text: object) -> int:
    if not isinstance(text, str):
        raise ValueError("takes a text, as '90 days'")
    return duration(text)


def _share(given: object) -> float | None:
    if given == "never":
        return None
    if not isinstance(given, int | float) or isinstance(given, bool) or not 0 < given <= 1:
        raise ValueError("takes a share of the window up to 1, as 0.8, or 'never'")
    return float(given)


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
Variable = Annotated[str, AfterValidator(_variable)]
Label = Annotated[str, AfterValidator(label)]
Endpoint = Annotated[str, AfterValidator(endpoint)]
BaseUrl = Annotated[str, AfterValidator(base_url)]
Database = Annotated[str, AfterValidator(database)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class BackendLimits(Frozen):
    """What one backend may take: times in seconds, requests at once, attempts for one round.

    Args:
        connect: Until the connection stands.
        first_byte: From the request's last byte to the answer's first; and as long for a free connection.
        idle: Between two pieces of a stream.
        silence_timeout: For which a stream may send nothing but comments, pings and empty deltas; None for as long as
            it likes. Models that think in secret are silent for minutes.
        total: For one attempt as a whole; None has no end of its own.
        answer_bytes: Of one answer on the wire, comments and blank lines included. One that is larger is given up:
            `cause.kind` is `too_long`, and the next backend is asked.
        concurrency: Requests in flight, at most; the backend's rate limits lower it for a while. More wait.
        waiting: Requests that wait; one more is refused as overloaded.
        requests_per_minute, tokens_per_minute: What the account is given; None leaves it to the backend to refuse.
        attempts: Of one round, the first included. A try that is refused for the rate while others are served counts
            as none, up to four times as often.
        failures: Failed tries in a row, of all sessions, after which the backend is left alone. What was in flight when
            the first failed counts as one, and failures must have lasted for as long as one round is tried.
        cooldown: Seconds for which it is. Then one request at a time finds out whether it answers again.
    """

    connect: Seconds = 10.0
    first_byte: Seconds = 120.0
    idle: Seconds = 60.0
    silence_timeout: Seconds | None = None
    total: Seconds | None = 900.0
    answer_bytes: Annotated[int, Field(ge=1024, le=1024 * 1024 * 1024)] = 32 * 1024 * 1024
    concurrency: Count = 64
    waiting: Annotated[int, Field(ge=0)] = 10_000
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    attempts: Annotated[int, Field(ge=1, le=20)] = 4
    failures: Count = 10
    cooldown: Seconds = 30.0


class RuntimeLimits(Frozen):
    """What one session may take, and a runtime.

    Args:
        rounds: Requests of one turn before the model is asked for a final text with its tools off.
        corrections: Times in a turn that the model may correct invalid arguments.
        tool_corrections: Messages of a turn with wrong calls of one tool; after them that tool is not available any
            more in the turn, and the others are.
        repair: What is done about calls and answers of `output=` with a slip, such as a text for a number, if exactly
            one reading of them fits the schema: `unambiguous` reads them so and reports it, `strict` refuses them.
        repeats: What is done from the third message of a turn on that makes the same call and gets the same result:
            `allow` (nothing), `warn` (the model is told with the result), `stop` (a final text, with tools off). `warn`
            because to ask again may be right, as for a job that runs, if the model knows that it does so.
        waiting_asks: Asks that wait behind the one in flight; one more is refused as busy.
        batch: Calls of one message that are run; the rest are refused, and the model is told.
        tool_threads: Threads of the process that may be in use when a tool that is not async begins.
        tool_wait: Seconds that such a tool waits for one before its call is refused.
        quarantine: Calls of one tool that may run on after they were closed. While so many do, it gets no more.
        result_bytes: Of JSON that is kept of what a tool returned; the rest is cut, and a mark says so.
        depth: Levels that subagents stand below the session that a program opened.
        active: Sessions with nothing to do that keep their actors; if not given, as many as suit `memory`, at least 64.
        sessions: Sessions that are open at a time, subagents included; one more is refused.
        memory: Bytes that sessions hold: their conversations, rendered too, and logs that are kept in memory. What was
            not used for longest is put away first; if those that are busy hold so much, no ask and no session is taken.
            If not given, half of what the process may use: of the machine's memory, or of its container's.
        backends: Backends a runtime talks to; one more is refused.
        connections: Connections to one origin; a request beyond them waits for one.
        connecting: Connections to one origin that are being made at a time; more wait.
    """

    rounds: Count = 25
    corrections: Annotated[int, Field(ge=0)] = 3
    tool_corrections: Count = 5
    repair: RepairMode = "unambiguous"
    repeats: Repeats = "warn"
    waiting_asks: Annotated[int, Field(ge=0)] = 8
    batch: Count = 256
    tool_threads: Count = 64
    tool_wait: Seconds = 30.0
    quarantine: Count = 16
    result_bytes: Annotated[int, Field(ge=1024, le=16 * 1024 * 1024)] = 256 * 1024
    depth: Annotated[int, Field(ge=0, le=16)] = 4
    active: Count | None = None
    sessions: Count = 100_000
    memory: Annotated[int, Field(ge=64 * 1024)] | None = None
    backends: Count = 1024
    connections: Count = 1000
    connecting: Count = 64


class Auth(Frozen):
    """How requests to a backend are authenticated: one of these. Only variables are named, never what they hold.

    Args:
        key: Variable with a key, sent in the provider's own header. `auth = "VARIABLE"` says the same.
        bearer: Variable with a token, sent as `Authorization: Bearer`.
        command: A program and its arguments that prints a token: as plain text, or as JSON with `access_token`
            or `token`, and `expires_in` (seconds) or `expires_at` (Unix time, or a date of RFC 3339).
        aws: Region for which requests are signed with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
        lifetime: Seconds for which a token is used whose command does not say when it expires.
    """

    key: Variable | None = None
    bearer: Variable | None = None
    command: Annotated[tuple[str, ...], Field(min_length=1, max_length=64, strict=False)] | None = None
    aws: Label | None = None
    lifetime: Seconds = 3000.0

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        given = [name for name in ("key", "bearer", "command", "aws") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError("takes one of key, bearer, command and aws")
        return self


def _auth(given: object) -> object:
    return {"key": _variable(given)} if isinstance(given, str) else given


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


def _headers(given: object) -> object:
    """Check the names and make each value a secret, or the variable that holds it."""
    if not isinstance(given, dict) or len(given) > _MAX_HEADERS:
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
        case {"variable": str() as variable, **rest} if not rest:
            return HeaderVariable(variable=_variable(variable))
        case _:
            raise ValueError('takes texts, or { variable = "NAME" } for one that is a secret')


def _effort(value: str) -> str:
    if (takes := out_of_range("effort", value)) is not None:
        raise ValueError(f"takes {takes}")
    return value


class ReasoningSettings(Frozen):
    """How a backend is asked to think, where it has a switch for it.

    Args:
        mode: `adaptive` (newer models decide themselves), `manual` (older ones, with a budget), `off`, or
            `default`, which says nothing.
        tokens: The budget of `manual`.
        effort: In the provider's word, as `low` or `high`.
    """

    mode: Literal["default", "adaptive", "manual", "off"] = "default"
    tokens: Annotated[int, Field(ge=1024)] | None = None
    effort: Annotated[Label, AfterValidator(_effort)] | None = None

    @model_validator(mode="after")
    def _budget(self) -> Self:
        if self.tokens is not None and self.mode != "manual":
            raise ValueError('takes tokens only with mode = "manual"')
        return self


Money = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class PriceSettings(Frozen):
    """What a backend charges for a million tokens, in a money that all backends share. See `actors.Price`."""

    input: Money
    output: Money
    cache_read: Money | None = None
    cache_write: Money | None = None


def _in_range(name: str, value: object) -> Any:  # Any: each setting has its own type
    """Return the stored form of a setting's value."""
    if out_of_range(name, value) is not None:
        raise ValueError(f"takes {SETTINGS[name].range.words}")
    return stored(name, value)


if TYPE_CHECKING:

    class RequestTable(Frozen):
        """The keys that the table of settings defines for a backend (`actors.core.settings.table`)."""

else:
    RequestTable = create_model(
        "RequestTable",
        __base__=Frozen,
        **{
            name: (Annotated[Any, AfterValidator(partial(_in_range, name))], SETTINGS[name].default)
            for name in names("backend")
        },
    )


class BackendSettings(RequestTable):
    """One `[backends.NAME]` table. `base_url` without `auth` means that no key is sent.

    A query of `base_url`, such as `?api-version=2024-10-21`, is appended to the path of each request and never shown.

    `headers` go with every request, for what an account or a gateway asks beside its credential: each is a text, or
    `{ variable = "NAME" }` for one that is a secret. They replace what is sent by default and are never shown.
    `stream = false` is for a backend that cannot stream: its whole answers give the same events. `upstream` keeps a
    gateway to one of its upstreams, named as the gateway wants it. `cache` is what is asked of the host's prompt cache:
    `default`, `long` (the longest life it has) or `off`. `price` is what a pool of policy `cheapest` compares.
    `context` is how many tokens a request and its answer may have together: see `[compaction]`. The other keys are
    those settings of an ask that a backend may have too, such as `temperature` and `seed`: docs/reference/settings.md.
    """

    kind: Kind
    model: Label
    base_url: Annotated[BaseUrl | None, Field(repr=False)] = None
    auth: Annotated[Auth, BeforeValidator(_auth)] | None = None
    headers: Annotated[dict[str, SecretStr | HeaderVariable], BeforeValidator(_headers)] = Field(default={})
    account: Label | None = None
    upstream: Label | None = None
    thinking: Thinking = "native"
    reasoning: ReasoningSettings = ReasoningSettings()
    cache: Cache = "default"
    stream: bool = True
    dialect: Label | None = None
    context: Count | None = None
    price: PriceSettings | None = None
    limits: BackendLimits = BackendLimits()

    @property
    def request(self) -> RequestSettings:
        """The settings that requests send unless an ask replaces them."""
        given = {name: getattr(self, name) for name in names("backend")}
        return RequestSettings(**given, effort=self.reasoning.effort)


class AllowanceSettings(Frozen):
    """The `budget` of a tenant or a pool: what its sessions may use together. See `actors.Allowance`."""

    tokens: Count | None = None
    money: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    per: Period | None = None

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        if self.tokens is None and self.money is None:
            raise ValueError("takes tokens or money, or both")
        return self


class PoolSettings(Frozen):
    """One `[pools.NAME]` table. Members are backends or `provider:model`, in order; `weights` are theirs, by name.

    `budget` is what the sessions whose target it is may use together. A member that failed for good is passed over for
    `cooldown` seconds, or until it answered somebody.
    `failover_after_output` lets another member continue an answer of which some was shown already. With
    `failover_on_refusal = false`, no other member is asked after one refused the structure of a transcript, which is a
    bug of this library: the ask fails, so that a test notices.
    """

    members: Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
    policy: Policy = "failover"
    cooldown: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 60.0
    failover_after_output: bool = False
    failover_on_refusal: bool = True
    weights: dict[str, Annotated[int, Field(ge=1, le=100)]] = {}
    budget: AllowanceSettings | None = None


class TenantSettings(Frozen):
    """One `[tenants.NAME]` table.

    `weight` is its share, beside others', of a backend for which requests wait; `budget` what its sessions may use
    together.
    """

    weight: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)] = 1.0
    budget: AllowanceSettings | None = None


class McpSettings(Frozen):
    """One `[mcp.NAME]` table: an MCP server, which is a program with its `args`, or a `url`.

    `env` names variables of this process that the program gets too. `bearer` names the one with the token that goes to
    the `url`; `headers` are as a backend's. `tools` are those it offers, by its names, all by default. `approval` is
    `allow`, `ask` or `deny`, for all of them or by name, `*` for the others. `timeout` (of a call), `opening` and
    `waiting` are seconds. `within_turn`, `max_bytes`, `max_blocks` and `max_values` are as of
    `actors.tools.mcp.McpOptions`.
    """

    command: Label | None = None
    args: Annotated[tuple[str, ...], Field(max_length=256, strict=False, repr=False)] = ()
    env: Annotated[tuple[Variable, ...], Field(max_length=64, strict=False)] = ()
    cwd: Label | None = None
    url: Annotated[Endpoint | None, Field(repr=False)] = None
    bearer: Variable | None = None
    headers: Annotated[dict[str, SecretStr | HeaderVariable], BeforeValidator(_headers)] = {}
    tools: Annotated[tuple[str, ...], Field(strict=False)] | None = None
    approval: Verdict | dict[str, Verdict] | None = None
    timeout: Seconds | None = None
    opening: Seconds = 30.0
    waiting: Seconds = 10.0
    within_turn: bool = False
    max_bytes: Count | None = None
    max_blocks: Count | None = None
    max_values: Count | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("takes one of command and url")
        if self.command is None and (self.args or self.env or self.cwd is not None):
            raise ValueError("takes args, env and cwd only with command")
        if self.url is None and (self.bearer is not None or self.headers):
            raise ValueError("takes bearer and headers only with url")
        return self


class ModelPrice(PriceSettings):
    """One `[prices."PATTERN"]` table: what a million tokens of a model cost. See `actors.Price`."""

    context: Count | None = None


class CompactionSettings(Frozen):
    """The `[compaction]` table: when and how histories are made shorter. See `actors.Compaction`."""

    threshold: Annotated[float | None, BeforeValidator(_share)] = 0.8
    keep: Annotated[int, Field(ge=0)] = 2
    large: Annotated[int, Field(ge=256)] = 16_384
    attachments: Annotated[int, Field(ge=0)] = 4
    by: Label | None = None
    windows: Windows = "configured"


class JournalSettings(Frozen):
    """The `[journal]` table: where logs are kept. Without it they are in memory and end with the process.

    Args:
        path: A SQLite file, made if there is none. Several processes of one machine may share it.
        url: A Postgres database, which several machines may share, instead of a file. The password is not in it.
        level: `process` outlives `kill -9`, `power` (the default of a file, and all that Postgres has) also a loss of
            power.
        lease: Seconds after which a process that is not heard of has lost its sessions to who takes them over.
        keep: How long a session is kept that nobody uses, as "90 days": then it is deleted. Without it, for ever.
    """

    path: Label | None = None
    url: Database | None = None
    level: Literal["memory", "process", "power"] | None = None
    lease: Annotated[float, Field(ge=1, le=3600, allow_inf_nan=False)] = 10.0
    keep: Annotated[int, BeforeValidator(_duration)] | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.path is not None and self.url is not None:
            raise ValueError("takes path or url, not both")
        if self.path is not None and "://" in self.path:
            raise ValueError("takes a file's path as path; a postgresql:// address goes in url")
        return self


class FileSettings(Frozen):
    """A whole `actors.toml`. A `[dialects.NAME]` table is a profile of one's own; see `actors.config.dialects`.

    A `[models."PROVIDER:GLOB"]` table overrides facts about models; see `actors.config.models`.
    """

    dialects: dict[str, dict[str, Any]] = {}  # Any: each field of a dialect has its own type
    models: dict[str, dict[str, Any]] = {}  # Any: each field of `ModelFacts` has its own type
    backends: dict[str, BackendSettings] = {}
    pools: dict[str, PoolSettings] = {}
    tenants: dict[str, TenantSettings] = {}
    mcp: dict[str, McpSettings] = {}
    limits: RuntimeLimits = RuntimeLimits()
    journal: JournalSettings = JournalSettings()
    prices: dict[str, ModelPrice] = {}
    compaction: CompactionSettings = CompactionSettings()
