"""Limit the context window of a strict server, which refuses longer requests with the provider's error.

    AnthropicServer(faults=window_faults("anthropic", 4000))

A token counts as four bytes of the body, which is close to the providers' own counts.
"""

from collections.abc import Callable

from actors.strict.faults import InjectedFault, Status
from actors.strict.rules.base import Json, dump

BYTES = 4
"""Bytes of a request body that count as one token."""

_WORDS: dict[str, str] = {
    "openai_chat": "This model's maximum context length is {limit} tokens. However, your messages resulted in {tokens} "
    "tokens. Please reduce the length of the messages.",
    "openai_responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "anthropic": "prompt is too long: {tokens} tokens > {limit} maximum",
    "gemini": "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit}).",
    "mistral": "Prompt contains {tokens} tokens and 0 draft tokens, too large for model with {limit} maximum context "
    "length",
    "kimi": "Invalid request: Your request exceeded model token limit: {limit}",
    "deepseek": "This model's maximum context length is {limit} tokens. However, you requested {tokens} tokens.",
    "bedrock": "Input is too long for requested model.",
    "openrouter": "This endpoint's maximum context length is {limit} tokens. However, you requested about {tokens} "
    "tokens.",
}
"""Error message of each dialect (OAC-15, OAR-13, ANT-36, GEM-12, MIS-33, KIM-12, DSK-09, BED-12)."""

DIALECTS = tuple(_WORDS)


def count_tokens(request: Json) -> int:
    """Return the number of tokens of a parsed request body."""
    return len(dump(request)) // BYTES


def window_faults(dialect: str, max_tokens: int) -> Callable[[int, Json], InjectedFault | None]:
    """Return a function for `faults` that refuses requests of more than `max_tokens` tokens."""
    code = "context_length_exceeded" if dialect in ("openai_chat", "openai_responses") else None

    def fault(number: int, request: Json) -> InjectedFault | None:
        del number
        if (tokens := count_tokens(request)) <= max_tokens:
            return None
        return Status(400, message=_WORDS[dialect].format(limit=max_tokens, tokens=tokens), code=code)

    return fault
