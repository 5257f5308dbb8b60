"""Check that the type and size of an image are read from its header and that damage is detected."""

from base64 import b64encode
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.check.json_values import read_picture
from actors.core.data.image_header import detect_media_type, find_damage, read_header
from actors.core.values.content import Media
from actors.errors import MediaError
from actors.strict.rules.anthropic_shapes import _read_image
from actors.testing.images import png, png_base64
from tests.core.images import SIDES, image, mime_of

KINDS = sorted(SIDES)
TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/*", "application/octet-stream", ""]


def base64(data: bytes) -> str:
    return b64encode(data).decode()


@st.composite
def images(draw: st.DrawFn) -> tuple[str, int, int, bytes]:
    kind = draw(st.sampled_from(KINDS))
    sides = st.integers(1, SIDES[kind]) | st.integers(1, min(9000, SIDES[kind]))
    width, height = draw(sides), draw(sides)
    return kind, width, height, image(kind, width, height, draw(st.binary(max_size=600)))


@given(made=images(), label=st.sampled_from(TYPES))
def test_three_image_parsers_agree_on_type_and_size_regardless_of_the_declared_type(
    made: tuple[str, int, int, bytes], label: str
) -> None:
    kind, width, height, data = made
    text = base64(data)
    header = read_header(text)
    assert header == (mime_of(kind), width, height)
    assert detect_media_type(label, text) == mime_of(kind)
    assert Media(label, text).media_type == Media.from_bytes(data, label).media_type == mime_of(kind)
    assert find_damage(mime_of(kind), text) is None
    assert read_picture(text) == (mime_of(kind), max(width, height))
    seen, sides = _read_image(text)
    assert (seen, max(sides)) == (mime_of(kind), max(width, height))


@given(made=images(), data=st.data())
def test_a_truncated_image_is_reported_as_damaged_and_no_parser_raises(
    made: tuple[str, int, int, bytes], data: st.DataObject
) -> None:
    kind, *_, whole = made
    cut = whole[: data.draw(st.integers(1, len(whole) - 1))]
    complete_without_its_trailer = kind == "gif" and len(cut) == len(whole) - 1
    text = base64(cut)
    read_picture(text)
    _read_image(text)
    assert (find_damage(mime_of(kind), text) is None) == complete_without_its_trailer


@given(junk=st.binary(max_size=64), start=st.sampled_from(KINDS))
def test_an_image_parser_reads_any_bytes_without_an_exception(junk: bytes, start: str) -> None:
    for data in (junk, image(start, 5, 5)[:16] + junk):
        text = base64(data)
        read_header(text)
        read_picture(text)
        _read_image(text)
        for media_type in TYPES:
            find_damage(detect_media_type(media_type, text), text)


def test_the_size_of_a_jpeg_is_read_even_after_long_profiles() -> None:
    photo = image("jpeg", 4000, 3000, b"profile " * 60_000)
    assert len(photo) > 400_000
    assert read_header(base64(photo)) == ("image/jpeg", 4000, 3000)
    assert read_picture(base64(photo)) == ("image/jpeg", 4000)


@pytest.mark.parametrize(
    ("label", "data", "media_type"),
    [
        ("image/jpeg", png(), "image/png"),  # anthropics/claude-code#12009
        ("application/pdf", png(), "image/png"),
        ("image/png", b"%PDF-1.7 ...", "application/pdf"),
        ("image/jpeg", b"\0\0\0\x18ftypheic....", "image/heic"),
        ("image/png", b"BM......", "image/bmp"),
        ("application/octet-stream", b"BM......", "application/octet-stream"),
        ("text/plain", b"GIF89a is a format", "text/plain"),
        ("text/plain", b"%PDF-1.7 is another", "text/plain"),
        ("audio/wav", b"RIFF....WAVE", "audio/wav"),
        ("image/svg+xml", b"<svg/>", "image/svg+xml"),
    ],
)
def test_the_type_of_an_image_is_taken_from_its_bytes_if_they_are_recognisable(
    label: str, data: bytes, media_type: str
) -> None:
    assert Media(label, base64(data)).media_type == media_type


@pytest.mark.parametrize(
    ("media_type", "data", "why"),
    [
        ("image/png", b"", "it is empty"),
        ("image/png", b"hi", "its PNG header is not readable"),
        ("image/jpeg", png()[:20], "its PNG header is not readable"),
        ("image/png", png()[:-1], "it is incomplete"),
        ("image/png", png(0, 5), "its header states a size of 0 x 5 pixels"),
    ],
)
def test_a_damaged_image_is_rejected_with_a_one_line_error(media_type: str, data: bytes, why: str) -> None:
    with pytest.raises(MediaError) as refused:
        Media.from_bytes(data, media_type)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_invalid_base64_counts_as_a_damaged_image_and_urls_are_not_inspected() -> None:
    assert Media("image/png", "no base64!").damage == "its data is not valid base64"
    assert Media("application/pdf", "AAA").damage == "its data is not valid base64"
    assert Media.from_url("https://x.example/a.png", "image/jpeg").damage is None
    assert Media.from_url("https://x.example/a.png", "image/jpeg").media_type == "image/jpeg"


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
def test_headers_of_images_written_by_another_library_are_read(form: str) -> None:
    pillow = pytest.importorskip("PIL.Image")
    for size in ((1, 1), (37, 500), (2001, 3)):
        for options in ({}, {"lossless": True}, {"progressive": True}, {"interlace": True}):
            file = BytesIO()
            pillow.new("RGB", size, (9, 90, 200)).save(file, form, **options)
            text = base64(file.getvalue())
            assert read_header(text) == (f"image/{form.lower()}", *size)
            assert find_damage(f"image/{form.lower()}", text) is None
            assert read_picture(text) == (f"image/{form.lower()}", max(size))


def test_pngs_made_for_the_test_cases_have_the_same_header_as_a_real_png() -> None:
    wide = "iVBORw0KGgoAAAANSUhEUgAAIygAAAMgCAIAAADBWV4cAAAADElEQVR4nGNgoAwAAABAAAG3NHzvAAAAAElFTkSuQmCC"
    assert read_header(wide) == ("image/png", 9000, 800)
    assert png_base64(9000, 800) != wide  # other pixels
    assert read_header(png_base64(9000, 800)) == read_header(wide)
