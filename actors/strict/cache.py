"""Simulate the prompt cache of a provider, and count the tokens that an ideal cache would have read.

Theory of operation. A prompt is a sequence of pieces (`rules/prompts.py`). The key of a cached prefix is a digest of
everything up to the end of a piece, so a lookup is a dictionary access. If a provider caches on request, each marked
piece writes one entry and reads the longest existing entry among the last positions; every use extends the life of an
entry. The parameters of a request precede its messages in the digest, so another tool choice misses all entries of
messages. An automatic cache stores every step of a prompt on the machine that served it. `prompt_cache_key` selects the
machine; without a key, the machines serve requests in turn.

The ideal cache stores every position and ignores the parameters, because the client could have left them unchanged. For
each request it counts the longest unexpired prefix shared with an earlier request of the same model and lane. The ratio
of the tokens read to the ideal tokens measures how well a client preserves its prompts and sets its marks.

A token is four bytes. Time comes from `clock`, so that tests can use virtual time.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

from actors.strict.rules.prompts import Piece, Prompt

BYTES_PER_TOKEN = 4
LOOKBACK = 20
"""Positions before a mark at which an entry can be found."""
STEP = 128
"""Tokens by which the entries of an automatic cache grow."""
MACHINES = 4
"""Machines that serve requests without a key in turn."""


class Cached(NamedTuple):
    """The use of the cache by one prompt, in tokens. `ideal` are the tokens that an ideal cache would have read."""

    total: int
    read: int
    written: int
    ideal: int


class _Place(NamedTuple):
    """A position where a cached prefix may end: its digest, and the length of the prompt up to it."""

    digest: bytes
    plain: bytes  # without the parameters
    tokens: int
    piece: Piece


class PromptCache:
    """The entries of one host, and the sums over all its requests.

    Args:
        clock: Returns the time in seconds.
        limit: Maximal number of entries, of this cache and of the ideal one. The least recently used is evicted.

    `prompt_tokens`, `read_tokens`, `written_tokens` and `ideal_tokens` count all requests so far.
    """

    prompt_tokens: int
    read_tokens: int
    written_tokens: int
    ideal_tokens: int

    def __init__(self, clock: Callable[[], float] = time.monotonic, limit: int = 200_000) -> None:
        self.clock = clock
        self.prompt_tokens = self.read_tokens = self.written_tokens = self.ideal_tokens = 0
        self._entries = _Entries(limit)
        self._ideal = _Entries(limit)
        self._turn = 0

    def _take(self, prompt: Prompt) -> Cached:
        """Read the longest cached prefix of a prompt, write new entries, and count both."""
        places = list(_places(prompt) if prompt.marked else _steps(prompt))
        total = sum(len(piece.text) for piece in prompt.pieces) // BYTES_PER_TOKEN
        now = self.clock()
        read, written = (
            self._use_marks(prompt, places, now) if prompt.marked else self._use_steps(prompt, places, now)
        )
        cached = Cached(total, read, written, self._best(prompt, places, now))
        self.prompt_tokens += total
        self.read_tokens += read
        self.written_tokens += written
        self.ideal_tokens += cached.ideal
        return cached

    def _use_marks(self, prompt: Prompt, places: Sequence[_Place], now: float) -> tuple[int, int]:
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

    def _use_steps(self, prompt: Prompt, places: Sequence[_Place], now: float) -> tuple[int, int]:
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
    """Entries with their expiry and their lifetime after a use, least recently used first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def use(self, key: Hashable, now: float) -> bool:
        """Return True if an entry exists, and extend its life."""
        expires, lifetime = self._known.get(key, (now, 0.0))
        if expires <= now:
            return False
        self._known[key] = (now + lifetime, lifetime)
        self._known.move_to_end(key)
        return True

    def keep(self, key: Hashable, now: float, lifetime: float) -> None:
        """Write an entry; an existing entry keeps the longer life."""
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
    """Yield the steps of an unmarked prompt, starting with the smallest that is stored."""
    text = b"".join(piece.text for piece in prompt.pieces)
    width, digest = STEP * BYTES_PER_TOKEN, hashlib.sha256()
    for end in range(width, len(text) + 1, width):
        digest.update(text[end - width : end])
        if end >= prompt.minimum * BYTES_PER_TOKEN:
            known = digest.digest()
            yield _Place(known, known, end // BYTES_PER_TOKEN, Piece(b""))


def _before(places: Sequence[_Place], at: int) -> Iterator[_Place]:
    """Yield a marked place and the places before it that are searched. A run of one kind is one position."""
    yield places[at]
    left = LOOKBACK
    for behind, place in zip(places[at:0:-1], places[at - 1 :: -1], strict=False):
        left -= not (place.piece.run and place.piece.run == behind.piece.run)
        if left < 0:
            return
        yield place
