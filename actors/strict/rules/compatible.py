"""Validate requests to the vendors that are compatible with Chat Completions."""

from actors.strict.rules import openai_chat
from actors.strict.rules.base import CompatibleSettings, Mode, ServerRule
from actors.strict.rules.host import VendorHost
from actors.strict.rules.mistral import MISTRAL
from actors.strict.rules.openrouter import BEHIND_GATEWAY, with_upstream_rules
from actors.strict.rules.reasoning_vendors import DEEPSEEK, KIMI
from actors.strict.rules.self_hosted import LLAMA_CPP, OLLAMA, OPEN_MODELS, VLLM
from actors.strict.rules.vendors import AZURE, GLM, GROQ, MINIMAX, OPENAI_COMPATIBLE, QWEN, XAI

_OWN_WALKS = (MISTRAL, KIMI, DEEPSEEK)
_SAME_WALK = (OPENAI_COMPATIBLE, XAI, QWEN, GLM, MINIMAX, GROQ, VLLM, OPEN_MODELS, AZURE, LLAMA_CPP, OLLAMA)
_DIRECT: dict[str, VendorHost] = {host.name: host for host in (*_OWN_WALKS, *_SAME_WALK)}

HOSTS: dict[str, VendorHost] = {
    **_DIRECT,
    "openrouter": with_upstream_rules({**_DIRECT, BEHIND_GATEWAY.name: BEHIND_GATEWAY}),
}
"""The rules and features of each vendor, by the name of its dialect."""

COMPATIBLE_RULES: dict[str, dict[str, ServerRule]] = {name: dict(host.rules) for name, host in HOSTS.items()}
"""The rules of each vendor, by dialect name and rule id."""


def validate(body: bytes, dialect: str, mode: Mode, settings: CompatibleSettings) -> None:
    """Check one request body against one vendor's rules.

    Raises:
        RuleBroken: At the first broken rule, with the vendor's error message.
    """
    openai_chat.validate(body, mode, settings, HOSTS[dialect])
