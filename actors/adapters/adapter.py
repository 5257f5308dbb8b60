"""Adapters by wire family: how each provider says it.

An `Adapter` is pure: a rendered transcript to a request, bytes to events, an error to an action. It repairs
nothing, retries nothing and opens nothing. A family's modules are imported when its first adapter is asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

from actors.adapters.classify import classify
from actors.adapters.failure import Failure
from actors.adapters.request import Request, Settings
from actors.core.dialect import Dialect
from actors.core.identity import Binding
from actors.core.stream import Decoder
from actors.core.transcript import Encoder


@dataclass(frozen=True, slots=True)
class Adapter:
    """One dialect's codec.

    Args:
        dialect: The profile it serves.
        encoder: Writes entries into the `messages` array.
        request: Makes the request that sends a lane's segments, its last message closed.
    """

    dialect: Dialect
    encoder: Encoder
    request: Callable[[Sequence[bytes], Settings], Request]

    def decoder(self, binding: Binding, first_call: int, turn: int, *, stream: bool) -> Decoder:
        """Return a decoder for one answer; see `actors.adapters.decode`."""
        from actors.adapters.decode import decode, decode_body

        make = decode if stream else decode_body
        return make(self.dialect, binding, first_call=first_call, turn=turn)

    def classify(self, status: int, headers: Mapping[str, str], body: bytes, now: float) -> Failure:
        """Return what an error response means; `now` is Unix time, for a Retry-After that is a date."""
        return classify(status, headers, body, self.dialect, now=now)


@lru_cache(maxsize=256)
def adapter(dialect: Dialect) -> Adapter:
    """Return the adapter of a dialect."""
    match dialect.family:
        case "openai_chat":
            return _openai_chat(dialect)
        case "anthropic":
            return _anthropic(dialect)
        case _:
            assert_never(dialect.family)


def _openai_chat(dialect: Dialect) -> Adapter:
    from actors.adapters.openai_chat.encode import OpenAIChatEncoder, request

    return Adapter(dialect, OpenAIChatEncoder(dialect), request)


def _anthropic(dialect: Dialect) -> Adapter:
    from actors.adapters.anthropic.encode import AnthropicEncoder, request

    def sent(segments: Sequence[bytes], settings: Settings) -> Request:
        return request(segments, settings, dialect.max_tokens_default or 8192)

    return Adapter(dialect, AnthropicEncoder(dialect), sent)
