"""Settings of the strict servers for foreign reasoning and special hosts."""

from collections.abc import Mapping
from typing import Any

from actors.strict.rules.base import CompatibleProfile, CompatibleSettings
from actors.strict.rules.bedrock_rules import BedrockSettings
from actors.strict.rules.gemini_rules import GeminiProfile, GeminiSettings
from actors.strict.rules.responses_shapes import ResponsesProfile, ResponsesSettings
from actors.testing import AnthropicSettings

_VENDORS = (
    *("mistral", "kimi", "deepseek", "openrouter", "xai", "qwen", "glm", "minimax", "groq"),
    *("vllm", "open_models", "azure", "llama_cpp", "ollama"),
)
TRUSTING: Mapping[str, Any] = {  # Any: each dialect has settings of its own type
    **dict.fromkeys(
        ("anthropic", "vertex_anthropic", "bedrock_anthropic"), AnthropicSettings(signatures="trust")
    ),
    "bedrock": BedrockSettings(signatures="trust"),
    "openai_responses": ResponsesSettings(signatures="trust"),
    "gemini": GeminiSettings(signatures="trust"),
    "gemini_2": GeminiSettings(GeminiProfile(signatures=False), signatures="trust"),
    "vertex": GeminiSettings(signatures="trust", vertex=True),
    **dict.fromkeys(_VENDORS, CompatibleSettings(signatures="trust")),
}
"""Any signature will do."""
LOOKS_UP_ITEMS = ResponsesSettings(ResponsesProfile(looks_up_items=True), signatures="trust")
"""What has an id is looked up by it, and was never stored."""

BEFORE_MISTRAL = CompatibleSettings(upstream_vendor="mistral", signatures="trust")
"""A gateway whose upstream is Mistral."""
ALTERNATES = CompatibleSettings(CompatibleProfile(template="alternate"), signatures="trust")
"""The model's chat template wants users and models to alternate, results among them."""
ALTERNATES_AROUND_TOOLS = CompatibleSettings(
    CompatibleProfile(template="alternate_around_tools"), signatures="trust"
)
"""The same, calls and results aside."""
