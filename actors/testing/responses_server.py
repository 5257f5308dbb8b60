"""A strict loopback server that speaks OpenAI Responses."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from actors.testing.faults import Faults
from actors.testing.loopback import HttpRequest
from actors.testing.rules import validate
from actors.testing.rules.base import Mode, Refusal, dumped
from actors.testing.rules.responses_rules import ResponsesProfile, ResponsesSettings
from actors.testing.script import Behaviour, Script, Turn
from actors.testing.server import Limits, LoopbackServer, bearer, same
from actors.testing.wires.responses import ResponsesWire


class ResponsesServer(LoopbackServer):
    """OpenAI Responses at `base_url` + `/responses`, and its token count.

    `models` names the models that exist and what each takes; None lets any name in, under the profile of
    `settings`, which also says for which account reasoning is encrypted and whether items are stored.
    """

    dialect = "openai_responses"
    base_path = "/v1"
    paths = frozenset({"/v1/responses", "/v1/responses/input_tokens"})
    request_id_header = "x-request-id"

    def __init__(
        self,
        script: Script | Sequence[Turn] | Behaviour | None = None,
        *,
        models: Mapping[str, ResponsesProfile] | None = None,
        settings: ResponsesSettings | None = None,
        mode: Mode = "strict",
        faults: Faults | None = None,
        api_key: str | None = None,
        write_bytes: int | None = None,
        host: str = "",
        limits: Limits | None = None,
    ) -> None:
        settings = settings or ResponsesSettings()
        if models is not None:
            settings = replace(settings, models=models)
        super().__init__(
            Script.of(script),
            ResponsesWire(settings, host),
            faults=faults,
            api_key=api_key,
            write_bytes=write_bytes,
            limits=limits,
        )
        self._judge = partial(validate, dialect="openai_responses", mode=mode, settings=settings)

    def judge(self, request: HttpRequest) -> Refusal | None:
        return self._judge(request.body)

    def denied(self, request: HttpRequest) -> Refusal | None:
        if self.api_key is None or same(bearer(request), self.api_key):
            return None
        return self.wire.failure(401)

    def counted(self, request: HttpRequest) -> bytes | None:
        if not request.path.endswith("/input_tokens"):
            return None
        return dumped({"object": "response.input_tokens", "input_tokens": len(request.body) // 4})
