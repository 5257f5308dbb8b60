"""Check that signatures of a strict host are sent back unchanged across switches.

The tests need no network: the strict server writes an answer, our decoder reads it, our encoder writes the next
request, and the rules of the strict server verify every signature in the request.
"""

import json
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from actors.adapters.adapter import adapter
from actors.adapters.codec import decode
from actors.adapters.request import Settings
from actors.core.dialects.profiles import dialect
from actors.core.history.history import History
from actors.core.lanes.lane import Lane, advance, empty_lane
from actors.core.ledger import Ledger
from actors.core.render import RenderTarget
from actors.core.values.content import Message, Text, ToolResult
from actors.core.values.identity import Binding
from actors.strict.rules.base import Json
from actors.strict.wires.gemini import GeminiWire
from actors.testing import Call, GeminiProfile, GeminiSettings, Redacted, Say, Think, Turn, validate
from tests.commands.at_scale import extent

SENTINEL = "skip_thought_signature_validator"
HOSTS: dict[str, tuple[Binding, GeminiSettings]] = {
    "api": (
        Binding("g", "gemini", "https://g.example", "a", "pro"),
        GeminiSettings(model="pro", account="a"),
    ),
    "other model": (
        Binding("f", "gemini", "https://g.example", "a", "flash"),
        GeminiSettings(model="flash", account="a"),
    ),
    "other account": (
        Binding("h", "gemini", "https://g.example", "b", "pro"),
        GeminiSettings(model="pro", account="b"),
    ),
    "vertex": (
        Binding("v", "vertex", "https://v.example", "a", "pro"),
        GeminiSettings(model="pro", account="a", vertex=True),
    ),
    "gemini 2": (
        Binding("o", "gemini_2", "https://g.example", "a", "old"),
        GeminiSettings(GeminiProfile(signatures=False), model="old", account="a"),
    ),
}


@dataclass
class Talk:
    """A conversation across several hosts, with a lane for each."""

    messages: list[Message] = field(default_factory=list)
    lanes: dict[str, Lane] = field(default_factory=dict)
    calls: int = 1

    def send(self, host: str) -> Json:
        """Render the conversation for a host and return the body, which the host must accept."""
        binding, settings = HOSTS[host]
        profile = dialect(binding.dialect)
        codec = adapter(profile)
        lane = self.lanes.get(host) or empty_lane(profile)
        rendered = advance(
            lane, History(self.messages), Ledger(), profile, codec.encoder, RenderTarget(binding)
        )
        assert rendered.report.faults == ()
        self.lanes[host] = rendered.lane
        body = codec.request(rendered._segments, Settings(model=settings.model)).body
        refusal = validate(body, profile.name, settings=settings)
        assert refusal is None, refusal
        return json.loads(body)

    def turn(self, host: str, said: Turn, *, stream: bool = True) -> Json:
        """Ask a host, append its answer and answer its calls. Returns the sent body."""
        body = self.send(host)
        binding, settings = HOSTS[host]
        number, profile = len(self.messages), dialect(binding.dialect)
        wire, request = GeminiWire(settings, host), {**body, "model": settings.model}
        decoder = decode(profile, binding, stream=stream, first_call=self.calls)
        chunks = (
            wire.encode_events(said, request, number)
            if stream
            else [wire.encode_response(said, request, number)]
        )
        for chunk in chunks:
            decoder.feed(chunk)
        message = decoder.close()
        self.messages.append(message)
        self.calls += len(message.calls)
        results = [ToolResult(call.id, f"result {call.id}") for call in message.calls]
        self.messages.append(Message("tool", results) if results else Message("user", [Text("Go on.")]))
        return body


def new_talk() -> Talk:
    return Talk([Message("user", [Text("Hello.")])])


def signatures(body: Json) -> list[list[str | None]]:
    """Return the signatures of each model content, part by part."""
    contents = [content for content in body["contents"] if content["role"] == "model"]
    return [[part.get("thoughtSignature") for part in content["parts"]] for content in contents]


STEP = Turn(Think("hm"), Say("Looking."), Call("read", {"p": 1}), Call("run", {"c": [1.5, None]}))
WORDS = Turn(Redacted(), Say("That is it."))


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("stream", [True, False])
def test_signatures_are_sent_back_on_the_same_part(host: str, stream: bool) -> None:
    talk = new_talk()
    for said in (STEP, STEP, WORDS, STEP):
        talk.turn(host, said, stream=stream)
    first, second, words, third = signatures(talk.send(host))
    for step in (first, second, third):
        assert [signature is not None for signature in step] == [False, host != "gemini 2", False]
        assert SENTINEL not in step
    assert (words[-1] is not None) == (host != "gemini 2")


@pytest.mark.parametrize("to", [host for host in HOSTS if host != "api"])
def test_another_host_gets_placeholder_signatures_and_the_first_host_its_own_signatures(to: str) -> None:
    talk = new_talk()
    talk.turn("api", STEP)
    own = signatures(talk.send("api"))
    talk.turn(to, STEP)
    theirs = signatures(talk.send(to))
    again = signatures(talk.send("api"))
    assert own[0] == again[0]
    assert again[1] == [None, SENTINEL, None]
    assert theirs[0] == [None, None if to == "gemini 2" else SENTINEL, None]
    assert theirs[1][1] != SENTINEL


@pytest.mark.long
def test_random_conversations_across_hosts_are_accepted() -> None:
    for seed in range(extent(25, 100)):
        random = Random(seed)
        talk = new_talk()
        for _ in range(random.randrange(2, 7)):
            body = talk.turn(random.choice(list(HOSTS)), _random_turn(random), stream=random.random() < 0.7)
            assert body["contents"][-1]["role"] == "user"
        for host in HOSTS:
            talk.send(host)


def _random_turn(random: Random) -> Turn:
    parts = [
        random.choice((Say("So."), Say("\n"), Think("hm"), Call("read", {"n": random.random()}), Call("a b")))
        for _ in range(random.randrange(1, 6))
    ]
    ids = random.choice(("minted", "restart", "blank"))
    return Turn(*parts, Say("."), ids=ids, fragment=random.choice((1, 3, 50)))  # type: ignore[arg-type]  # one of the literals


def test_a_signature_on_another_part_is_rejected() -> None:
    talk = new_talk()
    talk.turn("api", STEP)
    body = talk.send("api")
    _, settings = HOSTS["api"]
    parts = body["contents"][1]["parts"]
    parts[2]["thoughtSignature"] = parts[1]["thoughtSignature"]
    refusal = validate(json.dumps(body).encode(), "gemini", settings=settings)
    assert refusal is not None
    assert refusal.rule == "GEM-05"
    assert (
        validate(json.dumps(talk.send("api")).encode(), "gemini", settings=replace(settings, secret=b"x"))
        is not None
    )
