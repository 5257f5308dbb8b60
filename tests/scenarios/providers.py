"""List the providers of the scenarios, and the rules by which they reject the commonest faults."""

from collections.abc import Mapping

CLOUDS = ("vertex_anthropic", "bedrock_anthropic")
"""Who takes Anthropic's own form, under the rules of `anthropic`."""
CLAUDES = ("anthropic", *CLOUDS)
BLOCKS = ("anthropic", "bedrock", "gemini", "gemini_2", "vertex")
"""Who takes results as blocks of a user message."""
TEMPLATED = ("vllm", "open_models", "llama_cpp", "ollama")
"""Who hosts models whose chat template may demand strictly alternating roles."""
LIKE_OPENAI = ("openai_chat", "azure", "openai_compatible", "openrouter", "xai", "groq")
"""Who refuses in OpenAI's words."""

UNANSWERED: Mapping[str, str | None] = {
    **dict.fromkeys((*LIKE_OPENAI, *TEMPLATED), "OAC-01"),
    "openai_responses": "OAR-01",
    "anthropic": "ANT-01",
    "bedrock": "BED-01",
    "gemini": "GEM-01",
    "gemini_2": "GEM-01",
    "vertex": "GEM-01",
    "mistral": "MIS-02",
    "kimi": "KIM-01",
    "deepseek": "DSK-02",
    "qwen": "QWN-01",
    "glm": "GLM-02",
    "minimax": "MMX-03",
}
"""A call has no result where it must have one."""

ORPHANED: Mapping[str, str | None] = {
    **dict.fromkeys((*LIKE_OPENAI, *TEMPLATED), "OAC-02"),
    "openai_responses": "OAR-02",
    "anthropic": "ANT-02",
    "bedrock": "BED-02",
    "gemini": "GEM-03",
    "gemini_2": "GEM-03",
    "vertex": "GEM-03",
    "mistral": "MIS-05",
    "kimi": "KIM-02",
    "deepseek": "DSK-01",
    "qwen": "QWN-02",
    "glm": "GLM-02",
    "minimax": "MMX-01",
}
"""A result has no call where it must have one."""

NAMES: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "openai_chat",
            "azure",
            "openai_compatible",
            "openrouter",
            "xai",
            "groq",
            "glm",
            "minimax",
            *TEMPLATED,
        ),
        r"[\w-]{1,64}",
    ),
    "openai_responses": r"[\w-]{1,128}",
    **dict.fromkeys(CLAUDES, r"[\w-]{1,128}"),
    "bedrock": r"[\w-]{1,64}",
    **dict.fromkeys(("gemini", "gemini_2", "vertex"), r"[a-zA-Z_][\w.:-]{0,63}"),
    "mistral": r"[\w-]{1,64}",
    "kimi": r"[a-zA-Z][\w-]{0,63}",
    "deepseek": r"[\w-]{1,64}",
    "qwen": r"(?!search$)[\w-]{1,64}",
}
"""What every tool name must match in full."""

IDS: Mapping[str, str] = {
    **dict.fromkeys(
        ("openai_chat", "azure", "openai_compatible", "openrouter", "xai", "groq", "glm", "minimax", "qwen"),
        r".{1,40}",
    ),
    **dict.fromkeys(TEMPLATED, r".{1,40}"),
    "openai_responses": r".{1,64}",
    **dict.fromkeys(CLAUDES, r"[\w-]+"),
    "bedrock": r"[\w.:-]{1,64}",
    "gemini": r".*",
    "gemini_2": r".*",
    "vertex": r"",
    "mistral": r"[a-zA-Z0-9]{9}",
    "kimi": r".+:\d+",
    "deepseek": r".{1,64}",
}
"""What every call id must match in full; an empty one is none."""

KEEPS_ITS_IDS = frozenset({"kimi"})
"""Whose own ids go back whatever they look like: its models drop calls when theirs are changed."""
