"""Define the built-in providers, which need no `actors.toml`: their addresses, dialects and environment variables."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlsplit

from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import PROFILES

Kind: TypeAlias = str
"""A kind of backend: a key of `PROVIDERS`."""


@dataclass(frozen=True, slots=True)
class OwnHost:
    """A vendor's own hosts, whose dialect differs from that of servers that imitate the vendor's API.

    Args:
        domain: The host. Its subdomains, such as regional hosts, are included.
        dialect: Name of the dialect at these hosts.
    """

    domain: str
    dialect: str

    def serves(self, endpoint: str) -> bool:
        """Return True if the host of a base URL is the domain or a subdomain of it; False for an invalid URL."""
        try:
            host = (urlsplit(endpoint).hostname or "").rstrip(".")
        except ValueError:  # the URL has an unclosed bracket
            return False
        return host == self.domain or host.endswith(f".{self.domain}")


@dataclass(frozen=True, slots=True)
class Provider:
    """The defaults of a kind of backend.

    Args:
        dialect: Name of the dialect.
        endpoint: Base URL; empty if each customer has a different one. In that case, the setting `base_url` or the
            environment variable `url_variable` must provide the URL.
        key_variable: Environment variable with the key; empty for local servers without a key.
        url_variable: Environment variable that overrides the base URL.
        header: The header that carries the key; in `authorization`, the key is sent as a bearer token.
        price_list: The provider's id in the package `genai-prices`; empty if the package lists no prices for this kind.
        own_host: The vendor's own hosts, if their dialect differs from `dialect`; otherwise None.
    """

    dialect: str
    endpoint: str
    key_variable: str
    url_variable: str
    header: str = "authorization"
    price_list: str = ""
    own_host: OwnHost | None = None

    def dialect_at(self, endpoint: str) -> str:
        """Return the name of the dialect for requests to a base URL."""
        own = self.own_host
        return own.dialect if own is not None and own.serves(endpoint) else self.dialect

    @property
    def dialects(self) -> tuple[str, ...]:
        """Names of the dialects that backends of this kind may have."""
        return (self.dialect,) if self.own_host is None else (self.dialect, self.own_host.dialect)


def _define_provider(
    dialect: str,
    endpoint: str,
    variable_prefix: str,
    price_list: str = "",
    *,
    has_key: bool = True,
    own_host: OwnHost | None = None,
) -> Provider:
    key_variable = f"{variable_prefix}_API_KEY" if has_key else ""
    return Provider(
        dialect,
        endpoint,
        key_variable,
        f"{variable_prefix}_BASE_URL",
        price_list=price_list,
        own_host=own_host,
    )


_OPENAI = "https://api.openai.com/v1"
_BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com"
_BEDROCK_URL = "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"

PROVIDERS: Mapping[Kind, Provider] = {
    # The newest models need the Responses API for tools. Few other servers implement it; most copy Chat Completions.
    "openai": _define_provider(
        "openai_chat",
        _OPENAI,
        "OPENAI",
        price_list="openai",
        own_host=OwnHost("api.openai.com", "openai_responses"),
    ),
    "openai_chat": _define_provider("openai_chat", _OPENAI, "OPENAI", price_list="openai"),
    "openai_responses": _define_provider("openai_responses", _OPENAI, "OPENAI", price_list="openai"),
    "anthropic": Provider(
        "anthropic",
        "https://api.anthropic.com",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "x-api-key",
        price_list="anthropic",
    ),
    "vertex_anthropic": Provider(
        "vertex_anthropic", "", "VERTEX_ACCESS_TOKEN", "VERTEX_ANTHROPIC_BASE_URL", price_list="google"
    ),
    "bedrock_anthropic": Provider(
        "bedrock_anthropic", _BEDROCK, "AWS_BEARER_TOKEN_BEDROCK", _BEDROCK_URL, price_list="aws"
    ),
    "foundry": Provider(
        "anthropic",
        "",
        "ANTHROPIC_FOUNDRY_API_KEY",
        "ANTHROPIC_FOUNDRY_BASE_URL",
        "x-api-key",
        price_list="anthropic",
    ),
    "azure": Provider(
        "azure", "", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_BASE_URL", "api-key", price_list="azure"
    ),
    "azure_responses": Provider(
        "openai_responses", "", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_BASE_URL", "api-key", price_list="azure"
    ),
    "gemini": Provider(
        "gemini",
        "https://generativelanguage.googleapis.com",
        "GEMINI_API_KEY",
        "GEMINI_BASE_URL",
        "x-goog-api-key",
        price_list="google",
    ),
    "vertex": Provider("vertex", "", "VERTEX_ACCESS_TOKEN", "VERTEX_BASE_URL", price_list="google"),
    "mistral": _define_provider("mistral", "https://api.mistral.ai/v1", "MISTRAL", price_list="mistral"),
    "kimi": _define_provider("kimi", "https://api.moonshot.ai/v1", "MOONSHOT", price_list="moonshotai"),
    "deepseek": _define_provider("deepseek", "https://api.deepseek.com", "DEEPSEEK", price_list="deepseek"),
    "bedrock": Provider("bedrock", _BEDROCK, "AWS_BEARER_TOKEN_BEDROCK", _BEDROCK_URL, price_list="aws"),
    "openrouter": _define_provider(
        "openrouter", "https://openrouter.ai/api/v1", "OPENROUTER", price_list="openrouter"
    ),
    "xai": _define_provider("xai", "https://api.x.ai/v1", "XAI", price_list="x-ai"),
    "qwen": _define_provider("qwen", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE"),
    "glm": _define_provider("glm", "https://api.z.ai/api/paas/v4", "ZAI", price_list="zai"),
    "minimax": _define_provider("minimax", "https://api.minimax.io/v1", "MINIMAX", price_list="minimax"),
    "groq": _define_provider("groq", "https://api.groq.com/openai/v1", "GROQ", price_list="groq"),
    # Like DeepSeek, MiMo requires that later requests repeat its reasoning.
    "mimo": _define_provider("deepseek", "https://api.xiaomimimo.com/v1", "MIMO"),
    "together": _define_provider(
        "open_models", "https://api.together.ai/v1", "TOGETHER", price_list="together"
    ),
    "fireworks": _define_provider(
        "open_models", "https://api.fireworks.ai/inference/v1", "FIREWORKS", price_list="fireworks"
    ),
    "cerebras": _define_provider(
        "open_models", "https://api.cerebras.ai/v1", "CEREBRAS", price_list="cerebras"
    ),
    "nvidia": _define_provider("open_models", "https://integrate.api.nvidia.com/v1", "NVIDIA"),
    "huggingface": Provider("open_models", "https://router.huggingface.co/v1", "HF_TOKEN", "HF_BASE_URL"),
    "sambanova": _define_provider("open_models", "https://api.sambanova.ai/v1", "SAMBANOVA"),
    # Perplexity's own host removed Chat Completions on 2026-09-27; gateways still support it.
    "perplexity": _define_provider(
        "openai_compatible",
        "https://api.perplexity.ai/v1",
        "PERPLEXITY",
        price_list="perplexity",
        own_host=OwnHost("api.perplexity.ai", "openai_responses"),
    ),
    "vllm": _define_provider("vllm", "http://127.0.0.1:8000/v1", "VLLM", has_key=False),
    "sglang": _define_provider("vllm", "http://127.0.0.1:30000/v1", "SGLANG", has_key=False),
    "llama_cpp": _define_provider("llama_cpp", "http://127.0.0.1:8080/v1", "LLAMA_CPP", has_key=False),
    "ollama": _define_provider("ollama", "http://127.0.0.1:11434/v1", "OLLAMA", has_key=False),
    # Like Ollama, LM Studio accepts no image URLs.
    "lm_studio": _define_provider("ollama", "http://127.0.0.1:1234/v1", "LM_STUDIO", has_key=False),
    "openai_compatible": _define_provider("openai_compatible", "", "OPENAI_COMPATIBLE", has_key=False),
}
"""The defaults of each kind of backend, by the kind's name."""


def kind_of(dialect: Dialect) -> Kind:
    """Return a kind of backend that uses a dialect. If there is none, return a kind with the same wire format."""
    speaks = {kind: PROFILES[provider.dialect] for kind, provider in PROVIDERS.items()}
    own = [kind for kind, profile in speaks.items() if profile.name == dialect.name]
    return next(iter(own or [kind for kind, profile in speaks.items() if profile.family == dialect.family]))


_AWS_HOST = re.compile(
    r"https://[a-z0-9.-]+\.(?P<region>[a-z]{2}(?:-[a-z]+)+-\d+)\.(?:vpce\.)?amazonaws\.com(?:\.cn)?(?=[:/]|\Z)"
)


def aws_region(endpoint: str) -> str | None:
    """Return the AWS region in the host name of an endpoint; None if the host is not an AWS host."""
    found = _AWS_HOST.match(endpoint)
    return found["region"] if found else None
