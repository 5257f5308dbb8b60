"""Simulate a provider's prompt cache, and count the tokens that an ideal cache would have read.

A prompt is a sequence of pieces (`rules/prompts.py`). The key of a cached prefix is a digest of all bytes up to the end
of a piece, so a lookup is a dictionary access. If a provider caches on request, the server looks up the longest entry
that ends at a cache mark or shortly before it, and then writes an entry that ends at the mark. Every use extends the
lifetime of an entry. In the digest, the request's parameters precede its messages, so a request with a different tool
choice finds no entries that include messages. An automatic cache stores prefixes at regular intervals, on the machine
that served the request. `prompt_cache_key` selects the machine; without a key, the machines serve requests in turn.

The ideal cache stores the prefix at the end of every piece. It ignores the request's parameters, because the client
could have left them unchanged. For each request, it counts the longest unexpired prefix of an earlier request with the
same model and `prompt_cache_key`. The ratio of read tokens to ideal tokens measures how well a client preserves its
prompts and sets its marks.

A token counts as four bytes. `clock` provides the time, so that tests can use virtual time.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

from actors.strict.rules.prompts import Piece, Prompt

BYTES_PER_TOKEN = 4
LOOKBACK = 20
"""Number of positions before a cache mark at which the server looks for an entry."""
STEP = 128
"""Tokens between two successive entries of an automatic cache."""
MACHINES = 4
"""Number of machines that serve requests without a key in turn."""


class CacheUse(NamedTuple):
    """The cache use of one prompt, in tokens. `ideal` is the number of tokens that an ideal cache would have read."""

    total: int
    read: int
    written: int
    ideal: int


class _Position(NamedTuple):
    """A position in a prompt where a cached prefix may end.

    Args:
        digest: Digest of the prompt up to this position, including the request's parameters.
        plain: The same digest without the parameters, for the ideal cache.
        tokens: Length of the prompt up to this position.
        piece: The piece that ends at this position.
    """

    digest: bytes
    plain: bytes
    tokens: int
    piece: Piece


class PromptCache:
    """The simulated prompt cache of one host, which also counts tokens over all requests.

    Args:
        clock: Returns the time in seconds.
        limit: Maximum number of entries in this cache and in the ideal cache. The least recently used entry is evicted.

    `prompt_tokens`, `read_tokens`, `written_tokens` and `ideal_tokens` are sums over all requests so far.
    `ideal_tokens` counts the tokens that an ideal cache would have read. An ideal cache stores every prefix.
    """

    prompt_tokens: int
    read_tokens: int
    written_tokens: int
    ideal_tokens: int

    def __init__(self, clock: Callable[[], float] = time.monotonic, limit: int = 200_000) -> None:
        self.clock = clock
        self.prompt_tokens = self.read_tokens = self.written_tokens = self.ideal_tokens = 0
        self._entries = _CacheEntries(limit)
        self._ideal = _CacheEntries(limit)
        self._turn = 0

    def _serve_prompt(self, prompt: Prompt) -> CacheUse:
        """Read the longest cached prefix of a prompt, write new entries, and add the token counts to the sums."""
        places = list(_piece_positions(prompt) if prompt.marked else _step_positions(prompt))
        total = sum(len(piece.text) for piece in prompt.pieces) // BYTES_PER_TOKEN
        now = self.clock()
        read, written = (
            self._use_marks(prompt, places, now) if prompt.marked else self._use_steps(prompt, places, now)
        )
        cached = CacheUse(total, read, written, self._ideal_tokens(prompt, places, now))
        self.prompt_tokens += total
        self.read_tokens += read
        self.written_tokens += written
        self.ideal_tokens += cached.ideal
        return cached

    def _use_marks(self, prompt: Prompt, positions: Sequence[_Position], now: float) -> tuple[int, int]:
        """Serve a prompt with cache marks. Return how many tokens were read and written."""
        marked = [at for at, place in enumerate(positions) if place.piece.cache_lifetime is not None]
        read = 0
        for at in marked:
            for place in _lookup_positions(positions, at):
                if self._entries.use_entry((prompt.model, place.digest), now):
                    read = max(read, place.tokens)
                    break
        end = 0
        for at in marked:  # written after all reads, because a request cannot read its own entries
            place = positions[at]
            if place.tokens >= prompt.minimum:
                self._entries.write_entry((prompt.model, place.digest), now, place.piece.cache_lifetime or 0)
                end = place.tokens
        return read, max(end - read, 0)

    def _use_steps(self, prompt: Prompt, positions: Sequence[_Position], now: float) -> tuple[int, int]:
        """Serve a prompt from an automatic cache. Return how many tokens were read and written. The second number is
        always 0, because providers with automatic caches do not report written tokens.
        """
        if prompt.routed and not prompt.cache_key:
            self._turn += 1
        machine = (prompt.model, prompt.cache_key or self._turn % MACHINES)
        found = [place.tokens for place in positions if self._entries.use_entry((machine, place.digest), now)]
        for place in positions:
            self._entries.write_entry((machine, place.digest), now, prompt.lifetime)
        return max(found, default=0), 0

    def _ideal_tokens(self, prompt: Prompt, positions: Sequence[_Position], now: float) -> int:
        """Return how many tokens of a prompt the ideal cache reads, and add the prompt to the ideal cache."""
        lane = (prompt.model, prompt.cache_key)
        long = [place for place in positions if place.tokens >= prompt.minimum]
        found = [place.tokens for place in long if self._ideal.use_entry((lane, place.plain), now)]
        lifetime = max((place.piece.cache_lifetime or 0 for place in positions), default=0) or prompt.lifetime
        for place in long:
            self._ideal.write_entry((lane, place.plain), now, lifetime)
        return max(found, default=0)


class _CacheEntries:
    """Cache entries with their expiry time and their lifetime, least recently used first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def use_entry(self, key: Hashable, now: float) -> bool:
        """If an unexpired entry exists, extend its lifetime and return True; otherwise return False."""
        expires, lifetime = self._known.get(key, (now, 0.0))
        if expires <= now:
            return False
        self._known[key] = (now + lifetime, lifetime)
        self._known.move_to_end(key)
        return True

    def write_entry(self, key: Hashable, now: float, lifetime: float) -> None:
        """Write an entry with a lifetime in seconds. If an existing entry has a longer lifetime, keep that lifetime."""
        expires, before = self._known.pop(key, (now, 0.0))
        lifetime = max(lifetime, before if expires > now else 0)
        self._known[key] = (now + lifetime, lifetime)
        if len(self._known) > self._limit:
            self._known.popitem(last=False)


def _piece_positions(prompt: Prompt) -> Iterator[_Position]:
    """Yield the position at the end of each piece."""
    digest, plain, size = hashlib.sha256(), hashlib.sha256(), 0
    for at, piece in enumerate(prompt.pieces):
        if at == prompt.prefix:
            digest.update(prompt.parameters)
        for each in (digest, plain):
            each.update(len(piece.text).to_bytes(8) + piece.text)
        size += len(piece.text)
        yield _Position(digest.digest(), plain.digest(), size // BYTES_PER_TOKEN, piece)


def _step_positions(prompt: Prompt) -> Iterator[_Position]:
    """Yield a position every `STEP` tokens, for a prompt without marks.

    Prefixes that are too short for the provider's cache are left out.
    """
    text = b"".join(piece.text for piece in prompt.pieces)
    width, digest = STEP * BYTES_PER_TOKEN, hashlib.sha256()
    for end in range(width, len(text) + 1, width):
        digest.update(text[end - width : end])
        if end >= prompt.minimum * BYTES_PER_TOKEN:
            known = digest.digest()
            yield _Position(known, known, end // BYTES_PER_TOKEN, Piece(b""))


def _lookup_positions(positions: Sequence[_Position], mark_index: int) -> Iterator[_Position]:
    """Yield the positions at which the provider searches for an entry: the mark, and `LOOKBACK` positions before it.

    A series of calls counts as one position, as does a series of results.
    """
    yield positions[mark_index]
    left = LOOKBACK
    for behind, place in zip(positions[mark_index:0:-1], positions[mark_index - 1 :: -1], strict=False):
        left -= not (place.piece.group and place.piece.group == behind.piece.group)
        if left < 0:
            return
        yield place
