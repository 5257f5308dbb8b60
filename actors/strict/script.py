"""What the model behind a strict server says: turns as data, served in order or computed from the request.

    Script([Turn(Say("Looking."), Call("weather", {"city": "Oslo"})), Turn(Say("21 C."))])
    Script(lambda request: Turn(Say(str(len(request["messages"])))))

The well-behaved model is the default. Everything a real backend was seen to get wrong is an option of the
turn that gets it wrong, so a test says in one line what it defends against.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias

from actors.strict.rules.base import Json


@dataclass(frozen=True, slots=True)
class Say:
    """Text.

    Args:
        cited: What the model cites for it, as the wire has citations (Anthropic) or annotations (Responses).
    """

    text: str
    cited: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class Think:
    """Thinking; on the OpenAI wire the `reasoning_content` of compatible hosts.

    Args:
        text: May be empty, as with omitted display.
        signature: Sent as it is; None lets the server sign, which is what makes it valid later.
    """

    text: str
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class Redacted:
    """A redacted thinking block, signed by the server.

    An encrypted reasoning detail on OpenRouter's wire; nothing on those of OpenAI and the other vendors of its family.
    """


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call.

    Args:
        id: None lets the turn's `ids` decide; any string is sent as it is, the empty one too.
        raw: The argument text as the model wrote it, malformed or cut; `arguments` are then ignored. Where
            the wire wants an object (Anthropic, not streamed), text that is not one becomes `{}`.
    """

    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict)
    id: str | None = None
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class Builtin:
    """What a tool of the provider's own put into the answer: a block of Anthropic's, an item of Responses, a part of
    Gemini's, as the wire has it. A stream of another wire has no such thing, and fails.

    Args:
        value: A JSON object. The id of an item is minted.
    """

    value: Mapping[str, Json]


Part: TypeAlias = Say | Think | Redacted | Call | Builtin


@dataclass(frozen=True, slots=True, init=False)
class Turn:
    """One response of the model.

    Args:
        parts: In the order in which the model produces them.
        stop: The stop reason as the wire spells it; None is the true one. May lie.
        ids: `minted` ids are unique; `restart` counts `call_0`, `call_1` anew in every response; `blank`
            leaves them empty.
        index: Of tool call fragments (OpenAI wire): counted, always `zero`, or `missing`.
        repeat_id: Repeat id, type and name on every fragment of a call (OpenAI wire).
        whole_calls: Send each call in a single delta.
        extra: Unknown fields, added to every message, chunk and event.
        fragment: Characters of a text or argument delta.
        usage: Input and output tokens to report, where the prompt cache neither reads nor writes.
        cached: Tokens of the input to report as read from the prompt cache, and as written to it.
    """

    parts: tuple[Part, ...]
    stop: str | None
    ids: Literal["minted", "restart", "blank"]
    index: Literal["counted", "zero", "missing"]
    repeat_id: bool
    whole_calls: bool
    extra: Mapping[str, Json]
    fragment: int
    usage: tuple[int, int]
    cached: tuple[int, int]

    def __init__(
        self,
        *parts: Part,
        stop: str | None = None,
        ids: Literal["minted", "restart", "blank"] = "minted",
        index: Literal["counted", "zero", "missing"] = "counted",
        repeat_id: bool = False,
        whole_calls: bool = False,
        extra: Mapping[str, Json] | None = None,
        fragment: int = 8,
        usage: tuple[int, int] = (11, 7),
        cached: tuple[int, int] = (0, 0),
    ) -> None:
        values: dict[str, object] = {"parts": parts, "stop": stop, "ids": ids, "index": index}
        values |= {"repeat_id": repeat_id, "whole_calls": whole_calls, "extra": extra or {}}
        values |= {"fragment": fragment, "usage": usage, "cached": cached}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def counted(self, usage: tuple[int, int], cached: tuple[int, int]) -> "Turn":
        """Return this turn with other figures to report."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        parts = values.pop("parts")
        return Turn(*parts, **(values | {"usage": usage, "cached": cached}))

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls among the parts."""
        return tuple(part for part in self.parts if isinstance(part, Call))


Behaviour: TypeAlias = Callable[[Json], Turn]
DEFAULT = Turn(Say("ok"))


class Script:
    """Gives each accepted request its turn.

    Args:
        turns: Served one after the other, or a function from the parsed request to a turn.
        default: Served when the turns are used up.

    A request whose answer a fault cuts off or replaces leaves the script where it was: the retry gets the
    same turn.
    """

    def __init__(self, turns: Sequence[Turn] | Behaviour = (), default: Turn = DEFAULT) -> None:
        self._turns = turns
        self._default = default
        self._served = 0

    @classmethod
    def of(cls, script: "ScriptSource") -> "Script":
        """Return the script itself, or one made of turns or a function; None says `ok` to everything."""
        return script if isinstance(script, Script) else cls(script or ())

    def turn(self, request: Json) -> Turn:
        """Return the turn the next accepted request gets, without using it up."""
        if callable(self._turns):
            return self._turns(request)
        return self._turns[self._served] if self._served < len(self._turns) else self._default

    def advance(self) -> None:
        """Use up the current turn."""
        self._served += 1


ScriptSource: TypeAlias = Script | Sequence[Turn] | Behaviour | None
"""Whatever `Script.of` makes a script of."""
