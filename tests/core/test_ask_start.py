"""Check that publishing from the start of an ask gives the same events as publishing the complete log."""

from actors.core.log.events import AskStarted, LogEvent, Opened, SwitchQueued, TurnEnded, TurnStarted
from actors.core.session.open_asks import AskStartSearch
from actors.core.session.publishing import NO_BINDING, Publisher
from actors.core.stream_events.event_json import event_json
from actors.core.values.content import Message, Text
from actors.core.values.packed import pack

SAID = pack(Message("user", (Text("Hello?"),)))


def ask_events(number: int) -> tuple[LogEvent, ...]:
    return (
        AskStarted(number, SAID),
        SwitchQueued(1, "b"),
        TurnStarted(number + 4, number, NO_BINDING),
        TurnEnded(number + 4, "complete"),
    )


LOG: tuple[LogEvent, ...] = (
    Opened("s", "a"),
    *ask_events(1),
    *ask_events(2),
    SwitchQueued(1, "c"),
    *ask_events(3),
)


def published_events(publisher: Publisher, events: tuple[LogEvent, ...]) -> list[object]:
    return [event_json(each) for event in events for each in publisher.publish(event)]


def test_publishing_from_the_start_of_an_ask_gives_the_same_events_as_from_the_log_start() -> None:
    whole = [published_events(Publisher(), LOG[:end]) for end in range(len(LOG) + 1)]
    for place in range(len(LOG) + 1):
        for step in (1, 2, 3, 50):
            start, first = AskStartSearch(), place
            while first and not start.is_found:
                first, end = max(0, first - step), first
                start.search(first, LOG[first:end])
            publisher = start.publisher()
            assert place - 9 < publisher.seq <= place
            published_events(publisher, LOG[publisher.seq : place])
            assert whole[place] + published_events(publisher, LOG[place:]) == whole[-1]
