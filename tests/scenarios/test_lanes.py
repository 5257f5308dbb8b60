"""Check call numbers across several requests and a compaction."""

from actors.adapters.adapter import adapter
from actors.core.dialects.profiles import dialect
from actors.core.history.history import History
from actors.core.lanes.lane import Lane, Rendered, advance, begin_epoch, empty_lane
from actors.core.log.events import EpochBegan
from actors.core.render import RenderTarget
from tests.scenarios.canon import canonical, made_by
from tests.scenarios.naive import Asked
from tests.scenarios.script import Details, parse_script
from tests.scenarios.shape import items

ASKED = Asked(
    "kimi",
    {
        1: Details(id="functions.read:0"),
        2: Details(id="call_foreign_2"),
        3: Details(id="functions.read:2"),
        4: Details(id="call_foreign_4"),
        5: Details(id="call_foreign_5"),
    },
)


def _advance(lane: Lane, script: str) -> tuple[Rendered, dict[str, str]]:
    """Extend a lane by a script. Return it and the id of each call in the complete request."""
    messages, ledger = canonical(parse_script(script), ASKED, "both")
    kimi = dialect("kimi")
    reader = RenderTarget(made_by("kimi"), "native")
    rendered = advance(lane, History(messages, ledger), ledger, kimi, adapter(kimi).encoder, reader)
    assert list(rendered.report.faults) == []
    body = b'{"messages":[' + b"".join(rendered._segments) + b"]}"
    return rendered, {item.text: item.wire_id for item in items(body, "openai_chat") if item.kind == "call"}


def test_a_used_kimi_call_number_is_never_reused() -> None:
    rendered, ids = _advance(
        empty_lane(dialect("kimi")), "U A[T c1] R1 A@elsewhere[c2] R2 A[T c3] R3 A@elsewhere[c4] R4 U"
    )
    assert ids['{"n":1}'] == "functions.read:0"
    assert ids['{"n":3}'] == "functions.read:2"
    given = set(ids.values())
    assert len(given) == 4

    compacted = begin_epoch(rendered.lane, EpochBegan(made_by("kimi"), 1, "compaction"), dialect("kimi"), 1)
    _, later = _advance(compacted, 'U"Summary." A@elsewhere[c4] R4 A@elsewhere[c5] R5 U')
    assert later['{"n":4}'] == ids['{"n":4}']
    assert later['{"n":5}'] not in given
