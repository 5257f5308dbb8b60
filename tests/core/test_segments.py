"""Check that segmented texts keep their bytes and never touch old pages."""

from itertools import pairwise
from random import Random

from actors.core.data.persistent import PAGE, PIECE, SHARED, Segments


def literal(number: int) -> bytes:
    return b'"%0*d"' % (SHARED, number)


def message(number: int) -> list[bytes]:
    return [b'{"content":', literal(number), b"},"]


def test_segments_consist_of_few_pieces_with_exactly_the_appended_bytes() -> None:
    text = Segments()
    added = [b"%d," % number * (1 + number % 97) for number in range(5000)]
    for fragment in added:
        text = text.append([fragment])
    assert b"".join(text) == b"".join(added)
    assert len(text) == len(list(text)) < 20 + text.size // (PIECE // 4)


def test_appending_to_segments_shares_full_pages_and_keeps_the_recent_part_small() -> None:
    versions = [Segments()]
    for number in range(5 * PAGE):
        versions.append(versions[-1].append(message(number)))
    for before, after in pairwise(versions):
        kept = zip(before.pages, after.pages, strict=False)
        assert all(old is new for old, new in kept)
        assert len(after.recent) < PAGE + 3
    last = versions[-1]
    assert b"".join(last) == b"".join(b"".join(message(number)) for number in range(5 * PAGE))
    assert len(last.pages) > 5
    assert len(last) == len(list(last))


def test_a_page_of_segments_ends_where_an_appended_part_ends() -> None:
    text, ends, random = Segments(), {0}, Random(7)
    for _ in range(2000):
        text = text.append([piece for number in range(random.randrange(1, 4)) for piece in message(number)])
        ends.add(text.size)
        assert text.paged in ends
        assert text.paged == sum(len(piece) for page in text.pages for piece in page)
        assert text.size == text.paged + sum(map(len, text.recent))


def test_bytes_added_before_and_after_segments_count_in_the_size_and_stay_separate() -> None:
    text = Segments()
    for number in range(PAGE):
        text = text.append(message(number))
    whole = text.prepend(b"[").append_unjoined(b"]", b"}")
    assert b"".join(whole) == b"[" + b"".join(text) + b"]}"
    assert (whole.size, whole.paged) == (text.size + 3, text.paged + 1)
    spliced = whole.splice(0, 1, (b"new",))
    assert b"".join(spliced) == b"".join(
        (*(p for page in whole.pages for p in page), b"new", *whole.recent[2:])
    )
    assert spliced.size == len(b"".join(spliced))
    assert (list(whole.flatten()), whole.flatten().size) == (list(whole), whole.size)
