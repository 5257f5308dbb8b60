"""Give strict servers a context window: refuse longer requests with the error of the provider.

    AnthropicServer(faults=window("anthropic", 4000))

A token counts as four bytes of the body, which is close to the counts of providers.
"""

from collections.abc import Callable

from actors.strict.faults import InjectedFault, Status
from actors.strict.rules.base import Json, dump

BYTES = 4
"""Bytes per token."""

_WORDS: dict[str, str] = {
    "openai_chat": "This model's maximum context length is {most} tokens. However, your messages resulted in {tokens} "
    "tokens. Please reduce the length of the messages.",
    "openai_responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "anthropic": "prompt is too long: {tokens} tokens > {most} maximum",
    "gemini": "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({most}).",
    "mistral": "Prompt contains {tokens} tokens and 0 draft tokens, too large for model with {most} maximum context "
    "length",
    "kimi": "Invalid request: Your request exceeded model token limit: {most}",
    "deepseek": "This model's maximum context length is {most} tokens. However, you requested {tokens} tokens.",
    "bedrock": "Input is too long for requested model.",
    "openrouter": "This endpoint's maximum context length is {most} tokens. However, you requested about {tokens} "
    "tokens.",
}
"""Error message by dialect (OAC-15, OAR-13, ANT-36, GEM-12, MIS-33, KIM-12, DSK-09, BED-12)."""

DIALECTS = tuple(_WORDS)


def tokens_of(request: Json) -> int:
    """Return the number of tokens of a request."""
    return len(dump(request)) // BYTES


def window(dialect: str, most: int) -> Callable[[int, Json], InjectedFault | None]:
    """Return faults that refuse requests of more than the given number of tokens."""
    code = "context_length_exceeded" if dialect in ("openai_chat", "openai_responses") else None

    def fault(number: int, request: Json) -> InjectedFault | None:
        del number
        if (tokens := tokens_of(request)) <= most:
            return None
        return Status(400, message=_WORDS[dialect].format(most=most, tokens=tokens), code=code)

    return fault
