"""AWS credentials: each request is signed, with the same signature as botocore's."""

import datetime
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import anyio
import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest
from pydantic import SecretStr

from actors.adapters.adapter import adapter
from actors.adapters.request import Settings
from actors.config import AwsKeys
from actors.config.providers import aws_region
from actors.core.data.persistent import Segments
from actors.core.ledger import Ledger
from actors.core.values.content import Message, Text
from actors.core.values.identity import Binding
from actors.errors import ConfigError, MissingKey
from actors.kernel import System
from actors.provider import configured_credentials
from actors.provider.attempts import Answer, BrokenAnswer, Generated
from actors.provider.configured_credentials import AwsSigner, signature_headers
from actors.provider.credentials import Credentials, Headers, Keys, OutgoingRequest
from actors.provider.provider_actor import ProviderActor
from actors.provider.rounds import Endpoint, Generate
from actors.testing import AwsKey, BedrockProfile, BedrockServer, BedrockSettings, Call, Say, Turn, serve
from actors.transcripts import History, dialect, render
from actors.transport import HttpTransport

EVERYWHERE = pytest.mark.anyio
KEYS = AwsKeys("AKIDEXAMPLE", SecretStr("wJalrXUtnFEMI/K7MDENG"))
SESSION = AwsKeys(KEYS.access_key, KEYS.secret_key, SecretStr("session-token"))
URL = "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-test-v1%3A0/converse-stream"
REQUEST = OutgoingRequest(
    URL, Segments.of(b'{"messages":[', b'{"role":"user","content":[{"text":"\xc3\xa9"}]}', b"]}")
)
MODEL = "us.anthropic.test-v1:0"
NOW = datetime.datetime(2026, 9, 26, 12, 30, 1, tzinfo=datetime.timezone.utc)  # noqa: UP017  as in botocore


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop botocore's clock at `NOW`."""
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: NOW)


def plain_secrets(keys: AwsKeys) -> tuple[str, str | None]:
    token = keys.session_token
    return keys.secret_key.get_secret_value(), None if token is None else token.get_secret_value()


def headers_of_botocore(keys: AwsKeys, body: bytes, **headers: str) -> dict[str, str]:
    """Return the headers of a request that botocore itself signs, given the complete body."""
    request = botocore.awsrequest.AWSRequest(
        "POST", URL, {"content-type": "application/json", **headers}, body
    )
    credentials = botocore.credentials.Credentials(keys.access_key, *plain_secrets(keys))
    botocore.auth.SigV4Auth(credentials, "bedrock", "us-east-1").add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("keys", [KEYS, SESSION])
def test_the_signature_of_a_segmented_body_equals_botocores_signature_of_the_joined_body(
    keys: AwsKeys,
) -> None:
    ours = dict(signature_headers(REQUEST, keys, "us-east-1"))
    body = b"".join(REQUEST.segments)
    theirs = headers_of_botocore(keys, body, **{"x-amz-content-sha256": ours["x-amz-content-sha256"]})
    assert ours == {name: value for name, value in theirs.items() if name != "content-type"}
    assert ours["x-amz-date"] == "20260926T123001Z"
    assert "/20260926/us-east-1/bedrock/aws4_request" in ours["authorization"]
    assert ("x-amz-security-token" in ours) == (keys.session_token is not None)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    "other",
    [
        lambda: signature_headers(OutgoingRequest(URL + "x", REQUEST.segments), KEYS, "us-east-1"),
        lambda: signature_headers(
            OutgoingRequest(URL, REQUEST.segments.append_unjoined(b" ")), KEYS, "us-east-1"
        ),
        lambda: signature_headers(REQUEST, KEYS, "us-west-2"),
        lambda: signature_headers(REQUEST, AwsKeys(KEYS.access_key, SecretStr("other")), "us-east-1"),
        lambda: signature_headers(REQUEST, KEYS, "us-east-1", "s3"),
    ],
)
def test_a_signature_depends_on_everything_that_is_signed(other: Callable[[], Headers]) -> None:
    assert (
        dict(other())["authorization"] != dict(signature_headers(REQUEST, KEYS, "us-east-1"))["authorization"]
    )


def test_aws_keys_are_absent_from_reprs() -> None:
    assert "wJalr" not in repr(SESSION)
    assert "session-token" not in repr(SESSION)


@pytest.mark.parametrize(
    ("endpoint", "region"),
    [
        ("https://bedrock-runtime.us-east-1.amazonaws.com", "us-east-1"),
        ("https://bedrock-runtime.us-gov-west-1.amazonaws.com/", "us-gov-west-1"),
        ("https://vpce-0a.bedrock-runtime.eu-central-1.vpce.amazonaws.com", "eu-central-1"),
        ("http://bedrock-runtime.us-east-1.amazonaws.com", None),
        ("https://bedrock-runtime.us-east-1.amazonaws.com.evil.example", None),
        ("http://127.0.0.1:8000", None),
    ],
)
def test_the_region_is_read_only_from_an_aws_host(endpoint: str, region: str | None) -> None:
    assert aws_region(endpoint) == region


@EVERYWHERE
async def test_without_botocore_the_error_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:  # Any: a module
        raise ImportError(name)

    monkeypatch.setattr("actors.provider.configured_credentials.import_module", absent)
    with pytest.raises(ConfigError, match=r"pip install \"llm-actors\[bedrock\]\""):
        await AwsSigner("us-east-1", lambda: KEYS).headers(REQUEST)


@EVERYWHERE
async def test_keys_come_from_the_aws_chain_or_their_absence_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    configured_credentials._botocore_session.cache_clear()  # so that the chain reads the new environment
    with pytest.raises(MissingKey, match="AWS_ACCESS_KEY_ID"):
        await AwsSigner("us-east-1").headers(REQUEST)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDCHAIN")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    configured_credentials._botocore_session.cache_clear()
    made = dict(await AwsSigner("us-east-1").headers(REQUEST))
    configured_credentials._botocore_session.cache_clear()
    assert "Credential=AKIDCHAIN/" in made["authorization"]


async def _generate(
    server: BedrockServer, credentials: Credentials, *, stream: bool = True, model: str = MODEL
) -> Generated:
    """Send one request to a server over HTTP, with these credentials."""
    codec = adapter(dialect("bedrock"))
    rendered = render(History([Message("user", (Text("Do it."),))]), Ledger(), dialect("bedrock"))
    request = codec.request(rendered._segments, Settings(model=model, stream=stream))
    binding = Binding("b", "bedrock", server.base_url, "", model)
    transport = HttpTransport()
    endpoint = Endpoint(server.base_url, credentials, stream=stream)
    async with System() as system:
        actor = system.spawn(lambda: ProviderActor(codec, endpoint, transport), "p")
        generated = await actor.ask(Generate("k", request, binding, 1, 1, 1))
    await transport.close()
    return generated


@EVERYWHERE
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("keys", [KEYS, SESSION])
async def test_a_verifying_server_accepts_a_signed_request(keys: AwsKeys, stream: bool) -> None:
    secret, token = plain_secrets(keys)
    key = AwsKey(keys.access_key, secret, "eu-west-1", token)
    server = BedrockServer([Turn(Say("Done."), Call("work"))], aws_key=key)
    with anyio.fail_after(60):
        async with serve(server):
            answer = await _generate(server, AwsSigner("eu-west-1", lambda: keys), stream=stream)
    assert isinstance(answer, Answer), answer
    assert answer.message.text == "Done."
    assert [exchange.status for exchange in server.requests] == [200]


@EVERYWHERE
@pytest.mark.parametrize(
    "model", ["arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.x-v1:0", "a b+c~d"]
)
async def test_a_model_id_with_any_characters_is_signed_in_the_form_in_which_it_is_sent(model: str) -> None:
    settings = BedrockSettings(models={model: BedrockProfile()})
    server = BedrockServer(aws_key=AwsKey(KEYS.access_key, plain_secrets(KEYS)[0]), settings=settings)
    with anyio.fail_after(60):
        async with serve(server):
            assert isinstance(
                await _generate(server, AwsSigner("us-east-1", lambda: KEYS), model=model), Answer
            )


@EVERYWHERE
async def test_a_wrong_key_raises_a_configuration_error() -> None:
    server = BedrockServer(aws_key=AwsKey(KEYS.access_key, "another"))
    with anyio.fail_after(60):
        async with serve(server):
            broken = await _generate(server, AwsSigner("us-east-1", lambda: KEYS))
            unsigned = await _generate(server, Keys())
    for refused, code in ((broken, "InvalidSignature"), (unsigned, "MissingAuthenticationToken")):
        assert isinstance(refused, BrokenAnswer)
        assert (refused.failure.kind, refused.failure.action) == ("config", "next_backend")
        assert (refused.failure.code or "").startswith(code)


@EVERYWHERE
async def test_a_missing_credential_ends_the_round_and_sends_nothing() -> None:
    def none() -> Headers:
        raise MissingKey("Backend 'b' needs a key; it is not set")

    server = BedrockServer()
    with anyio.fail_after(60):
        async with serve(server):
            broken = await _generate(server, Keys(none))
    assert isinstance(broken, BrokenAnswer)
    assert (broken.failure.kind, broken.failure.action) == ("config", "next_backend")
    assert broken.failure.message == "Backend 'b' needs a key; it is not set"
    assert server.received == 0


@EVERYWHERE
async def test_credentials_receive_the_outgoing_request() -> None:
    seen: list[OutgoingRequest] = []

    class RecordingKeys(Keys):
        async def headers(self, outgoing: OutgoingRequest) -> Headers:
            seen.append(outgoing)
            return (("authorization", "Bearer key"),)

    server = BedrockServer(api_key="key")
    with anyio.fail_after(60):
        async with serve(server):
            base = server.base_url
            assert isinstance(await _generate(server, RecordingKeys()), Answer)
    (request,) = seen
    assert request.url == f"{base}/model/us.anthropic.test-v1%3A0/converse-stream"
    assert b"".join(request.segments) == server.requests[0].body


def test_botocore_is_imported_only_for_a_signature() -> None:
    modules = "sys, actors, actors.runtime.runtime, actors.provider.credentials"
    code = f"import {modules}; sys.exit('botocore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=300).returncode == 0
