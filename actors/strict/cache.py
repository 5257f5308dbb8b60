"""A stand-in prompt cache: what a provider would have read from its cache, and what an ideal one could have.

Theory of operation. A prompt is a row of pieces (`rules/prompts.py`). A cached prefix is known by a digest of
everything up to the end of a piece, so a lookup is a dictionary. Where a cache must be asked for, a piece with a mark
writes one entry, and reads the longest of the last positions that is there; an entry lives on with each use. The
parameters of a request stand in front of its messages, so another tool choice misses all entries of messages. An
automatic cache keeps every step of a prompt, on the machine that served it: `prompt_cache_key` leads back to that
machine, without one the next in turn answers.

Beside it stands an ideal cache, which keeps every position and leaves the parameters out, for they could have been
kept as they were. It counts for each request the longest prefix that it has in common with any earlier one of the same
model and lane that has not expired. What a client reads of that says how well it keeps its prompts and marks.

A token is four bytes. Time comes from `clock`, so that a test can let it pass.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

from actors.strict.rules.prompts import Piece, Prompt

BYTES_PER_TOKEN = 4
LOOKBACK = 20
"""Positions in front of a mark at which an entry is found."""
STEP = 128
"""Tokens by which the entries of an automatic cache grow."""
MACHINES = 4
"""Machines among which requests without a key go round."""


class Cached(NamedTuple):
    """How much of one prompt was read from the cache, in tokens. `ideal` is what an ideal cache would have read."""

    total: int
    read: int
    written: int
    ideal: int


class _Place(NamedTuple):
    """A position where a cached prefix may end: what it is known by, and how long the prompt is there."""

    digest: bytes
    plain: bytes  # without the parameters
    tokens: int
    piece: Piece


class PromptCache:
    """The entries of one host, and the sums over all its requests.

    Args:
        clock: Gives the time in seconds.
        limit: Entries that are kept, of this cache and of the ideal one; beyond it the least recently used goes.

    `prompt_tokens`, `read_tokens`, `written_tokens` and `ideal_tokens` count all requests so far.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, limit: int = 200_000) -> None:
        self.clock = clock
        self.prompt_tokens = self.read_tokens = self.written_tokens = self.ideal_tokens = 0
        self._entries = _Entries(limit)
        self._ideal = _Entries(limit)
        self._turn = 0

    def take(self, prompt: Prompt) -> Cached:
        """Read a prompt from the cache as far as it is there, write what is to be kept, and count both."""
        places = list(_places(prompt) if prompt.marked else _steps(prompt))
        total = sum(len(piece.text) for piece in prompt.pieces) // BYTES_PER_TOKEN
        now = self.clock()
        read, written = (
            self._marked(prompt, places, now) if prompt.marked else self._automatic(prompt, places, now)
        )
        cached = Cached(total, read, written, self._best(prompt, places, now))
        self.prompt_tokens += total
        self.read_tokens += read
        self.written_tokens += written
        self.ideal_tokens += cached.ideal
        return cached

    def _marked(self, prompt: Prompt, places: Sequence[_Place], now: float) -> tuple[int, int]:
        marked = [at for at, place in enumerate(places) if place.piece.mark is not None]
        read = 0
        for at in marked:
            for place in _before(places, at):
                if self._entries.use((prompt.model, place.digest), now):
                    read = max(read, place.tokens)
                    break
        end = 0
        for at in marked:
            place = places[at]
            if place.tokens >= prompt.minimum:
                self._entries.keep((prompt.model, place.digest), now, place.piece.mark or 0)
                end = place.tokens
        return read, max(end - read, 0)

    def _automatic(self, prompt: Prompt, places: Sequence[_Place], now: float) -> tuple[int, int]:
        if prompt.routed and not prompt.lane:
            self._turn += 1
        machine = (prompt.model, prompt.lane or self._turn % MACHINES)
        found = [place.tokens for place in places if self._entries.use((machine, place.digest), now)]
        for place in places:
            self._entries.keep((machine, place.digest), now, prompt.lifetime)
        return max(found, default=0), 0

    def _best(self, prompt: Prompt, places: Sequence[_Place], now: float) -> int:
        lane = (prompt.model, prompt.lane)
        long = [place for place in places if place.tokens >= prompt.minimum]
        found = [place.tokens for place in long if self._ideal.use((lane, place.plain), now)]
        lifetime = max((place.piece.mark or 0 for place in places), default=0) or prompt.lifetime
        for place in long:
            self._ideal.keep((lane, place.plain), now, lifetime)
        return max(found, default=0)


class _Entries:
    """When each entry expires and how long it lives after a use, the least recently used first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def use(self, key: Hashable, now: float) -> bool:
        """Say whether an entry is there, and let it live on."""
        expires, lifetime = self._known.get(key, (now, 0.0))
        if expires <= now:
            return False
        self._known[key] = (now + lifetime, lifetime)
        self._known.move_to_end(key)
        return True

    def keep(self, key: Hashable, now: float, lifetime: float) -> None:
        """Write an entry; one that is there keeps the longer life."""
        expires, before = self._known.pop(key, (now, 0.0))
        lifetime = max(lifetime, before if expires > now else 0)
        self._known[key] = (now + lifetime, lifetime)
        if len(self._known) > self._limit:
            self._known.popitem(last=False)


def _places(prompt: Prompt) -> Iterator[_Place]:
    """Yield the end of each piece."""
    digest, plain, size = hashlib.sha256(), hashlib.sha256(), 0
    for at, piece in enumerate(prompt.pieces):
        if at == prompt.prefix:
            digest.update(prompt.parameters)
        for each in (digest, plain):
            each.update(len(piece.text).to_bytes(8) + piece.text)
        size += len(piece.text)
        yield _Place(digest.digest(), plain.digest(), size // BYTES_PER_TOKEN, piece)


def _steps(prompt: Prompt) -> Iterator[_Place]:
    """Yield the steps of a prompt that nobody marks, from the smallest that is kept."""
    text = b"".join(piece.text for piece in prompt.pieces)
    width, digest = STEP * BYTES_PER_TOKEN, hashlib.sha256()
    for end in range(width, len(text) + 1, width):
        digest.update(text[end - width : end])
        if end >= prompt.minimum * BYTES_PER_TOKEN:
            known = digest.digest()
            yield _Place(known, known, end // BYTES_PER_TOKEN, Piece(b""))


def _before(places: Sequence[_Place], at: int) -> Iterator[_Place]:
    """Yield a marked place and those in front of it that are looked at. A run of one kind is one position."""
    yield places[at]
    left = LOOKBACK
    for behind, place in zip(places[at:0:-1], places[at - 1 :: -1], strict=False):
        left -= not (place.piece.run and place.piece.run == behind.piece.run)
        if left < 0:
            return
        yield place
