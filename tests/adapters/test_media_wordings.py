"""Check that provider errors about attachments are classified as media errors."""

import json

import pytest

from actors.adapters.classify import classify
from actors.adapters.failure import Failure
from actors.core.dialects.profiles import dialect


def classify_refusal(name: str, status: int, words: str) -> Failure:
    """Classify an error in the form of the host's family."""
    error: dict[str, object] = {"message": words, "type": "invalid_request_error"}
    body: dict[str, object] = {"error": error}
    if name == "gemini":
        body = {"error": {"code": status, "message": words, "status": "INVALID_ARGUMENT"}}
    if name == "bedrock":
        body = {"message": words}
    return classify(status, {}, json.dumps(body).encode(), dialect(name))


ABOUT_MEDIA = """
anthropic 400 This URL is disallowed by the website's robots.txt file.
anthropic 400 Only HTTPS URLs are supported.
anthropic 400 The request to the URL timed out.
openai_responses 400 Invalid input file: file has no pages
openai_responses 400 The file you provided exceeds the maximum of 32 MB
openai_responses 400 This file is password protected
gemini 403 You do not have permission to access the File abc or it may not exist.
gemini 400 Invalid or unsupported file uri: https://example.com/x.png
gemini 400 The File abc is not in an ACTIVE state and usage is not allowed.
gemini 400 Unable to submit request because it must have a file size of no more than 20 MB
gemini 400 The number of pages exceeds the limit of 1000
bedrock 400 This model doesn't support documents.
bedrock 400 This model doesn't support the image content block that you provided
bedrock 400 The model doesn't support the image format that you provided.
vllm 400 Unsupported multi-modal data
vllm 400 Incorrect padding
vllm 400 height:1 and width:2 must be larger than factor:28
llama_cpp 400 invalid url: must start with http
llama_cpp 400 file type not supported
llama_cpp 500 failed to process image
ollama 500 image: unknown format
ollama 400 illegal base64 data at input byte 4
openai_chat 400 failed to retrieve media: received status code: 403
openai_chat 400 media size exceeds the limit
deepseek 400 Failed to deserialize the JSON body: messages[0]: unknown variant `image_url`, expected `text` at line 1
qwen 400 The provided URL does not appear to be valid. Ensure it is correctly formatted.
qwen 400 The media format is not supported or incorrect for the data inspection.
qwen 400 Exceeded limit on max bytes per data-uri item : 10485760
glm 400 图片输入格式/解析错误
openai_compatible 400 This model does not support vision
openai_compatible 400 GIFs with more than one frame are not supported
openai_compatible 413 image too large
"""

NOT_ABOUT_MEDIA = """
openai_chat 400 transcript Invalid 'messages[1].tool_calls[0].id': string too long
openai_chat 400 transcript Invalid schema for function 'read_file': unsupported type
openai_chat 400 transcript tools[0].function: file is not a valid name
openai_chat 413 overflow Payload too large
openai_chat 500 transient The server had an error while processing your request
gemini 400 transcript Invalid value at 'contents[0].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed
anthropic 400 transcript messages.1: `tool_use` ids were found without `tool_result` blocks immediately after
anthropic 404 config model: claude-vision
"""


@pytest.mark.parametrize("line", ABOUT_MEDIA.strip().splitlines())
def test_errors_about_attachments_are_recognised_as_media_errors(line: str) -> None:
    name, status, words = line.split(" ", 2)
    failure = classify_refusal(name, int(status), words)
    assert (failure.kind, failure.action) == ("media", "leave_out")


@pytest.mark.parametrize("line", NOT_ABOUT_MEDIA.strip().splitlines())
def test_similar_errors_are_not_recognised_as_media_errors(line: str) -> None:
    name, status, kind, words = line.split(" ", 3)
    assert classify_refusal(name, int(status), words).kind == kind
