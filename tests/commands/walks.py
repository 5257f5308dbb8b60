"""A random walk: one session over strict servers of all dialects, without a socket.

Each step is an event in the life of a session: a user asks, sometimes with images and documents, and the model answers
in rounds, with reasoning, calls, restarting ids and arguments that are not JSON; a tool returns media; a call is
cancelled, forgotten or refused; a result arrives late; an answer breaks off; the next request goes to another host; a
lane starts a new epoch; old messages are compacted; the last turns are rewound; the system prompt or the tools change.
The servers judge each request, and our decoders read their answers in pieces that are cut anywhere.

`problems(seed)` returns the problems of one walk.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import ClassVar, Literal, TypeVar, get_args

from actors.adapters.adapter import Adapter, adapter
from actors.adapters.codec import decode
from actors.adapters.request import Request, Settings, ToolSpec
from actors.core.data.jsonio import Json, quote
from actors.core.data.record import replace as with_fields
from actors.core.dialects.dialect import Dialect, lane_key
from actors.core.dialects.profiles import PROFILES, dialect
from actors.core.history.history import History, end_of
from actors.core.lanes.lane import Rendered
from actors.core.log.call_events import Cancelled, Denied, Failed, Refused, Returned, Scheduled, Started
from actors.core.log.codec import decode_event, encode_event
from actors.core.log.events import (
    AskStarted,
    Compacted,
    Configured,
    EpochBegan,
    ResultsTrimmed,
    Rewound,
    RoundEnded,
    TrimReason,
    TurnEnded,
)
from actors.core.render import RenderTarget
from actors.core.session.lanes import Lanes, rebuild
from actors.core.session.state import opening_event
from actors.core.transcript.transcript import Encoder
from actors.core.turn.answers import interrupted_message
from actors.core.values.content import Media, Message, Text, ToolCall
from actors.core.values.identity import Binding, CallId
from actors.core.values.packed import pack
from actors.strict.script import Builtin, Call, Redacted, Say, Script, Think, Turn, TurnPart
from actors.strict.server import LoopbackServer
from tests.core.session_log import Simulated, parse_body, rules, text
from tests.generated.histories import history
from tests.generated.parts import ATTACHED, DOCUMENTS, MEDIA, OWN, REASONS, TEXTS
from tests.renderer.marks import without_marks
from tests.strict_hosts import answer_to, endpoint, strict_host

T = TypeVar("T")

STEPS = 14
ROUNDS = 4
TOOLS = tuple(
    ToolSpec(name, "Does it.", Json(b'{"type":"object","properties":{"name":{"type":"string"}}}'))
    for name in ("read", "search", "files.write", "x" * 70)
)
SHORT: tuple[TrimReason, ...] = get_args(TrimReason)
SYSTEMS = (None, "Be brief.")
MALFORMED = (
    '{"name": "half',
    "[]",
    '"text"',
    "null",
    "",
    '{"a":1}{"b":2}',
    '{"a":1,"a":2}',
    "\u00e9",
    ' {"a": 1}\n',
)
INVENTED = ("unheard_of", "multi.tool", "x y")
ARGUMENTS: tuple[dict[str, object], ...] = (
    {"name": "a"},
    {},
    {"name": "\u2713 \"'\\ \n", "deep": {"er": [1]}},
)
WORDS = ("Let me see.", "Done.", "\u2713 \U0001f600 over", " ", "", "long " * 300)
IDS: tuple[Literal["minted", "restart", "blank"], ...] = ("minted", "minted", "restart", "blank")
BOUND = ("anthropic", "bedrock", "openai_responses")
"""Dialects with hosts that may bind reasoning to its prefix."""
MODELS = ("model-1", "model-2")
LATE = re.compile(rb"late (hist_tool_\d+)")
"""Text that marks the outcome of an abandoned call."""
IMPORTED = 1000
"""More ids than any generated history uses."""


class WalkProblem(Exception):
    """A problem that a walk found."""


class Model:
    """A model with random answers."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.ran = 0  # calls of the providers' own tools

    def rarely(self, n: int = 8) -> bool:
        return self.random.randrange(n) == 0

    def turn(self, name: str, tools: Sequence[str]) -> Turn:
        """Return a random answer of this dialect's model, with tools by the names that it knows."""
        parts, ids = list(self.parts(tools)), self.random.choice(IDS)
        if name == "kimi" and ids != "minted":
            parts, ids = [_with_used_id(part) for part in parts], "minted"
        if name in OWN and self.rarely():
            at = self.random.randrange(len(parts) + 1)
            parts[at:at] = self.builtin(name)
        return Turn(
            *parts,
            ids=ids,
            whole_calls=self.rarely(4),
            repeat_id=self.rarely(4),
            fragment=self.random.choice((1, 8, 40)),
        )

    def builtin(self, name: str) -> Iterator[TurnPart]:
        """Yield the parts of a call of a provider's own tool."""
        self.ran += 1
        for _, value in self.random.choice(OWN[name]):
            part = json.loads(value.replace("%d", str(self.ran)))
            part.pop("thoughtSignature", None)
            yield Builtin(part)

    def parts(self, tools: Sequence[str]) -> Iterator[TurnPart]:
        for _ in range(self.random.randrange(5)):
            match self.random.randrange(6):
                case 0:
                    yield Think(self.random.choice(("hm", "hm " * 30, "\u2713 so")))
                case 1:
                    yield Redacted() if self.rarely(2) else Think("so")
                case 2:
                    yield Say(self.random.choice(WORDS))
                case _:
                    called = self.random.choice(INVENTED) if self.rarely() else self.random.choice(tools)
                    raw = self.random.choice(MALFORMED) if self.rarely() else None
                    yield Call(called, self.random.choice(ARGUMENTS), raw=raw)


class Walk:
    """One session and its servers.

    Attributes:
        dialects: The dialects of its hosts.
        steps: The number of steps.
        rounds: The most requests of a turn.
        failover: One round in this many continues on another host.
        cut: One streamed answer in this many breaks off.
        last_round: Whether the turn is at its last request.
        sleeps: Whether the session is dropped from memory midway and continues from its log.
    """

    dialects: ClassVar[tuple[str, ...]] = tuple(PROFILES)
    steps: ClassVar[int] = STEPS
    rounds: ClassVar[int] = ROUNDS
    failover: ClassVar[int] = 10
    cut: ClassVar[int] = 6
    last_round = False

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.sleeps = seed % 4 == 0
        self.model = Model(self.random)
        self.session = Simulated(lanes=Lanes(self.rules))
        self.turn = Turn(Say("ok"))
        self.number = 0
        self.late: list[CallId] = []
        self.calls: list[CallId] = []  # calls in the history
        self.ends: list[tuple[int, int]] = [(0, 0)]  # turns that ended, and the number of calls up to each
        self.removed: set[CallId] = set()
        self.thinking: dict[Binding, Literal["default", "adaptive", "manual"]] = {}
        self.sent: dict[tuple[Binding, int], bytes] = {}
        self.hosts: dict[Binding, LoopbackServer] = {}
        self.bindings = [self.binding() for _ in range(self.random.randrange(2, 6))]
        self.system = self.random.choice(SYSTEMS)
        self.tools = TOOLS
        imported = tuple(history(seed)[0]) if self.rarely(4) else ()
        came = with_fields(History(imported), system=self.system)
        self.session.write(with_fields(opening_event("s", "t", came), calls=IMPORTED))

    def rarely(self, n: int = 8) -> bool:
        return self.random.randrange(n) == 0

    def binding(self) -> Binding:
        """Return a binding of a random dialect, served by its own host; a dialect may have two models."""
        name = self.random.choice(self.dialects)
        model = self.model_of(name)
        bound = name in BOUND and not self.rarely(3)
        between = self.rarely(2)
        script = Script(lambda _: self.turn)
        server = strict_host(name, script, host=model, bound=bound, interleaved=between)
        found = Binding(
            name, name, f"https://{name}.host.example{endpoint(name, server)}", "account-1", model
        )
        self.hosts.setdefault(found, server)
        self.thinking.setdefault(found, self.random.choice(("default", "adaptive", "manual")))
        return found

    def model_of(self, name: str) -> str:
        """Return a model of a dialect."""
        del name
        return self.random.choice(MODELS)

    def rules(self, binding: Binding) -> tuple[Dialect, Encoder, RenderTarget]:
        """Return the parameters of rendering for a binding."""
        profile, encoder, reader = rules(binding)
        return profile, encoder, with_fields(reader, budgeted=self.thinking.get(binding) == "manual")

    def run(self) -> None:
        """Make all steps, then one request to every binding."""
        for step in range(self.steps):
            if self.sleeps and step == self.steps // 2:
                self.sleep()
            self.random.choice(
                (*[self.ask] * 6, *[self.return_late] * 2, *[self.rewrite] * 2, self.configure, self.rewind)
            )()
        for binding in self.bindings:
            self.say()
            self.exchange(binding)
        self.compare_with_log()

    # ---- steps

    def ask(self) -> None:
        """A user asks, and a model answers in rounds; sometimes another binding takes over."""
        self.say()
        binding = self.random.choice(self.bindings)
        for number in range(1, self.rounds + 1):
            self.last_round = number == self.rounds
            if self.rarely(self.failover):
                binding = self.random.choice(self.bindings)
            if not self.exchange(binding):
                break
        self.ends.append((self.number, len(self.calls)))
        self.session.write(TurnEnded(self.number, "complete"))

    def say(self) -> None:
        self.number += 1
        words = [self.random.choice(TEXTS) if self.rarely(4) else TEXTS[0]]
        blocks = [*words, *self.sample(MEDIA), *self.sample(DOCUMENTS)] if self.rarely(5) else words
        self.session.write(AskStarted(self.number, pack(Message("user", blocks, self.number))))

    def sample(self, media: Sequence[T]) -> tuple[T, ...]:
        """Return a few of these media, possibly with repetitions."""
        return tuple(self.random.choices(media, k=self.random.choice((0, 1, 1, 2, 6))))

    def random_media(self) -> tuple[Media, ...]:
        """Return the media that a tool adds to its text."""
        return self.sample(ATTACHED) if self.rarely() else ()

    def return_late(self) -> None:
        """A tool returns although its call was abandoned."""
        if self.late:
            call_id = self.late.pop(self.random.randrange(len(self.late)))
            self.session.write(Returned(call_id, quote(f"late {call_id}"), self.random_media()))

    def rewrite(self) -> None:
        """A lane starts a new epoch, or all do because old messages were replaced."""
        if not self.rarely(3):
            return
        held = len(self.session.state.history)
        if self.rarely(3):
            self.shorten()
            return
        if self.rarely(2) or held < 2:
            self.begin(self.random.choice(self.bindings), plain=self.rarely(2))
            return
        start = self.random.randrange(held - 1)
        stop = self.random.randrange(start + 1, held + 1)
        self.session.write(Compacted(start, stop, pack(Message("user", [Text("What was said before.")]))))
        for binding in self.session.lanes.bindings():
            self.begin(binding)
        self.ends = [(self.number, len(self.calls))]  # a summary does not cut at the edge of a turn here

    def rewind(self) -> None:
        """The last turns are rewound, including their calls."""
        if not self.rarely(2):
            return
        turn, calls = self.random.choice(self.ends)
        if end_of(self.session.state.ends, turn) is None:
            return  # a summary replaces it
        self.ends = [end for end in self.ends if end[0] <= turn]
        self.removed.update(self.calls[calls:])
        del self.calls[calls:]
        self.session.write(Rewound(turn))

    def shorten(self) -> None:
        """From now on, placeholders replace some results in every lane."""
        ends = [known.call_id for known in self.session.state.ledger.interactions() if known.completion]
        some = self.random.sample(ends, len(ends) // 2)
        self.session.write(ResultsTrimmed(tuple([(each, self.random.choice(SHORT)) for each in some])))

    def configure(self) -> None:
        """The tools change in number or order, with another system prompt; or the original configuration returns."""
        self.system = self.random.choice(SYSTEMS)
        self.tools = tuple(self.random.sample(TOOLS, self.random.randrange(1, 1 + len(TOOLS))))
        names = tuple([tool.name for tool in self.tools])
        self.session.write(Configured(self.system, names, f"{self.system} {names}"))

    def begin(self, binding: Binding, *, plain: bool = False) -> None:
        epoch = self.session.lanes.of(binding)._state.epoch + 1
        self.session.write(EpochBegan(binding, epoch, "refusal" if plain else "compaction", plain))

    # ---- one request and its answer

    def exchange(self, binding: Binding) -> bool:
        """Send a request, read the answer and run its calls; return True if the turn continues."""
        session, codec = self.session, adapter(dialect(binding.dialect))
        rendered = session.send(binding)
        facts = rendered._facts._replace(lane=lane_key("s", binding))
        request = codec.request(rendered._segments, self.settings(binding), facts)
        names = {own: wire for wire, own in request.names.items()}
        known = [names.get(tool.name, tool.name) for tool in self.tools]
        self.turn = self.next_answer(binding, known)
        body = self.judge_and_serve(binding, request, rendered)
        first = session.state.calls + 1
        message, whole = self.read(codec, binding, request, body, first)
        minted = [int(call.id.rpartition("_")[2]) - first + 1 for call in message.calls]
        used = max(len(self.turn.calls), *minted, 0)  # a fragment may become a separate call
        session.write(RoundEnded(self.number, 1, pack(message) if message.blocks else None, calls=used))
        self.calls += [call.id for call in message.calls]
        for call in message.calls:
            self.end(call, ran=whole)
        return whole and bool(message.calls)

    def next_answer(self, binding: Binding, tools: Sequence[str]) -> Turn:
        """Return the next answer of the model."""
        return self.model.turn(binding.dialect, tools)

    def settings(self, binding: Binding) -> Settings:
        return Settings(
            model=binding.model,
            system=self.system,
            tools=self.tools,
            tool_choice="none" if self.rarely() else "auto",
            max_tokens=8000,
            thinking=self.thinking[binding],
            thinking_tokens=2048 if self.thinking[binding] == "manual" else None,
            stream=not self.rarely(4),
        )

    def judge_and_serve(self, binding: Binding, request: Request, rendered: Rendered) -> bytes:
        """Let every judge check a request; return the server's answer."""
        answer = answer_to(self.hosts[binding], binding, request)
        if answer.status != 200:
            raise WalkProblem(f"{binding}: {answer.status} {b''.join(answer.parts).decode()}")
        if rendered.report.faults:
            raise WalkProblem(f"{binding}: judge: {rendered.report.faults[0]}")
        lane = binding, rendered.lane._state.epoch
        body = without_marks(request.body, binding.dialect)
        if not text(rendered).startswith(self.sent.get(lane, b"")) or text(rendered) not in body:
            raise WalkProblem(f"{binding}: the request does not start with the previous one")
        self.sent[lane] = text(rendered)
        shown = LATE.findall(request.body) if self.removed else []
        if self.removed.intersection(each.decode() for each in shown):
            raise WalkProblem(f"{binding}: late results of rewound calls: {shown}")
        found = parse_body(request.body)
        if Counter(found.calls) != Counter(found.results):
            raise WalkProblem(f"{binding}: calls {found.calls} and results {found.results}")
        return b"".join(answer.parts)

    def read(
        self, codec: Adapter, binding: Binding, request: Request, body: bytes, first: int
    ) -> tuple[Message, bool]:
        """Read an answer in pieces; return its message, and whether it was complete."""
        stream = not body.startswith(b"{")
        decoder = decode(
            codec.dialect, binding, stream=stream, first_call=first, turn=self.number, names=request.names
        )
        cuts = sorted(self.random.randrange(len(body) + 1) for _ in range(3))
        if stream and self.rarely(self.cut):
            decoder.feed(body[: cuts[0]])
            kept = decoder.partial_message()
            return interrupted_message(kept), False
        for start, stop in zip((0, *cuts), (*cuts, len(body)), strict=True):
            decoder.feed(body[start:stop])
        return decoder.close(), True

    def end(self, call: ToolCall, *, ran: bool) -> None:
        """Give a call a random outcome."""
        write = self.session.write
        chance = self.random.random()
        if chance < 0.04:
            self.late.append(call.id)  # forgotten, as by a killed process
            return
        write(Scheduled(call.id, call.name, call.json))
        if call.raw is not None or call.name not in {tool.name for tool in self.tools}:
            write(Refused(call.id, quote("This call cannot be run.")))
        elif chance < 0.08:
            write(Denied(call.id, quote("No.")))
        elif chance < 0.2 or not ran:
            write(Cancelled(call.id, self.random.choice(REASONS)))
            self.late.append(call.id)
        else:
            write(Started(call.id))
            told = quote(f"{call.name} is done: \u2713" * self.random.randrange(3))
            write(Failed(call.id, told) if self.rarely() else Returned(call.id, told, self.random_media()))

    def sleep(self) -> None:
        """Drop the session from memory, and continue it from the records of its log."""
        session = self.session
        session.log = [decode_event(encode_event(event)) for event in session.log]
        session.state, session.lanes = rebuild(session.log, self.rules)

    def compare_with_log(self) -> None:
        """Check that the session's log folds to the same session, byte for byte."""
        state, lanes = rebuild(self.session.log, self.rules)
        if (state.history, state.ledger) != (self.session.state.history, self.session.state.ledger):
            raise WalkProblem("the log folds to another history or ledger")
        for binding in self.session.lanes.bindings():
            live, folded = self.session.lanes.of(binding), lanes.of(binding)
            if b"".join(live._segments) != b"".join(folded._segments) or live._state != folded._state:
                raise WalkProblem(f"{binding}: the log folds to another lane")


def _with_used_id(part: TurnPart) -> TurnPart:
    """Return a call with an id of Kimi's form that was used before."""
    return replace(part, id=f"functions.{part.name}:0") if isinstance(part, Call) else part


def problems(seed: int) -> list[str]:
    """Return the problems of the walk with this number."""
    return problems_of(Walk(seed), seed)


def problems_of(walk: Walk, seed: int) -> list[str]:
    """Make a walk; return its problems."""
    try:
        walk.run()
    except WalkProblem as found:
        return [f"walk({seed}), request {len(walk.session.sent)}: {found}"]
    except Exception as error:  # report the seed, whatever the exception
        return [f"walk({seed}) raised {type(error).__name__}: {error}"]
    return []
