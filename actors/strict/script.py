"""Script the model behind a strict server: turns as data, served in order or computed from the request.

    Script([Turn(Say("Looking."), Call("weather", {"city": "Oslo"})), Turn(Say("21 C."))])
    Script(lambda request: Turn(Say(str(len(request["messages"])))))

By default, the model behaves well. Each defect observed in a real backend is an option of a turn, so a test states
in one line which defect it covers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from actors.strict.rules.base import Json


@dataclass(frozen=True, slots=True)
class Say:
    """Text.

    Args:
        cited: Citations in the wire format: citations (Anthropic) or annotations (Responses).
    """

    text: str
    cited: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class Think:
    """Thinking; on the OpenAI wire the `reasoning_content` of compatible hosts.

    Args:
        text: May be empty, as with omitted display.
        signature: Sent unchanged; None lets the server sign, which makes the thinking valid in later requests.
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
        id: Sent unchanged, even if empty; None lets the turn's `ids` decide.
        raw: The argument text of the model, possibly malformed or cut; `arguments` are then ignored. If the wire
            needs an object (Anthropic without streaming), other text becomes `{}`.
    """

    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict[str, Json])
    id: str | None = None
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class Builtin:
    """The output of a provider's built-in tool, in wire format.

    It is a block (Anthropic), an item (Responses) or a part (Gemini). Streams of other wire formats raise an error.

    Args:
        value: A JSON object. The id of an item is minted.
    """

    value: Mapping[str, Json]


TurnPart: TypeAlias = Say | Think | Redacted | Call | Builtin


@dataclass(frozen=True, slots=True, init=False)
class Turn:
    """One response of the model.

    Args:
        parts: In the order in which the model produces them.
        stop: The stop reason in wire format, possibly false; None selects the true one.
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

    parts: tuple[TurnPart, ...]
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
        *parts: TurnPart,
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
        """Return a copy of this turn that reports other token counts."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        parts = values.pop("parts")
        values |= {"usage": usage, "cached": cached}
        return Turn(*parts, **values)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls among the parts."""
        return tuple(part for part in self.parts if isinstance(part, Call))


Behaviour: TypeAlias = Callable[[Json], Turn]
DEFAULT = Turn(Say("ok"))


class Script:
    """Assigns a turn to each accepted request.

    Args:
        turns: Served in order, or a function from the parsed request to a turn.
        default: Served when the turns are used up.

    If a fault cuts off or replaces an answer, the script does not advance, and the retry gets the same turn.
    """

    def __init__(self, turns: Sequence[Turn] | Behaviour = (), default: Turn = DEFAULT) -> None:
        self._turns = turns
        self._default = default
        self._served = 0

    @classmethod
    def of(cls, script: "ScriptSource") -> "Script":
        """Return a script as it is, or create one from turns or a function; None creates one that always says `ok`."""
        return script if isinstance(script, Script) else cls(script or ())

    def turn(self, request: Json) -> Turn:
        """Return the turn of the next accepted request without advancing."""
        if callable(self._turns):
            return self._turns(request)
        return self._turns[self._served] if self._served < len(self._turns) else self._default

    def advance(self) -> None:
        """Advance to the next turn."""
        self._served += 1


ScriptSource: TypeAlias = Script | Sequence[Turn] | Behaviour | None
"""Values that `Script.of` accepts."""
