"""Render scripts naively in each provider's format, without pairing, ordering or repair.

A client without a ledger sends such requests. The renderers are written from the providers' documentation alone and
share no code with the project, so their rejections depend only on the provider's rules.
"""

from collections.abc import Callable, Sequence

from tests.scenarios.naive import anthropic, converse, gemini, openai_chat, responses
from tests.scenarios.naive.request import Asked, encode_request
from tests.scenarios.script import Said

__all__ = ["Asked", "naive"]

_FAMILIES: dict[str, Callable[[Sequence[Said], Asked], dict[str, object]]] = {
    "anthropic": anthropic.request,
    "vertex_anthropic": anthropic.on("vertex-2023-10-16"),
    "bedrock_anthropic": anthropic.on("bedrock-2023-05-31"),
    "bedrock": converse.request,
    "gemini": gemini.request,
    "gemini_2": gemini.request,
    "vertex": gemini.request,
    "openai_responses": responses.request,
}


def naive(said: Sequence[Said], asked: Asked) -> bytes:
    """Return the naive request for a provider, valid or not."""
    return encode_request(_FAMILIES.get(asked.dialect, openai_chat.request)(said, asked))
