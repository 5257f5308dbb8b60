"""What a tool returned becomes words and media, whatever it was."""

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
def test_media_are_taken_out_of_what_was_returned(
    value: object, words: JsonValue, media: tuple[Media, ...]
) -> None:
    json, held = split_output(value)
    assert (parse(json), held) == (words, media)


@examples(200)
@given(values())
def test_what_holds_no_media_is_ingested_as_ever(value: object) -> None:
    assert split_output(value) == (ingest(value).json, ())


def test_media_deeper_inside_a_value_are_data() -> None:
    json, held = split_output({"image": IMAGE})
    assert held == ()
    assert parse(json) == {"image": {"media_type": "image/png", "data": PIXEL, "url": ""}}


@dataclass
class Liar:
    """Says it is an attachment."""

    @property  # type: ignore[misc]  # what a hostile object does
    def __class__(self) -> type:
        raise RuntimeError


def test_a_value_that_raises_when_asked_for_its_class_is_read_as_ever() -> None:
    assert split_output([Liar(), IMAGE])[1] == (IMAGE,)


@pytest.mark.parametrize(
    ("media", "why"),
    [
        (Media("image/png", "not base64!"), "image/png"),
        (Media("image/png", "aGk"), "image/png"),
        (Media("image/png"), "image/png"),
        (Media("image/png", PIXEL, "https://example.test"), "image/png"),
        (Media("image/png", b"\x89PNG"), "not a text"),  # type: ignore[arg-type]  # what people pass
        (Media(None, "aGk="), "not a text"),  # type: ignore[arg-type]  # likewise
        (Media("\ud800", "aGk="), "not a text"),
        (Media("image/png", "A" * (MAX_MEDIA_BYTES + 4)), "5242884 bytes"),
    ],
)
def test_what_no_provider_can_read_leaves_a_text_where_it_stood(media: Media, why: str) -> None:
    json, held = split_output(["before", media, IMAGE])
    assert held == (IMAGE,)
    assert str(parse(json)).startswith("before\n[An attachment")
    assert why in str(parse(json))


def test_the_media_of_one_result_are_bounded_together() -> None:
    half = Media("application/pdf", "A" * (MAX_MEDIA_BYTES // 2))
    json, held = split_output([half, half, IMAGE])
    assert held == (half, half)
    assert "too much" in str(parse(json))
    assert len(split_output([IMAGE] * (MAX_MEDIA + 1))[1]) == MAX_MEDIA


def test_a_result_that_holds_media_alone_is_complete() -> None:
    assert ToolResult("c1", media=[IMAGE]).status == "complete"
    assert ToolResult("c1", media=[IMAGE], is_complete=False).status == "complete"
    assert ToolResult("c1").status == "pending"
