"""The words by which providers say that a prompt is too long for the model."""

OVERFLOW = (
    r"context_length_exceeded",
    r"prompt is too long",
    r"input length and .max_tokens. exceed context limit",
    r"input token count .* exceeds the maximum",
    r"maximum context length is",
    r"exceeds the context window",
    r"maximum prompt length is",
    r"Input is too long for requested model",
    r"exceeded model token limit",
    r"too large for model with .* maximum context length",
    r"exceeds the available context size",
    r"exceed_context_size_error",
    r"context window exceeds limit",
    r"reduce the length of the messages",
    r"greater than the context length",
)
"""Regular expressions, searched in `type code message` without regard to case."""
