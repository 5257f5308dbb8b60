"""Check how returned values are split into text and media."""

from dataclasses import dataclass

import pytest
from hypothesis import given

from actors.core.data.ingest import ingest
from actors.core.data.jsonio import JsonValue, parse
from actors.core.turn.tool_output import MAX_MEDIA, MAX_MEDIA_BYTES, split_output
from actors.core.values.content import Media, ToolResult
from actors.testing.images import png_base64
from tests.core.session_log import examples
from tests.generated.strategies import values

PIXEL = png_base64()

IMAGE, LINK = Media("image/png", PIXEL), Media("image/*", url="https://example.test/a.png")


@pytest.mark.parametrize(
    ("value", "words", "media"),
    [
        (IMAGE, "", (IMAGE,)),
        ([IMAGE, LINK], "", (IMAGE, LINK)),
        (("before", IMAGE, "after"), "before\nafter", (IMAGE,)),
        (({"rows": 3}, IMAGE), {"rows": 3}, (IMAGE,)),
        (["a", {"rows": 3}, IMAGE], ["a", {"rows": 3}], (IMAGE,)),
        ((None, IMAGE), None, (IMAGE,)),
        ("text", "text", ()),
        (["a", "b"], ["a", "b"], ()),
        ([], [], ()),
    ],
    ids=str,
)
def test_media_are_extracted_from_a_returned_value(
    value: object, words: JsonValue, media: tuple[Media, ...]
) -> None:
    json, held = split_output(value)
    assert (parse(json), held) == (words, media)


@examples(200)
@given(values())
def test_a_value_without_media_is_ingested_as_usual(value: object) -> None:
    assert split_output(value) == (ingest(value).json, ())


def test_nested_media_are_treated_as_data() -> None:
    json, held = split_output({"image": IMAGE})
    assert held == ()
    assert parse(json) == {"image": {"media_type": "image/png", "data": PIXEL, "url": ""}}


@dataclass
class Liar:
    """An object whose `__class__` claims to be an attachment."""

    @property  # type: ignore[misc]  # a hostile object
    def __class__(self) -> type:
        raise RuntimeError


def test_a_value_that_raises_when_its_class_is_read_is_ingested_as_usual() -> None:
    assert split_output([Liar(), IMAGE])[1] == (IMAGE,)


@pytest.mark.parametrize(
    ("media", "why"),
    [
        (Media("image/png", "not base64!"), "image/png"),
        (Media("image/png", "aGk"), "image/png"),
        (Media("image/png"), "image/png"),
        (Media("image/png", PIXEL, "https://example.test"), "image/png"),
        (Media("image/png", b"\x89PNG"), "not a string"),  # type: ignore[arg-type]  # a common mistake
        (Media(None, "aGk="), "not a string"),  # type: ignore[arg-type]  # likewise
        (Media("\ud800", "aGk="), "not a string"),
        (Media("image/png", "A" * (MAX_MEDIA_BYTES + 4)), "5242884 bytes"),
    ],
)
def test_unsupported_media_are_replaced_by_text_in_place(media: Media, why: str) -> None:
    json, held = split_output(["before", media, IMAGE])
    assert held == (IMAGE,)
    assert str(parse(json)).startswith("before\n[An attachment")
    assert why in str(parse(json))


def test_the_total_size_of_the_media_of_a_result_is_bounded() -> None:
    half = Media("application/pdf", "A" * (MAX_MEDIA_BYTES // 2))
    json, held = split_output([half, half, IMAGE])
    assert held == (half, half)
    assert "exceed the limit" in str(parse(json))
    assert len(split_output([IMAGE] * (MAX_MEDIA + 1))[1]) == MAX_MEDIA


def test_a_result_of_media_alone_is_complete() -> None:
    assert ToolResult("c1", media=[IMAGE]).status == "complete"
    assert ToolResult("c1", media=[IMAGE], is_complete=False).status == "complete"
    assert ToolResult("c1").status == "pending"
