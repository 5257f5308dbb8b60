"""Check that rejected attachments are recognised by the error message and located in the request."""

import json

import pytest

from actors.adapters.classify import classify
from actors.adapters.refusals import media_parts, named_media
from actors.core.dialects.profiles import dialect
from actors.core.values.identity import content_digest

REFUSALS = [
    (
        "anthropic",
        "messages.3.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size: "
        "8000 pixels",
    ),
    (
        "anthropic",
        "messages.0.content.20.image.source.base64.data: At least one of the image dimensions exceed max allowed size "
        "for many-image requests: 2000 pixels",
    ),
    ("anthropic", "Could not process image"),
    (
        "anthropic",
        "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' "
        "or 'image/webp'",
    ),
    (
        "anthropic",
        "messages.0.content.0.image.source.base64: The image was specified using the image/jpeg media type, but the "
        "image appears to be a image/png image",
    ),
    (
        "anthropic",
        "messages.1.content.0.tool_result.content.0.image.source.base64: image exceeds 5 MB maximum: 5316852 bytes > "
        "5242880 bytes",
    ),
    ("anthropic", "The PDF specified was not valid."),
    ("anthropic", "A maximum of 100 PDF pages may be provided."),
    ("anthropic", "Unable to download the file. Please verify the URL and try again."),
    ("anthropic", "too many images and documents: 104 + 1 > 100"),
    ("anthropic", "messages.2.content.0.image: words that nobody has seen"),
    (
        "openai_chat",
        "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png'].",
    ),
    ("openai_chat", "The image data you provided does not represent a valid image."),
    ("openai_chat", "Error while downloading https://host.test/a.png."),
    ("openai_chat", "Timeout while downloading https://host.test/a.png."),
    ("openai_chat", "Failed to download image from https://host.test/a.png: 403 Forbidden"),
    ("openai_chat", "Invalid 'messages[1].content[1].image_url'. Expected a valid URL."),
    ("openai_chat", "Invalid content type. image_url is only supported by certain models."),
    ("openai_chat", "Too many images in request. Max is 50."),
    ("openai_chat", "Image size is 22.1MB which exceeds the allowed limit of 20.0MB"),
    ("openai_chat", "Invalid MIME type. Only image types are supported."),
    ("openai_chat", "The file you requested has expired."),
    ("openai_responses", "Invalid 'input[2].content[1].image_url'. Expected a base64-encoded data URL."),
    (
        "gemini",
        "Unable to process input image. Please retry or report in https://developers.generativeai.google",
    ),
    ("gemini", "Provided image is not valid."),
    ("gemini", "Unsupported MIME type: image/svg+xml"),
    ("gemini", "The document has no pages."),
    ("gemini", "Cannot fetch content from the provided URL."),
    ("gemini", "Unable to submit request because it must have a maximum of 3000 images."),
    (
        "gemini",
        "Invalid value at 'contents[0].parts[1].inline_data.data' (TYPE_BYTES), Base64 decoding failed for \"x\"",
    ),
    ("vllm", "At most 1 image(s) may be provided in one request."),
    ("vllm", "cannot identify image file <_io.BytesIO object at 0x7f>"),
    ("mistral", "Total number of images exceeds the maximum allowed 8"),
    ("ollama", "Failed to load image or audio file"),
    (
        "qwen",
        "The image length and width do not meet the model restrictions. [height:5 must be larger than 10]",
    ),
    ("qwen", "Download multimodal file timed out"),
    ("kimi", "Invalid request: unsupported image format: image/tiff"),
    ("xai", "Unsupported content-type encountered when downloading image: text/html"),
    ("bedrock", "The provided image does not match the specified image format."),
    ("bedrock", "The model returned the following errors: Could not process image"),
]
OTHERS = [
    ("anthropic", "tools.0.custom.name: Invalid image tool"),
    ("openai_chat", "Invalid schema for function 'image': it is invalid"),
    ("bedrock", "The document file name can only contain alphanumeric characters"),
    (
        "gemini",
        "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed",
    ),
]


def kind(name: str, words: str) -> str:
    body = {"message": words} if name == "bedrock" else {"error": {"message": words}}
    return classify(400, {}, json.dumps(body).encode(), dialect(name)).kind


@pytest.mark.parametrize(("name", "words"), REFUSALS)
def test_a_rejected_attachment_is_recognised_by_its_error_message(name: str, words: str) -> None:
    assert kind(name, words) == "media"


@pytest.mark.parametrize(("name", "words"), OTHERS)
def test_other_errors_are_not_classified_as_rejected_attachments(name: str, words: str) -> None:
    assert kind(name, words) == "transcript"


def test_a_rejected_attachment_is_recognised_by_the_path_field() -> None:
    error = {
        "message": "Invalid value.",
        "param": "messages[1].content[0].image_url",
        "code": "invalid_value",
    }
    failure = classify(400, {}, json.dumps({"error": error}).encode(), dialect("openai_chat"))
    assert (failure.kind, failure.place) == ("media", "messages[1].content[0].image_url")


ANTHROPIC = {
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "x"},
                {"type": "image", "source": {"type": "base64", "data": "AAAA"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "name": "t", "input": {"source": {"type": "base64", "data": "QUJD"}}}
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "content": [
                        {"type": "text", "text": "y"},
                        {"type": "image", "source": {"type": "url", "url": "https://host.test/b.png"}},
                    ],
                }
            ],
        },
    ]
}
CHAT = {
    "messages": [
        {"role": "system", "content": "Be short."},
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
        },
    ]
}
GEMINI = {
    "contents": [
        {
            "role": "user",
            "parts": [{"text": "x"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
        },
        {"role": "model", "parts": [{"functionCall": {"args": {"inlineData": {"data": "QUJD"}}}}]},
    ]
}
CONVERSE = {
    "messages": [
        {
            "role": "user",
            "content": [{"text": "x"}, {"image": {"format": "png", "source": {"bytes": "AAAA"}}}],
        }
    ]
}
RESPONSES = {
    "input": [
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}],
        },
        {
            "type": "function_call_output",
            "output": [{"type": "input_file", "file_data": "data:application/pdf;base64,BBBB"}],
        },
    ]
}
A, B, LINK = content_digest("AAAA"), content_digest("BBBB"), content_digest("https://host.test/b.png")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (ANTHROPIC, [((0, 1), A), ((2, 0, 1), LINK)]),
        (CHAT, [((1, 0), A)]),
        (GEMINI, [((0, 1), A)]),
        (CONVERSE, [((0, 1), A)]),
        (RESPONSES, [((0, 0), A), ((1, 0), B)]),
        ({}, []),
        ([], []),
    ],
)
def test_attachments_of_a_body_are_found_with_their_paths(
    body: object, expected: list[tuple[tuple[int, ...], str]]
) -> None:
    assert [(item.place, item.name) for item in media_parts(json.dumps(body).encode())] == expected
    assert media_parts(b"{") == ()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("messages.0.content.1.image.source.base64.data: too large", (A,)),
        ("messages.2.content.0.tool_result.content.1.image.source: bad", (LINK,)),
        ("messages.2: an image is bad", (LINK,)),
        ("messages.0.content.0.text: bad", ()),
        ("Could not download https://host.test/b.png.", (LINK,)),
        ("Could not process image", ()),
    ],
)
def test_error_messages_identify_attachments_by_path_or_url(words: str, expected: tuple[str, ...]) -> None:
    assert named_media(words, media_parts(json.dumps(ANTHROPIC).encode())) == expected
