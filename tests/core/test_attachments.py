"""Check the attachment limits of a request and the names and stable places of documents."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from actors.adapters.adapter import adapter
from actors.core.data.record import replace
from actors.core.dialects.dialect import ConverseMedia, Dialect
from actors.core.dialects.profiles import BEDROCK, PROFILES
from actors.core.history.history import History
from actors.core.lanes.lane import Rendered, advance, empty_lane
from actors.core.ledger import Ledger
from actors.core.log.events import AskStarted
from actors.core.render import RenderTarget
from actors.core.session.lanes import rebuild
from actors.core.session.state import opening_event
from actors.core.transcript.transcript import Encoder
from actors.core.values.content import Block, Media, Message, Text, ToolCall, ToolResult
from actors.core.values.packed import pack
from actors.testing.images import png_base64
from tests.core.recorded import Recorder
from tests.core.session_log import Simulated, body, find_refusal, reread_log, rules, text
from tests.generated.histories import READERS

PIXEL = png_base64()

HERE = READERS["bedrock"]
PLAN = Media("application/pdf", "cGxhbg==")
IMAGE = Media("image/png", PIXEL)
OK = Message("assistant", [Text("ok")])
NOTED = "was omitted here; the conversation already contains as many as the provider accepts.]"
NAME = re.compile(r"document-[0-9a-f]{8}(-[0-9]+)?")


def human(*blocks: Block) -> Message:
    return Message("user", [Text("Look."), *blocks])


def page(number: int) -> Media:
    return Media("text/plain", f"{number:04}")


def call_with_media(call_id: str, *media: Media) -> tuple[Message, Message]:
    """Return a call and its result with these media."""
    return Message("assistant", [ToolCall(call_id, "scan")]), Message(
        "tool", [ToolResult(call_id, "seen", media=media)]
    )


def sent_body(rendered: Rendered) -> Any:  # Any: the messages of a body under test
    assert find_refusal(rendered) is None
    return json.loads(body(rendered))["messages"]


def attachment_pairs(rendered: Rendered) -> list[tuple[str, str]]:
    """Return the attachments of a Bedrock body in order: the kind, and the name of a document."""
    return [found for message in sent_body(rendered) for found in _content_pairs(message["content"])]


def _content_pairs(content: list[Any]) -> Iterator[tuple[str, str]]:  # Any: blocks of a body under test
    for block in content:
        ((kind, value),) = block.items()
        if kind in ("image", "document"):
            yield kind, value.get("name", "")
        elif kind == "toolResult":
            yield from _content_pairs(value["content"])


def names(rendered: Rendered) -> list[str]:
    return [name for kind, name in attachment_pairs(rendered) if kind == "document"]


def titling(titles: list[str]) -> Encoder:
    """A family that writes nothing and records the titles of attachments."""

    class Titling(Recorder):
        def write_media(self, media: Media, title: str) -> None:
            titles.append(title)

    return Encoder(lambda last_role: Titling(BEDROCK, last_role))


def render_once(*said: Message, profile: Dialect = BEDROCK) -> Rendered:
    return advance(
        empty_lane(profile), History(said), Ledger(), profile, adapter(profile).encoder, RenderTarget(HERE)
    )


def session(*said: Message) -> Simulated:
    simulated = Simulated()
    simulated.write(opening_event("s", "t", History(said)))
    return simulated


# ---- names


@pytest.mark.requirement("PROMISE-1")
def test_each_occurrence_of_a_document_gets_its_own_name() -> None:
    rendered = render_once(human(PLAN, PLAN), *call_with_media("c1", PLAN, page(1)), OK, human(PLAN))
    found = names(rendered)
    assert len(found) == len(set(found)) == 5
    assert all(NAME.fullmatch(name) for name in found)
    (plan,) = {name[:17] for name in found if name != found[3]}
    assert [found[0], found[1], found[2], found[4]] == [plan, f"{plan}-2", f"{plan}-3", f"{plan}-4"]


def test_document_names_are_neutral_and_the_same_in_every_lane_and_epoch() -> None:
    simulated = session(human(page(1), PLAN), OK, human(page(2)))
    first = names(simulated.send(HERE))
    simulated.restart(HERE, plain=False)
    assert names(simulated.send(HERE)) == first
    assert names(render_once(human(PLAN))) == [first[1]]


@pytest.mark.requirement("PROMISE-4")
def test_a_sent_document_keeps_its_name_when_it_is_repeated_later() -> None:
    simulated, before = session(human(PLAN)), b""
    for number in range(1, 4):
        rendered = simulated.send(HERE)
        assert text(rendered).startswith(before)
        assert len(names(rendered)) == number
        before = text(rendered)
        simulated.write(AskStarted(number, pack(OK)), AskStarted(number, pack(human(PLAN))))


def test_documents_are_named_only_for_dialects_with_document_names() -> None:
    for name, profile in PROFILES.items():
        titles: list[str] = []
        recorder = titling(titles)
        advance(empty_lane(profile), History([human(PLAN)]), Ledger(), profile, recorder, RenderTarget(HERE))
        assert any(titles) is profile.media.named_documents is (name == "bedrock")


# ---- limits


@pytest.mark.requirement("PROMISE-1")
@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_documents_and_images_beyond_the_limit_are_replaced_by_notes_and_count_as_lost(pieces: int) -> None:
    said = [message for n in range(7) for message in (human(page(n), *[IMAGE] * 3), OK)]
    simulated, lost = session(), 0
    rendered = simulated.render(HERE)
    for start in range(0, len(said), 2 * (7 // pieces)):
        simulated.write(
            *(AskStarted(1, pack(message)) for message in said[start : start + 2 * (7 // pieces)])
        )
        rendered = simulated.send(HERE)
        lost += dict(rendered.report.losses).get("media", 0)
    kinds = [kind for kind, _ in attachment_pairs(rendered)]
    assert (kinds.count("document"), len(kinds)) == (5, 20)
    assert lost == text(rendered).decode().count(NOTED) == 28 - 20
    assert kinds[:4] == ["document", "image", "image", "image"]  # the oldest are sent


@pytest.mark.requirement("PROMISE-4")
def test_attachments_and_notes_that_were_sent_stay_unchanged_in_later_requests() -> None:
    simulated, before = session(), b""
    for number in range(9):
        simulated.write(AskStarted(number, pack(human(page(number)))))
        rendered = simulated.send(HERE)
        assert text(rendered).startswith(before)
        assert len(names(rendered)) == min(number + 1, 5)
        before = text(rendered)
        simulated.write(AskStarted(number, pack(OK)))


def test_images_are_sent_after_the_document_limit_is_reached() -> None:
    rendered = render_once(human(*map(page, range(6)), IMAGE))
    assert attachment_pairs(rendered)[-1] == ("image", "")
    assert len(names(rendered)) == 5


def test_the_note_for_excess_media_of_a_result_is_inside_the_result() -> None:
    rendered = render_once(human(*[IMAGE] * 19), *call_with_media("c1", IMAGE, IMAGE, PLAN))
    *_, answer = sent_body(rendered)
    (result,) = answer["content"]
    words, image = result["toolResult"]["content"]
    assert words["text"].count(NOTED) == 2
    assert "image" in image
    assert rendered.report.losses == (("media", 2),)


def test_a_new_epoch_starts_with_the_full_media_limit() -> None:
    simulated = session(human(*map(page, range(6))))
    assert len(names(simulated.send(HERE))) == 5
    for number, plain in enumerate((False, True)):
        simulated.restart(HERE, plain=plain)
        assert len(names(simulated.send(HERE))) == 5
        simulated.write(AskStarted(number, pack(human(PLAN))))
        assert dict(simulated.send(HERE).report.losses) == {"media": 1}


@pytest.mark.requirement("PROMISE-3")
def test_a_lane_rebuilt_from_the_log_counts_the_media_that_were_sent() -> None:
    simulated = session(human(PLAN, page(1)))
    simulated.send(HERE)
    simulated.write(AskStarted(1, pack(OK)), AskStarted(2, pack(human(PLAN, *map(page, range(4))))))
    simulated.send(HERE)
    _, lanes = rebuild(reread_log(simulated.log), rules)
    assert lanes.of(HERE)._state == simulated.lanes.of(HERE)._state
    simulated.write(AskStarted(3, pack(OK)), AskStarted(4, pack(human(PLAN, IMAGE))))
    again = lanes.render(HERE, simulated.state.history, simulated.state.ledger)
    assert again == simulated.send(HERE)
    assert len(names(again)) == 5


def test_the_media_limits_come_from_the_dialect() -> None:
    rendered = render_once(human(*[IMAGE] * 6), profile=PROFILES["groq"])
    assert rendered.transcript.count(b'image_url":{') == 5
    roomy = replace(BEDROCK, media=ConverseMedia())
    rendered = render_once(human(*map(page, range(9)), *[IMAGE] * 30), profile=roomy)
    assert NOTED.encode() not in rendered.transcript
    assert rendered.transcript.count(b"bytes") == 39


def test_media_that_cannot_be_sent_do_not_count_towards_the_limit() -> None:
    never = [
        Media("audio/wav", "aGk="),
        Media("image/png", ""),
        Media("image/png", url="https://a.example/i.png"),
    ]
    rendered = render_once(
        human(*never * 9, *[IMAGE] * 19), Message("assistant", [Text("so"), IMAGE]), human(IMAGE)
    )
    assert len(attachment_pairs(rendered)) == 20
    assert NOTED not in text(rendered).decode()
