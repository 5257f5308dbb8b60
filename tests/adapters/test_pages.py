"""Check that error pages and redirects are reduced to one line without markup."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.adapters.classify import MAX_MESSAGE, classify, classify_in_answer, page_summary
from actors.core.dialects.profiles import OPENAI_CHAT
from tests.runtime.hosting_cases import case

PAGES = case("error-page")["answers"]
SHAPES = [
    (502, "<html>\r\n<head><title>502 Bad Gateway</title></head></html>", "HTTP 502: Bad Gateway"),
    (503, "<!doctype html><TITLE>\n We&#39;ll be\n back </TITLE>", "HTTP 503: We'll be back"),
    (500, "<html><body><h1>Oops</h1></body></html>", "HTTP 500: Oops"),
    (500, "<html><title></title><h1> </h1><p>Try later.</p></html>", "HTTP 500: Try later."),
    (500, "<html><body></body></html>", "HTTP 500: a page without a title"),
    (403, '<?xml version="1.0"?><Error><Message>Denied</Message></Error>', "HTTP 403: Denied"),
    (500, "<html><title>500</title></html>", "HTTP 500: 500"),
]


@pytest.mark.parametrize("answer", PAGES, ids=lambda answer: str(answer["status"]))
def test_an_error_page_is_reduced_to_its_status_and_title(answer: dict[str, object]) -> None:
    status, body = answer["status"], str(answer["body"]).encode()
    assert isinstance(status, int)
    failure = classify(status, {"content-type": str(answer["content_type"])}, body, OPENAI_CHAT)
    assert failure.message == f"HTTP {status}: upstream error"
    assert failure.action == ("retry" if status == 503 else "next_backend")


@pytest.mark.parametrize(("status", "page", "message"), SHAPES)
def test_other_kinds_of_error_pages_are_also_reduced_to_one_line(
    status: int, page: str, message: str
) -> None:
    assert classify(status, {}, page.encode(), OPENAI_CHAT).message == message
    wrapped = json.dumps({"error": {"message": page, "code": status}}).encode()
    assert classify(status, {}, wrapped, OPENAI_CHAT).message == message
    assert classify_in_answer({"error": {"message": page, "code": status}}, OPENAI_CHAT).message == message


@pytest.mark.parametrize("text", ["upstream connect error", "a < b", "<think>no</think>", ""])
def test_plain_text_errors_are_unchanged(text: str) -> None:
    assert page_summary(text, 500) is None


@given(st.text(max_size=300))
def test_every_error_page_is_reduced_to_one_line(text: str) -> None:
    message = classify(503, {}, f"<html><title>{text}".encode("utf-8", "replace"), OPENAI_CHAT).message
    assert len(message) <= MAX_MESSAGE
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_the_error_about_a_redirect_shows_its_target_url_without_the_query(status: int) -> None:
    told = {"Location": "https://api.test/v1/chat?key=sk-0123456789"}
    for body in (b"", b"<html><title>Moved</title></html>"):
        failure = classify(status, told, body, OPENAI_CHAT)
        assert failure.message.startswith(f"HTTP {status} redirects to https://api.test/v1/chat, ")
        assert "sk-0123" not in failure.message
        assert (failure.kind, failure.action) == ("config", "next_backend")


def test_a_redirect_without_a_target_is_reported_by_its_status() -> None:
    assert classify(301, {}, b"", OPENAI_CHAT).message == "HTTP 301 without a message"
