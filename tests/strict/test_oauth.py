"""Check bearer tokens and their errors on servers in OAuth mode."""

import json
from typing import Any

import pytest

from actors.strict.loopback import HttpRequest
from actors.strict.server import LoopbackServer
from actors.testing import AnthropicServer, GeminiServer, OAuth

Json = dict[str, Any]  # a body under test may be anything
ASK: Json = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "u"}]}
BETA = {"anthropic-beta": "interleaved-thinking-2025-05-14,oauth-2025-04-20"}
VERSION = {"anthropic-version": "2023-06-01"}


class Clock:
    """A clock that moves only when set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def send(server: LoopbackServer, path: str, body: Json, headers: dict[str, str]) -> tuple[int, str, str]:
    """Return the status, kind and message of an answer; both strings are empty without an error."""
    answer = server.answer(HttpRequest("POST", path, headers, json.dumps(body).encode(), False))
    error = json.loads(answer.parts[0]).get("error") or {"message": ""}
    return answer.status, error.get("type") or error.get("status", ""), error["message"]


def anthropic(server: AnthropicServer, **headers: str) -> tuple[int, str, str]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return send(server, "/v1/messages", ASK, VERSION | given)


def test_anthropic_accepts_a_bearer_token_with_its_beta_header() -> None:
    oauth = OAuth({"good": None})
    server = AnthropicServer(oauth=oauth)
    kind = "authentication_error"
    assert anthropic(server, authorization="Bearer good", **BETA) == (200, "", "")
    unsupported = (401, kind, "OAuth authentication is currently not supported.")
    assert anthropic(server, authorization="Bearer good") == unsupported
    assert anthropic(server, authorization="Bearer bad", **BETA) == (401, kind, "Invalid bearer token")
    assert anthropic(server, x_api_key="good", **BETA) == (401, kind, "invalid x-api-key")
    assert anthropic(server) == (401, kind, "x-api-key header is required")
    assert oauth.refusals == 4
    assert [exchange.status for exchange in server.requests] == [200, 401, 401, 401, 401]
    assert all("authorization" not in dict(exchange.headers) for exchange in server.requests)


def test_anthropic_requires_its_version_header_with_a_token_too() -> None:
    server = AnthropicServer(oauth=OAuth({"good": None}))
    status, kind, message = send(server, "/v1/messages", ASK, {"authorization": "Bearer good", **BETA})
    assert (status, kind) == (400, "invalid_request_error")
    assert "anthropic-version" in message


def test_an_expired_token_is_rejected_and_the_next_token_is_accepted() -> None:
    clock = Clock()
    oauth = OAuth({"old": 60}, clock=clock)
    server = AnthropicServer(oauth=oauth)
    assert anthropic(server, authorization="Bearer old", **BETA)[0] == 200
    clock.now = 60
    status, kind, message = anthropic(server, authorization="Bearer old", **BETA)
    assert (status, kind) == (401, "authentication_error")
    assert message.startswith("OAuth token has expired.")
    assert anthropic(server, authorization="Bearer new", **BETA)[0] == 401
    oauth.grant("new", 60)
    assert anthropic(server, authorization="Bearer new", **BETA)[0] == 200
    oauth.expire("new")
    assert anthropic(server, authorization="Bearer new", **BETA)[0] == 401
    assert oauth.refusals == 3


@pytest.mark.parametrize("vertex", [False, True])
def test_google_accepts_a_bearer_token_without_a_key(vertex: bool) -> None:
    oauth = OAuth({"good": None, "old": 0})
    server = GeminiServer(vertex=vertex, oauth=oauth)
    prefix = "/v1/projects/p/locations/l/publishers/google" if vertex else "/v1beta"
    path, body = (
        f"{prefix}/models/m:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "u"}]}]},
    )
    assert send(server, path, body, {"authorization": "Bearer good"}) == (200, "", "")
    for wrong in (
        {"authorization": "Bearer old"},
        {"authorization": "Bearer bad"},
        {"x-goog-api-key": "good"},
    ):
        status, kind, message = send(server, path, body, wrong)
        assert (status, kind) == (401, "UNAUTHENTICATED")
        assert message.startswith("Request had invalid authentication credentials.")
    assert send(server, path, body, {})[:2] == (403, "PERMISSION_DENIED")
    assert oauth.refusals == 4


def test_the_google_server_can_require_a_billing_project_with_a_token() -> None:
    server = GeminiServer(oauth=OAuth({"good": None}, project="project-1"))
    path, body = "/v1beta/models/m:generateContent", {"contents": [{"parts": [{"text": "u"}]}]}
    token = {"authorization": "Bearer good"}
    status, kind, message = send(server, path, body, token)
    assert (status, kind) == (403, "PERMISSION_DENIED")
    assert "quota project" in message
    assert send(server, path, body, {**token, "x-goog-user-project": "project-1"}) == (200, "", "")
