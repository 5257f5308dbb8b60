"""Script the model of a strict server. The turns are served in order, or a function computes each from the request.

    Script([Turn(Say("Looking."), Call("weather", {"city": "Oslo"})), Turn(Say("21 C."))])
    Script(lambda request: Turn(Say(str(len(request["messages"])))))

By default, the model behaves correctly. Each defect that has been observed in real backends is an option of `Turn`, so
a test causes a defect in one line.

A file may contain the turns as a JSON list:

    [
      ["Looking.", {"call": "weather", "arguments": {"city": "Oslo"}}],
      {"parts": [{"think": "Cold."}, "4 C."], "stop": "max_tokens"}
    ]

A turn is a list of parts, or an object with `parts` and options of `Turn` (`stop`, `ids`, `index`, `repeat_id`,
`whole_calls`, `fragment`, `usage`). A part is a string, or an object with one of `say`, `think` (and `signature`),
`redacted`, or `call` (and `arguments`, `raw`, `id`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from actors.strict.rules.base import Json, is_array, is_object
from actors.strict.rules.reading import parse

_OPTIONS: Mapping[str, Callable[[Json], bool]] = {
    "stop": lambda value: value is None or isinstance(value, str),
    "ids": lambda value: value in ("minted", "restart", "blank"),
    "index": lambda value: value in ("counted", "zero", "missing"),
    "repeat_id": lambda value: isinstance(value, bool),
    "whole_calls": lambda value: isinstance(value, bool),
    "fragment": lambda value: type(value) is int and value > 0,
    "usage": lambda value: (
        is_array(value) and len(value) == 2 and all(type(count) is int and count >= 0 for count in value)
    ),
}
_KEYS: Mapping[str, tuple[frozenset[str], type]] = {
    "say": (frozenset({"say"}), str),
    "think": (frozenset({"think", "signature"}), str),
    "redacted": (frozenset({"redacted"}), bool),
    "call": (frozenset({"call", "arguments", "raw", "id"}), str),
}
_PART_KEY_TYPES = {"arguments": dict, "raw": str, "id": str, "signature": str}
_JSON_TYPES = {str: "a string", bool: "a boolean", dict: "an object"}


@dataclass(frozen=True, slots=True)
class Say:
    """Text in a scripted answer.

    Args:
        text: The complete text, which a stream sends in fragments.
        citations: Citations (Anthropic) or annotations (Responses), in wire format.
    """

    text: str
    citations: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class Think:
    """Thinking in a scripted answer. In Chat Completions, it is sent as `reasoning_content`, as compatible hosts do.

    Args:
        text: The text of the thinking. It may be empty, as when an API hides the text.
        signature: The signature, which is sent unchanged. With None, the server creates a valid signature, so that
            later requests may contain the thinking.
    """

    text: str
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class Redacted:
    """A redacted thinking block in a scripted answer, signed by the server.

    OpenRouter sends it as an encrypted reasoning detail. All other vendors of the Chat Completions family omit it.
    """


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call in a scripted answer.

    Args:
        name: The tool's name. The request need not declare this tool.
        arguments: The arguments, sent as a JSON object.
        id: The call's id, which is sent unchanged even if it is empty. None generates an id according to the turn's
            `ids`.
        raw: The arguments as text, possibly malformed or cut. With `raw`, `arguments` is ignored. If the wire format
            requires an object (Anthropic without streaming), text that is not a JSON object is sent as `{}`.
    """

    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict[str, Json])
    id: str | None = None
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class Builtin:
    """The output of a provider's built-in tool in a scripted answer, in wire format.

    The output is a block (Anthropic), an item (Responses) or a part (Gemini). Other wire formats raise an error.

    Args:
        value: A JSON object. For an item, the id is generated.
    """

    value: Mapping[str, Json]


TurnPart: TypeAlias = Say | Think | Redacted | Call | Builtin
"""A part of a scripted answer."""


@dataclass(frozen=True, slots=True, init=False)
class Turn:
    """One scripted response of the model.

    Args:
        parts: The parts of the response, in the order in which the model produces them.
        stop: The stop reason in wire format, possibly a wrong one; None selects the correct reason.
        ids: The ids of calls: `minted` ids are unique, `restart` ids are `call_0`, `call_1` and so on in each response,
            and `blank` ids are empty.
        index: The `index` of each tool call delta in OpenAI's wire format: the position of the call (`counted`), always
            0 (`zero`), or no index (`missing`).
        repeat_id: Whether every fragment of a call repeats its id, type and name (OpenAI's wire format).
        whole_calls: Whether each call is sent in a single delta.
        extra: Fields that are added to every message, chunk and event, to test that clients ignore unknown fields.
        fragment: Number of characters in each text or argument delta.
        usage: Numbers of input and output tokens to report. If the prompt cache reads or writes tokens, the reported
            input tokens are the size of the prompt instead.
        cached: Numbers of input tokens to report as read from the prompt cache and as written to it.
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

    def with_usage(self, usage: tuple[int, int], cached: tuple[int, int]) -> "Turn":
        """Return a copy of this turn that reports these token counts."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        parts = values.pop("parts")
        values |= {"usage": usage, "cached": cached}
        return Turn(*parts, **values)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The tool calls among the parts, in order."""
        return tuple(part for part in self.parts if isinstance(part, Call))


Behaviour: TypeAlias = Callable[[Json], Turn]
"""A function that returns the turn for a parsed request body."""
DEFAULT = Turn(Say("ok"))


class Script:
    """A model's script, which selects the turn that answers each accepted request.

    Args:
        turns: Turns that are served in order, or a function from the parsed request to a turn.
        default: The turn that is served once all turns have been used.

    If a fault cuts off or replaces an answer, the script does not advance, so a retry gets the same turn.
    """

    def __init__(self, turns: Sequence[Turn] | Behaviour = (), default: Turn = DEFAULT) -> None:
        self._turns = turns
        self._default = default
        self._served = 0

    @classmethod
    def of(cls, script: "ScriptSource") -> "Script":
        """Return a script unchanged, or create one from turns or a function.

        None creates a script that always answers `ok`.
        """
        return script if isinstance(script, Script) else cls(script or ())

    def turn(self, request: Json) -> Turn:
        """Return the turn for the next accepted request, without advancing to the turn after it."""
        if callable(self._turns):
            return self._turns(request)
        return self._turns[self._served] if self._served < len(self._turns) else self._default

    def advance(self) -> None:
        """Advance to the next turn. The server calls this after it has served a turn."""
        self._served += 1


ScriptSource: TypeAlias = Script | Sequence[Turn] | Behaviour | None
"""Values that `Script.of` accepts."""


def parse_turns(text: bytes) -> list[Turn]:
    """Parse the contents of a script file, and return its turns.

    Raises:
        ValueError: The file is not a valid script; the message names the turn or part, and the reason.
    """
    read = parse(text)
    if not is_array(read):
        raise ValueError("a script must be a JSON list of turns")
    return [_parse_turn(item, f"turn {at}") for at, item in enumerate(read)]


def _parse_turn(value: Json, location: str) -> Turn:
    held = value if is_object(value) else {"parts": value}
    if not is_array(held.get("parts")):
        raise ValueError(f"{location}: a turn must be a list of parts, or an object with a list `parts`")
    options = {key: item for key, item in held.items() if key != "parts"}
    for key, item in options.items():
        if key not in _OPTIONS or not _OPTIONS[key](item):
            raise ValueError(
                f"{location}: {key!r} is not an option of a turn or has an invalid value; "
                f"the options are {', '.join(_OPTIONS)}"
            )
    if "usage" in options:
        options["usage"] = tuple(options["usage"])
    return Turn(
        *(_parse_part(part, f"{location}, part {at}") for at, part in enumerate(held["parts"])), **options
    )


def _parse_part(value: Json, location: str) -> TurnPart:
    if isinstance(value, str):
        return Say(value)
    kind = next((kind for kind in _KEYS if is_object(value) and kind in value), None)
    if kind is None:
        raise ValueError(f"{location}: a part must be a string, or an object with one of {', '.join(_KEYS)}")
    keys, wanted = _KEYS[kind]
    if not value.keys() <= keys or not isinstance(value[kind], wanted):
        raise ValueError(
            f"{location}: {kind!r} must be {_JSON_TYPES[wanted]}, and its object may have only the keys "
            f"{', '.join(sorted(keys))}"
        )
    for key in value.keys() & _PART_KEY_TYPES.keys():
        if not isinstance(value[key], _PART_KEY_TYPES[key]):
            raise ValueError(f"{location}: {key!r} must be {_JSON_TYPES[_PART_KEY_TYPES[key]]}")
    match kind:
        case "say":
            return Say(value["say"])
        case "think":
            return Think(value["think"], value.get("signature"))
        case "redacted":
            return Redacted()
        case _:
            return Call(value["call"], value.get("arguments", {}), id=value.get("id"), raw=value.get("raw"))
