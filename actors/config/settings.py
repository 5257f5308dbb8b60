"""Define the tables of an `actors.toml` as immutable pydantic models, and validate their values.

`actors.config.load` uses these models. No error message repeats a value, because the value may be a misplaced secret.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from actors.config.fields import (
    BaseUrl,
    Count,
    Database,
    Endpoint,
    FrozenModel,
    HeaderVariable,
    Label,
    Seconds,
    Variable,
    check_headers,
    check_kind,
    check_variable_name,
    parse_duration_text,
    struct_table,
    table_model,
)
from actors.config.providers import Kind
from actors.core.dialects.dialect import Cache
from actors.core.history.compaction import COMPACTION_RANGES, Compaction
from actors.core.policy.routing import Policy
from actors.core.schemas.repair import RepairMode
from actors.core.settings.spending import (
    BUDGET_RANGES,
    PRICE_RANGES,
    SHARED_LIMITS,
    Budget,
    Price,
    has_shared_limit,
)
from actors.core.settings.table import SETTINGS, out_of_range, setting_names
from actors.core.settings.values import Range, RequestSettings
from actors.core.turn.guards import Repeats

Thinking: TypeAlias = Literal["native", "drop", "text"]
Verdict: TypeAlias = Literal["allow", "ask", "deny"]


class BackendLimits(FrozenModel):
    """The limits of one backend. Times are in seconds.

    Args:
        connect_timeout: Time to open a connection.
        first_byte_timeout: Time from the last byte of a request to the first byte of the answer. It also limits the
            wait for a free connection.
        idle_timeout: Time between two chunks of a stream.
        silence_timeout: Time for which a stream may send only comments, pings and empty deltas; None for no limit.
            Models that hide their thinking are silent for minutes.
        timeout: Time for one attempt; None for no limit.
        answer_bytes: Bytes of one answer on the wire, including comments and blank lines. A larger answer fails with
            `cause.kind` `too_long`, and the next backend of the pool is used.
        concurrency: Requests in flight. Further requests wait. Rate limits of the backend lower this number
            temporarily.
        waiting: Queued requests. A further request fails as overloaded.
        requests_per_minute, tokens_per_minute: The rate limits of the account. With None, requests are not limited
            until the backend rejects a request.
        attempts: Attempts of one request, including the first. While the backend answers other requests, rate-limited
            attempts do not count, up to four for each permitted retry.
        failures: Number of consecutive failed attempts, in all sessions, after which the circuit breaker opens. All
            attempts that are in flight at the first failure count as one. The breaker does not open before the failures
            have continued for about as long as the retries of one request take.
        cooldown: Seconds for which the circuit breaker stays open. After that, one request at a time tests the backend.
    """

    connect_timeout: Seconds = 10.0
    first_byte_timeout: Seconds = 120.0
    idle_timeout: Seconds = 60.0
    silence_timeout: Seconds | None = None
    timeout: Seconds | None = 900.0
    answer_bytes: Annotated[int, Field(ge=1024, le=1024 * 1024 * 1024)] = 32 * 1024 * 1024
    concurrency: Count = 64
    waiting: Annotated[int, Field(ge=0)] = 10_000
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    attempts: Annotated[int, Field(ge=1, le=20)] = 4
    failures: Count = 10
    cooldown: Seconds = 30.0


class RuntimeLimits(FrozenModel):
    """The limits of a session and of a runtime.

    Args:
        max_rounds: Requests in one turn. The last request asks for a final text and allows no tool calls.
        max_corrections: How many times in a turn the model may correct invalid arguments.
        max_tool_corrections: Messages with invalid calls of one tool that a turn may contain. After that, this tool
            alone is disabled for the rest of the turn.
        repair: How to treat small errors in arguments and in answers for `output=`, such as a string instead of a
            number. `unambiguous` repairs and reports an error if exactly one interpretation fits the schema; `strict`
            rejects every error.
        on_repeat: What to do at the third message of a turn with the same call and the same result: `allow` does
            nothing, `warn` adds a note for the model to the result, and `stop` requests a final text without tool
            calls. The default is `warn`, because polling a running job is legitimate.
        max_queued_asks: Asks that may wait for the current ask. A further ask raises `QueueFull`.
        max_calls_per_message: Calls that one message may make. Further calls are rejected with an error that states the
            limit.
        tool_threads: Threads of the process for blocking tools.
        thread_wait_timeout: Seconds that a blocking tool waits for a thread before its call is rejected.
        max_abandoned_calls: Number of one tool's calls that were closed while the tool still runs. When it is reached,
            further calls of the tool are rejected.
        result_bytes: Bytes of a tool's result that are stored, as JSON. A longer result is truncated, with a marker.
        max_subagent_depth: Levels of subagents below the session that a program opened.
        max_active_sessions: Idle sessions that stay active instead of being hibernated. The default depends on
            `memory`, and is at least 64.
        sessions: Open sessions, including subagents. A further session raises `TooManySessions`.
        memory: Bytes that all sessions may use: their conversations, rendered transcripts, and logs in memory. The
            least recently used sessions are hibernated first. If busy sessions use all of it, asks and new sessions are
            rejected. The default is half of the memory that the process may use on the machine or in its container.
        backends: Backends that a runtime may use. A further backend is rejected.
        connections: Connections to one origin. Further requests wait.
        connecting: Connections to one origin that are being opened concurrently. Further connections wait.
    """

    max_rounds: Count = 25
    max_corrections: Annotated[int, Field(ge=0)] = 3
    max_tool_corrections: Count = 5
    repair: RepairMode = "unambiguous"
    on_repeat: Repeats = "warn"
    max_queued_asks: Annotated[int, Field(ge=0)] = 8
    max_calls_per_message: Count = 256
    tool_threads: Count = 64
    thread_wait_timeout: Seconds = 30.0
    max_abandoned_calls: Count = 16
    result_bytes: Annotated[int, Field(ge=1024, le=16 * 1024 * 1024)] = 256 * 1024
    max_subagent_depth: Annotated[int, Field(ge=0, le=16)] = 4
    max_active_sessions: Count | None = None
    sessions: Count = 100_000
    memory: Annotated[int, Field(ge=64 * 1024)] | None = None
    backends: Count = 1024
    connections: Count = 1000
    connecting: Count = 64


class Auth(FrozenModel):
    """The authentication of requests to a backend. Exactly one method must be configured.

    Keys are configured by the names of environment variables.

    Args:
        key: Variable with a key, which is sent in the provider's own header. `auth = "VARIABLE"` is an abbreviation of
            `auth = { key = "VARIABLE" }`.
        bearer: Variable with a token, sent as `Authorization: Bearer`.
        command: A program with its arguments that prints a token: as plain text, or as JSON with `access_token` or
            `token`, and `expires_in` (seconds) or `expires_at` (Unix time, or an RFC 3339 date).
        aws: Region for which requests are signed with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
        lifetime: Seconds for which a token is used if its command prints no expiry.
    """

    key: Variable | None = None
    bearer: Variable | None = None
    command: Annotated[tuple[str, ...], Field(min_length=1, max_length=64, strict=False)] | None = None
    aws: Label | None = None
    lifetime: Seconds = 3000.0

    @model_validator(mode="after")
    def _check_one_method(self) -> Self:
        given = [name for name in ("key", "bearer", "command", "aws") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError("must have exactly one of key, bearer, command and aws")
        return self


def _expand_auth(auth: object) -> object:
    """Expand the abbreviation `auth = "VARIABLE"` to a table with a `key`. Return any other value unchanged."""
    return {"key": check_variable_name(auth)} if isinstance(auth, str) else auth


def _check_effort(value: str) -> str:
    if (expected := out_of_range("effort", value)) is not None:
        raise ValueError(f"must be {expected}")
    return value


class ReasoningSettings(FrozenModel):
    """The thinking settings of a backend, for APIs that support them.

    Args:
        mode: `adaptive` (for newer models, which decide how long to think), `manual` (for older models, with a budget),
            `off`, or `default` (no field is sent).
        tokens: The token budget of the mode `manual`.
        effort: How much the model thinks: the provider's name for a level, such as `low` or `high`.
    """

    mode: Literal["default", "adaptive", "manual", "off"] = "default"
    tokens: Annotated[int, Field(ge=1024)] | None = None
    effort: Annotated[Label, AfterValidator(_check_effort)] | None = None

    @model_validator(mode="after")
    def _check_budget_mode(self) -> Self:
        if self.tokens is not None and self.mode != "manual":
            raise ValueError('tokens is only for mode = "manual"')
        return self


def _check_shared_limit(budget: Budget) -> None:
    if not has_shared_limit(budget):
        raise ValueError(f"a shared budget must have at least one of {', '.join(SHARED_LIMITS)}")


_SHARE = COMPACTION_RANGES["threshold"]
_SHARE_OR_NEVER = Range(
    f"{_SHARE.description}, as 0.8, or 'never'",
    lambda value: value == "never" or _SHARE.accepts(value),
    lambda value: None if value == "never" else float(value),
)

if TYPE_CHECKING:
    _BackendPrice: TypeAlias = Price
    _BudgetTable: TypeAlias = Budget
    _CompactionTable: TypeAlias = Compaction
    _PriceTable: TypeAlias = Price
else:
    _BackendPrice = struct_table(Price, {key: PRICE_RANGES[key] for key in PRICE_RANGES if key != "context"})
    _BudgetTable = struct_table(
        Budget, {key: BUDGET_RANGES[key] for key in (*SHARED_LIMITS, "per")}, _check_shared_limit
    )
    _CompactionTable = struct_table(Compaction, COMPACTION_RANGES | {"threshold": _SHARE_OR_NEVER})
    _PriceTable = struct_table(Price, PRICE_RANGES)


if TYPE_CHECKING:

    class RequestTable(FrozenModel):
        """The keys of a backend's table that configure its requests (`actors.core.settings.table`)."""

else:
    RequestTable = table_model(
        "RequestTable",
        {name: SETTINGS[name].range for name in setting_names("backend")},
        {name: SETTINGS[name].default for name in setting_names("backend")},
    )


class BackendSettings(RequestTable):
    """One `[backends.NAME]` table.

    Args:
        kind: The provider or API, such as `anthropic` or `openai_chat`. It determines the default address, the dialect,
            and the variable with the key; docs/reference/dialects.md lists all kinds.
        model: The provider's name for the model.
        base_url: The base URL of the API; None for the kind's default. A query, such as `?api-version=2024-10-21`, is
            appended to the path of each request and never shown.
        auth: How requests are authenticated. With None, the key comes from the kind's default variable, or no key is
            sent if `base_url` is set.
        headers: Headers that are sent with every request, for accounts and gateways that need more than a credential. A
            value is a string, or `{ variable = "NAME" }` for a secret. They override default headers and are never
            shown.
        account: A label of the account. Reasoning that a provider signed or encrypted for one account is not sent
            through another account.
        upstream: The provider to which a gateway must forward requests, by the gateway's name for the provider; None
            lets the gateway choose.
        thinking: How requests contain earlier reasoning: `native` sends it in the provider's format if the dialect
            supports that, `drop` omits it, and `text` sends it as text.
        reasoning: The thinking mode of the model, its token budget, and the effort.
        cache: How the provider's prompt cache is used: `default`, `long` (the longest lifetime) or `off`.
        stream: True to stream answers. Set False for a backend that cannot stream; its complete answers produce the
            same events.
        dialect: Name of a profile or of a `[dialects.NAME]` table; None for the kind's default.
        context: The maximum number of tokens of a request and its answer together, which `[compaction]` uses; None if
            unknown.
        price: The prices of the model; None for the prices in `[prices]`. Pools with the policy `cheapest` compare the
            prices of their members.
        limits: The timeouts, rate limits and retries of the backend.

    All other keys are ask settings that a backend may set too, such as `temperature` and `seed`: see
    docs/reference/settings.md.
    """

    kind: Annotated[Kind, AfterValidator(check_kind)]
    model: Label
    base_url: Annotated[BaseUrl | None, Field(repr=False)] = None
    auth: Annotated[Auth, BeforeValidator(_expand_auth)] | None = None
    headers: Annotated[dict[str, SecretStr | HeaderVariable], BeforeValidator(check_headers)] = Field(
        default={}
    )
    account: Label | None = None
    upstream: Label | None = None
    thinking: Thinking = "native"
    reasoning: ReasoningSettings = ReasoningSettings()
    cache: Cache = "default"
    stream: bool = True
    dialect: Label | None = None
    context: Count | None = None
    price: _BackendPrice | None = None
    limits: BackendLimits = BackendLimits()

    @property
    def request(self) -> RequestSettings:
        """The settings of each request to this backend, which an ask may override."""
        given = {name: getattr(self, name) for name in setting_names("backend")}
        return RequestSettings(**given, effort=self.reasoning.effort)


class PoolSettings(FrozenModel):
    """One `[pools.NAME]` table.

    Args:
        members: Names of backends or `provider:model`, in order of preference.
        policy: How the member for a turn is chosen. `failover` uses the first member that works, and `manual` only the
            first member; docs/how-to/backends.md lists all policies.
        cooldown: Seconds for which a member whose turn failed is skipped, unless it answers a request earlier.
        failover_after_output: Whether another member continues an ask even if a part of the answer was already shown.
        failover_on_refusal: Whether another member continues an ask after a member has rejected the structure of a
            request, which is a bug of this library. With False, the ask fails, which suits tests.
        weights: Weights of members for the policies `weighted` and `sticky`: numbers from 1 to 100, by default 1.
        budget: The budget that all sessions with this target share; None for no limit.
    """

    members: Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
    policy: Policy = "failover"
    cooldown: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 60.0
    failover_after_output: bool = False
    failover_on_refusal: bool = True
    weights: dict[str, Annotated[int, Field(ge=1, le=100)]] = Field(default={})
    budget: _BudgetTable | None = None


class TenantSettings(FrozenModel):
    """One `[tenants.NAME]` table.

    Args:
        weight: The tenant's share of a busy backend, relative to other tenants with queued requests.
        budget: The budget that all sessions of the tenant share; None for no limit.
    """

    weight: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)] = 1.0
    budget: _BudgetTable | None = None


class McpSettings(FrozenModel):
    """One `[mcp.NAME]` table: an MCP server, which is either a program or a URL.

    Args:
        command: The program to start; None for a server with a `url`.
        args: The arguments of the program. They are not shown, because they may contain secrets.
        env: Names of the variables of this process that the program inherits.
        cwd: The working directory of the program; None for the directory of this process.
        url: The URL of a server that is already running; None for a program.
        bearer: The variable with the token for the `url`; None for no token.
        headers: Headers to send with every request to the `url`, in the same form as in `[backends.NAME]`.
        tools: The tools to use, by the server's names; None for all.
        approval: `allow`, `ask` or `deny`, for all tools or by tool name; the name `*` stands for the other tools. With
            None, tools that the server declares as read-only run without approval, and all other tools need approval.
        timeout: Seconds that one call may take; None for no limit.
        opening, waiting: Seconds, as in `actors.mcp.McpOptions`.
        within_turn, max_bytes, max_blocks, max_values: As in `actors.mcp.McpOptions`.
    """

    command: Label | None = None
    args: Annotated[tuple[str, ...], Field(max_length=256, strict=False, repr=False)] = ()
    env: Annotated[tuple[Variable, ...], Field(max_length=64, strict=False)] = ()
    cwd: Label | None = None
    url: Annotated[Endpoint | None, Field(repr=False)] = None
    bearer: Variable | None = None
    headers: Annotated[dict[str, SecretStr | HeaderVariable], BeforeValidator(check_headers)] = Field(
        default={}
    )
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
    def _check_one_location(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("an MCP server must have either a command or a url")
        if self.command is None and (self.args or self.env or self.cwd is not None):
            raise ValueError("args, env and cwd are only for a server with a command")
        if self.url is None and (self.bearer is not None or self.headers):
            raise ValueError("bearer and headers are only for a server with a url")
        return self


class JournalSettings(FrozenModel):
    """The `[journal]` table: the storage of logs. By default, logs are in memory and are lost when the process ends.

    Args:
        path: A SQLite file, created if it is missing. Several processes of one machine may share it.
        url: A Postgres database, which several machines may share, instead of a file. The URL must not contain a
            password.
        durability: The kind of failure that acknowledged events survive. With `process`, events survive `kill -9`; with
            `power`, they also survive a power failure. The default for a file is `power`. Postgres always has `power`.
        lease: Seconds since a process's last heartbeat after which other processes may take over its sessions.
        retention: Time after which an unused session is deleted, such as "90 days". By default, no session is deleted.
    """

    path: Label | None = None
    url: Database | None = None
    durability: Literal["memory", "process", "power"] | None = None
    lease: Annotated[float, Field(ge=1, le=3600, allow_inf_nan=False)] = 10.0
    retention: Annotated[int, BeforeValidator(parse_duration_text)] | None = None

    @model_validator(mode="after")
    def _check_one_location(self) -> Self:
        if self.path is not None and self.url is not None:
            raise ValueError("a journal must have a path or a url, not both")
        if self.path is not None and "://" in self.path:
            raise ValueError("path must be the path of a file; put a postgresql:// address into url")
        return self


class FileSettings(FrozenModel):
    """A complete `actors.toml`.

    Most fields map names to tables: `[backends.claude]` has the name `claude`.

    Args:
        dialects: Custom profiles. The key `base` names a built-in profile, and the other keys override its fields,
            which docs/reference/rulebook.md lists.
        models: Facts about models, by `PROVIDER:GLOB`. They override the built-in facts in docs/reference/models.md.
        backends: The models that sessions can use, each with an address and a credential.
        pools: Groups of backends that can replace each other.
        tenants: Customers or teams that share the backends.
        mcp: MCP servers whose tools a program or the command line can use.
        limits: The limits of each session and of the runtime.
        journal: The storage of logs.
        prices: Prices of models, by model name or pattern, such as `claude-*`.
        compaction: When and how to shorten long histories.
    """

    dialects: dict[str, dict[str, Any]] = Field(default={})  # Any: each field of a dialect has its own type
    models: dict[str, dict[str, Any]] = Field(default={})  # Any: each field of `ModelFacts` has its own type
    backends: dict[str, BackendSettings] = Field(default={})
    pools: dict[str, PoolSettings] = Field(default={})
    tenants: dict[str, TenantSettings] = Field(default={})
    mcp: dict[str, McpSettings] = Field(default={})
    limits: RuntimeLimits = RuntimeLimits()
    journal: JournalSettings = JournalSettings()
    prices: dict[str, _PriceTable] = Field(default={})
    compaction: _CompactionTable = Compaction()

    @property
    def budgets(self) -> dict[str, Budget]:
        """The shared budgets, by the names of their tables: `tenants.NAME` and `pools.NAME`."""
        owners: tuple[tuple[str, Mapping[str, TenantSettings | PoolSettings]], ...] = (
            ("tenants", self.tenants),
            ("pools", self.pools),
        )
        return {
            f"{table}.{name}": owner.budget
            for table, by_name in owners
            for name, owner in by_name.items()
            if owner.budget is not None
        }
