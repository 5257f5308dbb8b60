"""The configuration file: valid settings become typed values, an error is one clear line, and no key is ever shown."""

import pickle
import traceback
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from actors.config import (
    PROVIDERS,
    Aws,
    AwsKeys,
    Backend,
    BackendLimits,
    Config,
    Key,
    ResolvedPool,
    TokenCommand,
    load,
)
from actors.config.complaints import hint
from actors.config.dialects import custom_dialect
from actors.config.settings import FileSettings
from actors.core.data.record import replace
from actors.core.dialects.dialect import AnthropicCaching, ConverseCaching
from actors.core.dialects.profiles import OPENAI_CHAT, PROFILES
from actors.core.settings.values import RequestSettings
from actors.core.values.identity import Binding
from actors.errors import ConfigError, MissingKey, UnknownTarget

CANARY = "sk-ant-CANARY0123456789"
ENVIRON = {"ANTHROPIC_API_KEY": CANARY, "OPENAI_API_KEY": "sk-oai", "TEAM_KEY": "sk-team"}

FILE = """
[backends.claude]
kind = "anthropic"
model = "claude-sonnet-5"
auth = "TEAM_KEY"
account = "team"
max_tokens = 2000
thinking = "drop"
limits = { idle_timeout = 30, concurrency = 16 }

[backends.local]
kind = "openai"
model = "tiny"
base_url = "http://127.0.0.1:8080/v1/"

[backends.gpt]
kind = "openai"
model = "gpt-5.2"

[pools.main]
members = ["claude", "local", "anthropic:claude-haiku-5"]
policy = "round_robin"
cooldown = 5

[limits]
max_rounds = 7
"""


def write_config(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "actors.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load(write_config(tmp_path, FILE), ENVIRON)


def backend(config: Config, target: str) -> Backend:
    found = config.resolve(target)
    assert isinstance(found, Backend)
    return found


# --- targets -----------------------------------------------------------------------------------------


def test_a_configured_backend_has_the_settings_of_the_file(config: Config) -> None:
    claude = backend(config, "claude")
    assert claude == Backend(
        name="claude",
        kind="anthropic",
        dialect="anthropic",
        model="claude-sonnet-5",
        endpoint="https://api.anthropic.com",
        account="team",
        credential=Key("x-api-key", SecretStr("sk-team")),
        request=RequestSettings(max_tokens=2000),
        thinking="drop",
        limits=BackendLimits(idle_timeout=30.0, concurrency=16),
    )
    assert claude.binding == Binding(
        "claude", "anthropic", "https://api.anthropic.com", "team", "claude-sonnet-5"
    )
    assert config.limits.max_rounds == 7
    assert config.limits.max_queued_asks == 8


def test_without_an_auth_setting_the_default_key_is_sent_only_to_the_default_endpoint(config: Config) -> None:
    gpt, local = backend(config, "gpt"), backend(config, "local")
    assert gpt.credential == Key("authorization", SecretStr("sk-oai"))
    assert gpt.endpoint == "https://api.openai.com/v1"
    assert local.credential is None
    assert local.endpoint == "http://127.0.0.1:8080/v1"


def test_a_pool_keeps_the_order_of_its_members(config: Config) -> None:
    pool = config.resolve("main")
    assert isinstance(pool, ResolvedPool)
    assert [member.name for member in pool.members] == ["claude", "local", "anthropic"]
    assert (pool.policy, pool.cooldown) == ("round_robin", 5.0)
    assert config.targets == ("claude", "local", "gpt", "main")


def test_a_target_made_of_a_provider_and_a_model_needs_no_configuration_file() -> None:
    config = load(None, ENVIRON)
    gpt, claude = backend(config, "openai:gpt-5.2"), backend(config, "anthropic:claude-sonnet-5")
    assert gpt.binding == Binding("openai", "openai_responses", "https://api.openai.com/v1", "", "gpt-5.2")
    assert claude.credential == Key("x-api-key", SecretStr(CANARY))
    assert backend(config, "openai:ft:gpt:x").model == "ft:gpt:x"


def test_the_base_url_variable_moves_the_endpoint_and_makes_the_key_optional() -> None:
    moved = {"OPENAI_BASE_URL": "http://localhost:1234/v1/"}
    there = backend(load(None, moved), "openai:m")
    assert (there.endpoint, there.credential) == ("http://localhost:1234/v1", None)
    assert backend(load(None, moved | {"OPENAI_API_KEY": "k"}), "openai:m").credential == Key(
        "authorization", SecretStr("k")
    )


def test_a_key_is_looked_up_each_time_its_backend_is_resolved() -> None:
    environ = {"OPENAI_API_KEY": "old"}
    config = load(None, environ)
    assert backend(config, "openai:m").credential == Key("authorization", SecretStr("old"))
    environ["OPENAI_API_KEY"] = " new\n"
    assert backend(config, "openai:m").credential == Key("authorization", SecretStr("new"))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("claud", "No backend 'claud' in actors.toml; did you mean 'claude'?"),
        ("xyz", "No backend 'xyz' in actors.toml; it has: claude, local, gpt, main"),
        ("opnai:gpt-5", "No provider 'opnai'; did you mean 'openai'?"),
        ("mystery:m", f"No provider 'mystery'; providers: {', '.join(PROVIDERS)}"),
        ("openai", "Target 'openai' names a provider but no model; use openai:MODEL"),
        ("openai:", "Target 'openai:' has no valid model name; use openai:MODEL"),
        ("openai:a\nb", "Target 'openai:a\\nb' has no valid model name; use openai:MODEL"),
        ("", "No backend '' in actors.toml; it has: claude, local, gpt, main"),
    ],
)
def test_an_unknown_target_error_suggests_the_nearest_name(config: Config, target: str, message: str) -> None:
    with pytest.raises(UnknownTarget) as refused:
        config.resolve(target)
    assert str(refused.value) == message


def test_an_unknown_target_error_without_a_file_suggests_a_fix() -> None:
    with pytest.raises(UnknownTarget, match="no file is used; use PROVIDER:MODEL"):
        load(None, {}).resolve("claude")


@pytest.mark.parametrize("value", [None, "", "  \n"])
def test_an_error_about_a_missing_key_names_its_environment_variable(
    tmp_path: Path, value: str | None
) -> None:
    environ = {} if value is None else {"TEAM_KEY": value, "OPENAI_API_KEY": value}
    config = load(write_config(tmp_path, FILE), environ)
    with pytest.raises(MissingKey, match="Backend 'claude' needs a key in the environment variable TEAM_KEY"):
        config.resolve("claude")
    with pytest.raises(MissingKey, match="TEAM_KEY"):
        config.resolve("main")
    with pytest.raises(MissingKey, match=r"Provider 'openai' needs a key in .* OPENAI_API_KEY"):
        config.resolve("openai:m")


@pytest.mark.parametrize("key", [f"{CANARY}\r\nX-Evil: 1", f"{CANARY} x", f"{CANARY}é", f"{CANARY}\0"])
def test_a_key_that_is_not_a_valid_header_value_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY contains characters") as refused:
        load(None, {"OPENAI_API_KEY": key}).resolve("openai:m")
    assert "CANARY" not in str(refused.value)


# --- files -------------------------------------------------------------------------------------------

B = '[backends.b]\nkind = "openai"\nmodel = "m"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[backends.b\n",
            "actors.toml is not valid TOML: Expected ']' at the end of a table declaration (at line 1",
        ),
        (f"a = {'[' * 5000}", "actors.toml is not valid TOML: it is nested too deeply"),
        ("a = 1\na = 2\n", "actors.toml is not valid TOML: Cannot overwrite a value (at line 2"),
        (
            B + 'modle = "x"\n',
            "actors.toml, line 4, column 1: [backends.b] has no key 'modle'; did you mean 'model'?",
        ),
        (
            "[backend.b]\n",
            "actors.toml, line 1, column 1: the file has no key 'backend'; did you mean 'backends'?",
        ),
        (
            '[backends.b]\nkind = "openai"\n',
            "actors.toml, line 1, column 1: [backends.b] lacks the key 'model'",
        ),
        (
            B + "  max_tokens = 0\n",
            "actors.toml, line 4, column 3: [backends.b] max_tokens: must be a whole number of at least 1",
        ),
        (
            B + "max_tokens = -1\n",
            "line 4, column 1: [backends.b] max_tokens: must be a whole number of at least 1",
        ),
        (
            B + "max_tokens = nan\n",
            "line 4, column 1: [backends.b] max_tokens: must be a whole number of at least 1",
        ),
        (
            B + 'max_tokens = "9"\n',
            "line 4, column 1: [backends.b] max_tokens: must be a whole number of at least 1",
        ),
        (B + "seed = -1\n", "[backends.b] seed: must be a whole number from 0 to 2147483647"),
        (B + "seeds = 1\n", "[backends.b] has no key 'seeds'; did you mean 'seed'?"),
        (B + "metadata = { team = 1 }\n", "[backends.b] metadata: must be a mapping of at most 16 names"),
        (
            B + "[backends.b.limits]\nidle_timeout = inf\n",
            "line 5, column 1: [backends.b.limits] idle_timeout: must be a finite",
        ),
        (
            B + "limits.idel_timeout = 3\n",
            "line 4, column 1: [backends.b.limits] has no key 'idel_timeout'; did you mean 'idle_timeout'?",
        ),
        (
            B + "limits = { idel_timeout = 3 }\n",
            "line 4, column 1: [backends.b.limits] has no key 'idel_timeout'",
        ),
        (B + 'thinking = "maybe"\n', "[backends.b] thinking: must be 'native', 'drop' or 'text'"),
        (B + 'dialect = "openay"\n', "[backends.b] dialect: No dialect 'openay'; did you mean 'openai'?"),
        (
            B + f'auth = "{CANARY}"\n',
            "line 4, column 1: [backends.b] auth: must be the name of an environment variable",
        ),
        (B + f'api_key = "{CANARY}"\n', "line 4, column 1: [backends.b] has no key 'api_key'; keys: kind"),
        (
            '[prices."m"]\ninput = -1\noutput = 1\n',
            "line 2, column 1: [prices.m] input: must be a finite number of at least 0",
        ),
        ('[prices."m"]\ninput = 1\n', "[prices.m] lacks the key 'output'"),
        ("[tenants.t]\nbudget = { seconds = 5 }\n", "[tenants.t.budget] has no key 'seconds'"),
        (
            "[tenants.t]\nbudget = { tokens = 0 }\n",
            "[tenants.t.budget] tokens: must be a whole number of at least 1",
        ),
        (
            '[tenants.t]\nbudget = { per = "day" }\n',
            "[tenants.t] budget: a shared budget must have at least one of rounds, tokens, money",
        ),
        ("[compaction]\nkeep_turn = 1\n", "[compaction] has no key 'keep_turn'; did you mean 'keep_turns'?"),
        (
            '[backends.b]\nkind = "opnai"\nmodel = "m"\n',
            "[backends.b] kind: unknown kind; did you mean 'openai'?",
        ),
        (f'[backends.b]\nkind = "{CANARY}"\nmodel = "m"\n', "[backends.b] kind: must be one of openai,"),
        (f'[backends.b]\napi_key = "{CANARY}"\n', "[backends.b] lacks the key 'kind'"),
        (f'backends = "{CANARY}"\n', "the file backends: must be a valid dictionary"),
        (B + 'base_url = "ftp://x"\n', "base_url: must be an http or https URL"),
        (B + f'base_url = "https://u:{CANARY}@x"\n', "base_url: must be a URL without user, password"),
        (B + f'base_url = "https://x/?key={CANARY}#"\n', "base_url: must be a URL without user, password"),
        (B + 'base_url = "https://x:99999"\n', "base_url: must be an http or https URL"),
        (B + 'base_url = "https://x\\r\\ny"\n', "base_url: must be an http or https URL"),
        (B + 'account = "a\\nb"\n', "account: must be 1 to 200 printable characters"),
        ('[backends."a:b"]\nkind = "openai"\nmodel = "m"\n', "line 1, column 1: 'a:b' is not a valid name"),
        (B + '[pools.p]\nmembers = ["c"]\n', "actors.toml, line 5, column 1: no backend 'c'; backends: b"),
        (B + "[pools.p]\nmembers = []\n", "[pools.p] members: Tuple should have at least 1 item"),
        (
            B + '[pools.p]\nmembers = ["b", "b"]\n',
            "line 5, column 1: the pool lists a member twice",
        ),
        (B + '[pools.b]\nmembers = ["b"]\n', "line 4, column 1: 'b' is the name of a backend and of a pool"),
        (
            B + 'reasoning = { effort = "hihg" }\n',
            "line 4, column 1: [backends.b.reasoning] effort: must be one of none, minimal, low, medium, high, xhigh, "
            "max, or the provider's own word, or None; did you mean 'high'?",
        ),
        (
            B + 'reasoning = { mode = "off", tokens = 2000 }\n',
            'line 4, column 1: [backends.b] reasoning: tokens is only for mode = "manual"',
        ),
        (b"\xff", "actors.toml, line 1: the file is not UTF-8"),
        (B + f'{CANARY} = "api_key"\n', "line 4, column 1: [backends.b] has no key (not shown, it may be"),
        (f'{CANARY} = "x"\n', "line 1, column 1: the file has no key (not shown, it may be a secret); keys:"),
        (
            f'[backends]\n{CANARY} = "x"\n',
            "line 2, column 1: [backends] (not shown, it may be a secret): must",
        ),
        (B + f"[backends.b.limits]\n{CANARY} = 1\n", "line 5, column 1: [backends.b.limits] has no key (not"),
        (f'[dialects.x]\nbase = "openai"\n{CANARY} = 1\n', "[dialects.x] has no field (not shown"),
        (f'[dialects.x]\nbase = "{CANARY}"\n', "[dialects.x] base: No dialect (not shown"),
        (B + f'dialect = "{CANARY}"\n', "line 4, column 1: [backends.b] dialect: No dialect (not shown"),
        (
            B + f'[pools.p]\nmembers = ["{CANARY}"]\n',
            "no backend (not shown, it may be a secret); backends: b",
        ),
        (f'[backends."{CANARY} "]\nkind = "openai"\n', "[backends.(not shown)] lacks the key 'model'"),
        *[
            (
                f"[compaction]\nthreshold = {share}\n",
                "line 2, column 1: [compaction] threshold: must be a share of the window above 0 and up to 1, as 0.8, "
                "or 'never'",
            )
            for share in ("80", "0", "-0.5", "nan", '"off"', "true")
        ],
        (
            B + '[compaction]\nsummarizer = "d"\n',
            "actors.toml, line 5, column 1: no backend 'd'; backends: b",
        ),
        (
            B + '[pools.p]\nmembers = ["b"]\n[compaction]\nsummarizer = "p"\n',
            "actors.toml, line 7, column 1: no backend 'p'; backends: b",
        ),
        (
            '[journal]\nfile = "x"\n',
            "[journal] has no key 'file'; keys: path, url, durability, lease, retention",
        ),
        (
            "[tenants.a]\nbudget = { token = 5 }\n",
            "[tenants.a.budget] has no key 'token'; did you mean 'tokens'?",
        ),
        ('[prices."gpt*"]\ninput = 1\noutput = 1\nread = 1\n', "has no key 'read'; keys: input, output"),
        (
            f"x = {{ {CANARY} = 1, {CANARY} = 2 }}\n",
            "is not valid TOML: Duplicate inline table key (at line 1",
        ),
        (f"[{CANARY}]\n[{CANARY}]\n", "is not valid TOML: Cannot declare twice (at line 2"),
        (
            f"{CANARY} = {{}}\n{CANARY}.a = 1\n",
            "is not valid TOML: Cannot mutate immutable namespace (at line 2",
        ),
    ],
)
def test_an_invalid_file_is_refused_with_a_one_line_error_that_names_the_position(
    tmp_path: Path, text: str | bytes, message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        load(write_config(tmp_path, text), ENVIRON)
    shown = str(refused.value)
    assert message in shown
    assert shown.startswith("actors.toml")
    assert "\n" not in shown
    assert len(shown) < 400
    everything = "".join(traceback.format_exception(refused.value))
    assert "CANARY" not in everything
    assert "input_value" not in everything


def test_the_error_about_an_unreadable_configuration_file_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Cannot read .*none\.toml: no such file or directory"):
        load(tmp_path / "none.toml", {})
    with pytest.raises(ConfigError, match="is a directory"):
        load(tmp_path, {})
    with pytest.raises(ConfigError, match="larger than"):
        load(write_config(tmp_path, "#" * 2_000_000), {})


def test_an_empty_file_is_a_valid_configuration(tmp_path: Path) -> None:
    assert load(write_config(tmp_path, ""), {}).targets == ()


# --- keys --------------------------------------------------------------------------------------------


def test_no_repr_dump_or_binding_contains_a_key(config: Config) -> None:
    claude = backend(config, "anthropic:claude-sonnet-5")
    pool = config.resolve("main")
    assert isinstance(claude.credential, Key)
    assert claude.credential.value.get_secret_value() == CANARY
    for shown in (
        repr(config),
        repr(claude),
        str(claude),
        repr(pool),
        f"{pool}",
        claude.model_dump_json(),
        repr(claude.model_dump()),
        repr(claude.binding),
    ):
        assert "CANARY" not in shown
        assert "sk-" not in shown


def test_an_invalid_backend_built_in_code_does_not_show_its_key() -> None:
    wrong = {"name": "x", "kind": "openai", "dialect": "openai_chat", "model": "m", "key": CANARY}
    with pytest.raises(ValidationError) as refused:
        Backend.model_validate(wrong)
    assert "CANARY" not in str(refused.value)


def test_configuration_objects_are_immutable(config: Config) -> None:
    with pytest.raises(ValidationError):
        backend(config, "claude").model = "other"
    with pytest.raises(AttributeError):
        config.source = None  # type: ignore[misc]  # the case under test


def test_file_settings_can_be_pickled_without_secrets(config: Config) -> None:
    assert b"sk-" not in pickle.dumps(config.settings)


# --- accounts ----------------------------------------------------------------------------------------

AUTH = """
[backends.b]
kind = "anthropic"
model = "m"
base_url = "http://127.0.0.1:1"
auth = {auth}
"""
VARIABLES = {"TOKEN": "t-1", "AWS_ACCESS_KEY_ID": "AKIA1", "AWS_SECRET_ACCESS_KEY": "s-1"}


@pytest.mark.parametrize(
    ("auth", "credential"),
    [
        ('"TOKEN"', Key("x-api-key", SecretStr("t-1"))),
        ('{ key = "TOKEN" }', Key("x-api-key", SecretStr("t-1"))),
        ('{ bearer = "TOKEN" }', Key("authorization", SecretStr("t-1"))),
        ('{ command = ["broker", "token"], lifetime = 60 }', TokenCommand(("broker", "token"), 60.0)),
        ('{ aws = "eu-west-1" }', Aws("eu-west-1", AwsKeys("AKIA1", SecretStr("s-1")))),
    ],
)
def test_the_auth_setting_is_a_key_a_bearer_token_a_command_or_an_aws_signature(
    tmp_path: Path, auth: str, credential: object
) -> None:
    path = tmp_path / "actors.toml"
    path.write_text(AUTH.replace("{auth}", auth))
    assert backend(load(path, VARIABLES), "b").credential == credential


@pytest.mark.parametrize(
    ("auth", "message"),
    [
        ("{}", "[backends.b] auth: must have exactly one of key, bearer, command and aws"),
        (
            '{ key = "A", aws = "r" }',
            "[backends.b] auth: must have exactly one of key, bearer, command and aws",
        ),
        ('{ kez = "A" }', "[backends.b.auth] has no key 'kez'; did you mean 'key'?"),
        ("{ command = [] }", "[backends.b.auth] command: "),
        (
            '{ bearer = "sk-live-1234567" }',
            "[backends.b.auth] bearer: must be the name of an environment variable",
        ),
    ],
)
def test_an_ambiguous_or_empty_auth_setting_is_refused_with_a_one_line_error(
    tmp_path: Path, auth: str, message: str
) -> None:
    path = tmp_path / "actors.toml"
    path.write_text(AUTH.replace("{auth}", auth))
    with pytest.raises(ConfigError) as refused:
        load(path, VARIABLES)
    assert message in str(refused.value)
    assert "sk-live" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_backend_without_a_default_address_needs_a_base_url(tmp_path: Path) -> None:
    path = tmp_path / "actors.toml"
    path.write_text('[backends.b]\nkind = "openai_compatible"\nmodel = "m"\n')
    with pytest.raises(ConfigError, match=r"Backend 'b' of kind 'openai_compatible' needs a base_url"):
        load(path, {}).backend("b")
    with pytest.raises(ConfigError, match="set VERTEX_BASE_URL"):
        load(None, {"VERTEX_ACCESS_TOKEN": "t"}).backend("vertex:m")


# --- the upstream of a gateway -----------------------------------------------------------------------

ROUTED = '[backends.r]\nkind = "openrouter"\nmodel = "m"\nauth = "TEAM_KEY"\n'


def test_an_upstream_is_part_of_the_binding(tmp_path: Path) -> None:
    pinned = load(write_config(tmp_path, ROUTED + 'upstream = "one"\n'), ENVIRON).backend("r")
    free = load(write_config(tmp_path, ROUTED), ENVIRON).backend("r")
    assert (pinned.binding.upstream, free.binding.upstream) == ("one", "")
    assert (str(pinned.binding), str(free.binding)) == ("r:m via one", "r:m")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[backends.b]\nkind = "openai"\nmodel = "m"\nupstream = "one"\n',
            "line 4, column 1: [backends.b] upstream: dialect 'openai_responses' cannot select an upstream",
        ),
        (
            '[dialects.d]\nbase = "openrouter"\nrequest.upstream_pin = "none"\n'
            + ROUTED
            + 'dialect = "d"\nupstream = "one"\n',
            "[backends.r] upstream: dialect 'd' cannot select an upstream",
        ),
        (ROUTED + 'upstream = ""\n', "[backends.r] upstream"),
    ],
)
def test_an_upstream_setting_is_refused_if_requests_of_the_dialect_cannot_contain_it(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        load(write_config(tmp_path, text), ENVIRON)
    assert message in str(refused.value)


# --- custom dialects ---------------------------------------------------------------------------------


def test_a_custom_dialect_can_change_any_field_of_its_base(tmp_path: Path) -> None:
    path = tmp_path / "actors.toml"
    path.write_text(
        '[dialects.house]\nbase = "openai"\nrequest.max_tools = 3\n'
        'turns = {last_roles = ["user"], user_after_tool = "filler"}\n'
        '[backends.b]\nkind = "openai"\nmodel = "m"\nbase_url = "http://127.0.0.1:1"\ndialect = "house"\n'
    )
    config = load(path, {})
    made = config.dialect(backend(config, "b").dialect)
    assert (made.name, made.family, made.request.max_tools) == ("house", "openai_chat", 3)
    assert made.turns.last_roles == frozenset({"user"})
    assert made == replace(
        OPENAI_CHAT,
        name="house",
        turns=replace(OPENAI_CHAT.turns, last_roles=frozenset({"user"}), user_after_tool="filler"),
        request=replace(OPENAI_CHAT.request, max_tools=3),
    )


def test_prompt_caching_is_configured_in_a_field_of_the_dialect() -> None:
    made = custom_dialect("x", {"base": "bedrock", "caching": {"marks": "none", "long_lifetime": "none"}})
    assert made.caching == ConverseCaching()
    assert (
        custom_dialect(
            "y", {"base": "anthropic", "caching": {"marks": "none", "moving": False, "long_lifetime": "none"}}
        ).caching
        == AnthropicCaching()
    )


@pytest.mark.parametrize("base", PROFILES)
def test_every_profile_can_be_the_base_of_a_custom_dialect(base: str) -> None:
    assert custom_dialect("x", {"base": base}) == replace(PROFILES[base], name="x")


@pytest.mark.parametrize("name", ["openai", "anthropic", "converse"])
def test_a_custom_dialect_may_not_have_the_name_of_a_built_in_profile(tmp_path: Path, name: str) -> None:
    path = tmp_path / "actors.toml"
    path.write_text(f'[dialects.{name}]\nbase = "openai"\n')
    with pytest.raises(ConfigError, match="is the name of a built-in profile"):
        load(path, {})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("request.max_tools = 3", "[dialects.x] lacks the key 'base'"),
        ('base = "opnai"', "[dialects.x] base: No dialect 'opnai'; did you mean 'openai'?"),
        (
            'base = "openai"\nmax_tolls = 3',
            "[dialects.x] has no field 'max_tolls'; did you mean 'request.max_tools'?",
        ),
        ('base = "openai"\nfamily = "anthropic"', "[dialects.x] has no field 'family'"),
        (
            'base = "openai"\nrequest.max_tools = "many"',
            "[dialects.x] request.max_tools: must be a valid integer",
        ),
        ('base = "openai"\nids.pattern = "["', "[dialects.x] ids.pattern: must be a regular expression"),
        ('base = "openai"\nmodel.sampling = "never"', "[dialects.x] has no field 'model'"),
        ('base = "openai"\nrequest.max_tools = -3', "[dialects.x] request.max_tools: must be at least 1"),
        (
            'base = "openai"\nturns.last_roles = ["tool"]',
            "[dialects.x] turns.last_roles: must contain 'user'",
        ),
        (
            'base = "openai"\nturns.filler_between = " "',
            "[dialects.x] turns.filler_between: must not be blank",
        ),
        ('base = "openai"\nturns.max_string = 10', "[dialects.x] turns.max_string: must be at least 524288"),
        ('base = "openai"\nids.max_len = 9', "reject the ids of ids.style 'openai', such as 'call_"),
        ('base = "openai"\nids.pattern = "[0-9]+"', "reject the ids of ids.style 'openai', such as 'call_"),
        ('base = "openai"\nids.tool_name_pattern = "x"', "[dialects.x] ids.tool_name_pattern: rejects "),
        (
            'base = "openai"\nrequest.max_tolls = 3',
            "[dialects.x] has no field 'max_tolls' in 'request'; did you mean 'request.max_tools'?",
        ),
        ('base = "openai"\nids.style.x = 1', "[dialects.x] ids.style: must be 'openai', 'anthropic'"),
        ('base = "openai"\nids = 9', "[dialects.x] ids: must be a table; write its fields as ids.NAME"),
        (
            'base = "mistral"\nreasoning.required = "with_calls"',
            "[dialects.x] reasoning.required: 'with_calls' needs reasoning.carrier 'reasoning_content'",
        ),
        (
            'base = "anthropic"\nreasoning.required = "with_calls"',
            "[dialects.x] reasoning.placeholder: must not be blank",
        ),
        (
            'base = "anthropic"\ncaching = { marks = "point" }',
            "[dialects.x] caching.marks: must be 'none' or 'block'",
        ),
        ('base = "gemini"\ncaching = { cache_key = true }', "caching.cache_key: must be False"),
        ('base = "openai"\ncaching = { moving = true }', "caching.moving: needs caching.marks 'block'"),
        ('base = "openai"\ncaching = { marks = "part" }', "caching.marks: 'part' needs turns.empty_result"),
        (
            'base = "openai"\ncaching = { long_lifetime = "ttl" }',
            "caching.long_lifetime: 'ttl' needs caching.marks",
        ),
        (
            'base = "openai"\ncaching = { marks = "all" }',
            "[dialects.x] caching.marks: must be 'none' or 'part'",
        ),
    ],
)
def test_an_invalid_dialect_is_refused_with_a_one_line_error(
    tmp_path: Path, table: str, message: str
) -> None:
    path = tmp_path / "actors.toml"
    path.write_text(f"[dialects.x]\n{table}\n")
    with pytest.raises(ConfigError) as refused:
        load(path, {})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_backend_is_resolved_again_only_if_its_environment_variables_change() -> None:
    environ = {"OPENAI_API_KEY": "one", "OTHER": "x"}
    config = Config(FileSettings(), environ)
    first = config.backend("openai:gpt")
    environ["OTHER"] = "y"
    assert config.backend("openai:gpt") is first
    environ["OPENAI_API_KEY"] = "two"
    second = config.backend("openai:gpt")
    assert second is not first
    assert isinstance(second.credential, Key)
    assert second.credential.value.get_secret_value() == "two"
    environ["OPENAI_BASE_URL"] = "http://127.0.0.1:9"  # the variable was read before, and was not set
    assert config.backend("openai:gpt").endpoint == "http://127.0.0.1:9"
    del environ["OPENAI_API_KEY"], environ["OPENAI_BASE_URL"]
    with pytest.raises(MissingKey):
        config.backend("openai:gpt")


def test_a_truncated_list_of_names_states_how_many_names_are_omitted() -> None:
    names = [f"backend{number:03}" for number in range(100)]
    assert hint("zz", names, "it has") == f"it has: {', '.join(names[:40])} and 60 more"
    assert hint("zz", [], "it has") == "it has: none"
