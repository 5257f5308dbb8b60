"""Attach: which attachments a transcript shows, where, and under what name.

Media of a result stay in it where the target's results can hold them. The others follow in a human message directly
after all results of the group, never between two, and the result says so (OAC-08, MIS-18). A failed result is words
alone (ANT-51). What cannot be shown leaves a note.

A request holds so many attachments and no more (BED-16, BED-17, ANT-54). What was sent stays, so the oldest of an
epoch are shown, and those that come when it is full are noted. Where documents have names, each is called after a
digest of its bytes, so it is called the same in every epoch and lane, and a number follows where the epoch has that
name already (BED-15).

An attachment that the provider refused once is noted in every epoch of the lane, wherever it stands.
"""

import re

from actors.core.content import Media
from actors.core.dialect import Dialect
from actors.core.history import History
from actors.core.identity import content_name
from actors.core.ledger import Ledger
from actors.core.transcript import EpochUsage, Titled

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


class Attachments:
    """What a request holds of attachments, and still takes behind what its epoch has shown already."""

    def __init__(self, dialect: Dialect, usage: EpochUsage, refused: frozenset[str] = frozenset()) -> None:
        self._dialect = dialect
        self._refused = refused
        self._usage = usage
        self._media, self._documents = usage.media, usage.documents
        self._titles: dict[str, int] = {}

    def takes(self, media: Media, kinds: frozenset[str]) -> bool:
        """Say whether an attachment is shown where these kinds may stand; if it is, there is room for one less."""
        if not self._held(media, kinds) or self._is_full(media) or self._is_refused(media):
            return False
        self._media += 1
        self._documents += _is_document(media)
        return True

    def titled(self, media: Media) -> Titled:
        """Return an attachment that is shown, with its name."""
        if not self._dialect.media.named_documents or not _is_document(media):
            return media, ""
        content = media.data or media.url
        title = f"document-{content_name(content)[:8]}"
        times = 1 + (self._titles.get(title) or self._usage.titles.get(title) or 0)
        self._titles[title] = times
        return media, title if times == 1 else f"{title}-{times}"

    def noted(self, media: Media) -> str:
        """Return what is said in place of an attachment that is not shown."""
        stood = f"[An attachment of type {media.mime or 'unknown'} stood here"
        if self._is_refused(media):
            return f"{stood}; the provider refused it.]"
        kinds = self._dialect.media.user_kinds | self._dialect.media.result_kinds
        if self._is_full(media) and self._held(media, kinds):
            return f"{stood}; the conversation holds as many as can be shown.]"
        return f"{stood} and cannot be shown.]"

    def usage(self) -> EpochUsage:
        if self._media == self._usage.media:
            return self._usage
        titles = self._usage.titles.update(self._titles)
        return self._usage._replace(media=self._media, documents=self._documents, titles=titles)

    def _is_refused(self, media: Media) -> bool:
        return bool(self._refused) and media_name(media) in self._refused

    def _is_full(self, media: Media) -> bool:
        most, most_documents = self._dialect.media.max_count, self._dialect.media.max_documents
        if most is not None and self._media >= most:
            return True
        return most_documents is not None and _is_document(media) and self._documents >= most_documents

    def _held(self, media: Media, kinds: frozenset[str]) -> bool:
        """Say whether the target takes this attachment where these kinds may stand. Nobody takes an empty one."""
        kind = "document" if _is_document(media) else "image"
        limit = self._dialect.media.max_bytes
        return (
            kind in kinds
            and (media.mime in self._dialect.media.types or (bool(media.url) and kind == "image"))
            and self._is_there(media)
            and (limit is None or len(media.data) <= limit)
        )

    def _is_there(self, media: Media) -> bool:
        """Say whether an attachment holds what can be sent: base64, or an address for the provider to fetch."""
        if media.data:
            return len(media.data) % 4 == 0 and _BASE64.fullmatch(media.data) is not None
        return self._dialect.media.urls and media.url.startswith("https://")


def media_name(media: Media) -> str:
    """Return the name of an attachment in the log: the digest of its data, or of its address."""
    return content_name(media.data or media.url)


def names_since(history: History, ledger: Ledger, start: int) -> frozenset[str]:
    """Return the names of the attachments from message `start` on: of users, and of the results of calls."""
    said = history.since(start)
    found = [block for message in said for block in message.blocks if isinstance(block, Media)]
    answers = [ledger.answer(call.id) for message in said for call in message.calls]
    found += [media for answer in answers if answer is not None for media in answer[2]]
    return frozenset(map(media_name, found))


def _is_document(media: Media) -> bool:
    return not media.mime.startswith("image/")
