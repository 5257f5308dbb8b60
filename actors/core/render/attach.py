"""Decide which attachments a transcript contains, in which message, and under which name.

A result's media stay in the result if the dialect allows it. Otherwise, they are sent in a user message directly after
all results of the group, never between two results, and the result's text mentions them (OAC-08, MIS-18). A failed
result contains only text (ANT-51). An attachment that cannot be rendered is replaced by a note.

The number of attachments in a request is limited (BED-16, BED-17, ANT-54). An attachment that was sent must stay, so an
epoch renders its oldest attachments, and replaces later ones by notes once the limit is reached. If documents need
names, a name is a digest of the bytes, so it is the same in every epoch and lane; repeated names in an epoch get a
number (BED-15).

An attachment that the provider refused once becomes a note in every later epoch of the lane.

The side length of an image is limited, more strictly in requests with many images (ANT-58, ANT-59). An image above the
stricter limit is rendered while the request has few images. Later images that would make it a request with many images
become notes, because the large image was sent and cannot be removed. If too many images arrive in the same request as
the large image, the large image becomes a note and the others are rendered.
"""

import re
from collections.abc import Callable

from actors.core.data.image_header import READ_TYPES, ImageHeader, read_header
from actors.core.dialects.dialect import Dialect
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.transcript.transcript import EpochUsage, TitledMedia
from actors.core.values.content import Media
from actors.core.values.identity import content_digest

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_FULL = "; the conversation already contains as many as the provider accepts"
_UNKNOWN = "; this provider does not accept it"


class Attachments:
    """Decides which attachments a request contains.

    The attachments that the epoch has already sent count towards the limits.
    """

    def __init__(self, dialect: Dialect, usage: EpochUsage, refused: frozenset[str] = frozenset()) -> None:
        self._dialect = dialect
        self._refused = refused
        self._rules, self._facts = dialect.media, dialect.model
        self._usage = usage
        self._media, self._documents, self._large = usage.media, usage.documents, usage.large
        self._count_new_images: Callable[[], int] = int
        self._sent_images = 0
        self._expected: int | None = 0  # the number of images of the next request; None if not counted yet
        self._titles: dict[str, int] = {}

    def expect_images(self, count_images: Callable[[], int]) -> None:
        """Begin a request. `count_images` returns the number of its new images, including those it cannot show.

        `count_images` is called only if the request has a large image, because counting reads all new messages.
        """
        self._expected, self._sent_images, self._count_new_images = None, self._image_count, count_images

    def admit(self, media: Media, kinds: frozenset[str]) -> bool:
        """Return True and count the attachment if a result or message that allows `kinds` can contain it."""
        header = _header_of(media)
        if self._rejection_reason(media, header, kinds) is not None:
            return False
        self._media += 1
        self._documents += _is_document(media)
        self._large += self._is_large(header)
        return True

    def with_title(self, media: Media) -> TitledMedia:
        """Return an attachment with its name.

        Call this method only once for an attachment, when it is rendered, because repeated names get a number.
        """
        if not self._rules.named_documents or not _is_document(media):
            return media, ""
        content = media.data or media.url
        title = f"document-{content_digest(content)[:8]}"
        times = 1 + (self._titles.get(title) or self._usage.titles.get(title) or 0)
        self._titles[title] = times
        return media, title if times == 1 else f"{title}-{times}"

    def omission_note(self, media: Media) -> str:
        """Return the text that replaces an attachment that cannot be rendered."""
        kinds = self._rules.user_kinds | self._rules.result_kinds
        why = self._rejection_reason(media, _header_of(media), kinds) or _UNKNOWN
        return f"[An attachment of type {media.media_type or 'unknown'} was omitted here{why}.]"

    def updated_usage(self) -> EpochUsage:
        """Return the counts of the attachments that this epoch has sent, including this request."""
        if self._media == self._usage.media:
            return self._usage
        return self._usage._replace(
            media=self._media,
            documents=self._documents,
            large=self._large,
            titles=self._usage.titles.update(self._titles),
        )

    @property
    def _image_count(self) -> int:
        return self._media - self._documents

    def _rejection_reason(
        self, media: Media, header: ImageHeader | None, kinds: frozenset[str]
    ) -> str | None:
        """Return the reason why a result or message that allows `kinds` cannot contain an attachment; None if it can.

        The reason is worded as the end of the note that replaces the attachment.
        """
        if self._is_refused(media):
            return "; the provider refused it"
        if not self._is_supported(media, kinds):
            return _UNKNOWN
        is_read = media.media_type in READ_TYPES and bool(media.data)
        if is_read and (header is None or not header.width or not header.height):
            return "; it cannot be read"
        most = self._facts.image_side
        if header is not None and most is not None and header.longest_side > most:
            return _size_note(header, f"{most} are possible")
        if self._exceeds_count_limit(media):
            return _FULL
        return None if _is_document(media) else self._many_images_reason(header)

    def _many_images_reason(self, header: ImageHeader | None) -> str | None:
        """Return the reason why an image breaks the limits of a request with many images; None if it does not."""
        few, most = self._facts.many_images, self._facts.many_images_side
        if (
            self._is_large(header)
            and header is not None
            and not self._large
            and self._expected_images() > few
        ):
            return _size_note(header, f"{most} are possible among more than {few} images")
        if (self._large or self._is_large(header)) and self._image_count >= few:
            return _FULL
        return None

    def _expected_images(self) -> int:
        """Return the number of images of the next request, including those that it cannot show."""
        if self._expected is None:
            self._expected = self._sent_images + self._count_new_images()
        return self._expected

    def _is_large(self, header: ImageHeader | None) -> bool:
        most = self._facts.many_images_side
        return header is not None and most is not None and header.longest_side > most

    def _is_refused(self, media: Media) -> bool:
        return bool(self._refused) and media_name(media) in self._refused

    def _exceeds_count_limit(self, media: Media) -> bool:
        most, most_documents = self._rules.max_count, self._rules.max_documents
        if most is not None and self._media >= most:
            return True
        if _is_document(media):
            return most_documents is not None and self._documents >= most_documents
        return self._facts.image_count is not None and self._image_count >= self._facts.image_count

    def _is_supported(self, media: Media, kinds: frozenset[str]) -> bool:
        """Return True if the dialect accepts this attachment in a result or message that allows `kinds`."""
        kind = "document" if _is_document(media) else "image"
        limit = self._rules.max_bytes
        if kind == "image" and self._facts.image_bytes is not None:
            limit = self._facts.image_bytes
        return (
            kind in kinds
            and (media.media_type in self._rules.types or (bool(media.url) and kind == "image"))
            and self._has_content(media)
            and (limit is None or len(media.data) <= limit)
        )

    def _has_content(self, media: Media) -> bool:
        """Return True if the attachment has valid base64 data, or a URL that the provider can fetch."""
        if media.data:
            return len(media.data) % 4 == 0 and _BASE64.fullmatch(media.data) is not None
        return self._rules.urls and media.url.startswith("https://")


def _header_of(media: Media) -> ImageHeader | None:
    """Return the header of an image that has data; None for a URL, another media type or an unreadable image."""
    return read_header(media.data) if media.data and media.media_type in READ_TYPES else None


def _size_note(header: ImageHeader, limits: str) -> str:
    return f"; a side of its {header.width} x {header.height} pixels is too long, {limits}"


def media_name(media: Media) -> str:
    """Return the name of an attachment in the log: a digest of its data or URL."""
    return content_digest(media.data or media.url)


def attachment_names_since(history: History, ledger: Ledger, start: int) -> frozenset[str]:
    """Return the names of the attachments from message `start` on, in user messages and in results."""
    said = history.since(start)
    found = [block for message in said for block in message.blocks if isinstance(block, Media)]
    answers = [ledger._answer(call.id) for message in said for call in message.calls]
    found += [media for answer in answers if answer is not None for media in answer[2]]
    return frozenset(map(media_name, found))


def _is_document(media: Media) -> bool:
    return not media.media_type.startswith("image/")
