"""What an ask says beside its message: settings that hold for this ask and no other.

They are in the log with the message, so a turn that goes on after a restart goes on with them. Each is frozen for the
ask, and is projected to what a dialect takes as a backend's own settings are (`actors.adapters.settings`).
"""

from collections.abc import Callable, Collection, Mapping
from math import inf
from typing import Any, Final, Literal, TypeAlias, TypedDict, get_args

from actors.core.data.form import Form
from actors.core.data.jsonio import Json
from actors.core.models.facts import EFFORTS
from actors.core.schemas.repair import MODES, RepairMode
from actors.errors import ConfigError, nearest


class Choose(Form, frozen=True):
    """The tool choice that forces one tool: `tool_choice=Choose("search")`.

    Args:
        tool: Its name, as the tool has it.
    """

    tool: str


ChoiceWord: TypeAlias = Literal["auto", "none", "required"]
ToolChoice: TypeAlias = ChoiceWord | Choose
Mode: TypeAlias = Literal["default", "adaptive", "manual", "off"]
AskMode: TypeAlias = Literal["adaptive", "off"]
"""How one ask may have a model think. A budget is its backend's: what is replayed depends on it (ANT-40)."""

MOST_STOPS: Final = 4
"""Stop sequences of one ask: what the strictest provider takes."""


class AskSettings(TypedDict, total=False):
    """What one ask may set; each is as the backend has it where it is not given.

    `max_tokens`, `temperature`, `top_p`, `stop` (texts at which the answer ends, at most 4), `thinking` and `effort`
    are what a backend's own settings are. `tool_choice` is `auto`, `none`, `required`, or `Choose("NAME")` for one
    tool. What forces a tool holds for the first request of the ask: once one was called, the model is free to answer.
    In seconds, `first_byte` and `idle` bound each request, and `total` the whole ask: it fails when they have passed,
    with every call closed. `rounds` bounds its turns, `tokens` ends it before a request once as many were used,
    `corrections` says how often the model may correct itself. `repair="strict"` refuses arguments and answers with a
    slip, such as a text for a number, also where exactly one reading of them fits the schema.
    """

    max_tokens: int
    temperature: float
    top_p: float
    stop: tuple[str, ...]
    tool_choice: ToolChoice
    thinking: AskMode
    effort: str
    first_byte: float
    idle: float
    total: float
    rounds: int
    tokens: int
    corrections: int
    repair: RepairMode


class Asked(Form, frozen=True):
    """The settings of one ask as the log keeps them; None where the backend's own hold. See `AskSettings`.

    `output` is the JSON Schema of the form its answer is to have, always that of an object.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    tool_choice: ToolChoice | None = None
    thinking: AskMode | None = None
    effort: str | None = None
    first_byte: float | None = None
    idle: float | None = None
    total: float | None = None
    rounds: int | None = None
    tokens: int | None = None
    corrections: int | None = None
    output: Json | None = None
    repair: RepairMode | None = None

    @property
    def of_request(self) -> dict[str, Any]:  # Any: each setting has its own type
        """What this says of every request, by the names of `actors.adapters.request.Settings`."""
        said = {name: value for name in OF_REQUEST if (value := getattr(self, name)) not in (None, ())}
        return (
            said | {"thinking_tokens": None} if "thinking" in said else said
        )  # a budget is that of `manual`


OF_REQUEST: Final = ("max_tokens", "temperature", "top_p", "stop", "thinking", "effort", "output")
"""The settings that say something of every request. A tool choice is of the first one alone."""


def asked(given: Mapping[str, object], output: Json | None = None) -> Asked | None:
    """Return settings as they are kept, and the form of the answer; None if there are none.

    Raises:
        ConfigError: There is no such setting, or it takes no such value.
    """
    if not given and output is None:
        return None
    for name, value in given.items():
        if name not in AskSettings.__annotations__:
            raise ConfigError(f"An ask has no setting {name!r}; {_near(name)}")
        if (takes := refused(name, value)) is not None:
            raise ConfigError(f"{name} is {value!r}; it takes {takes}")
    said = {name: _kept(name, value) for name, value in given.items() if value is not None}
    return Asked(**said, output=output)


def forced_instruction(choice: ToolChoice) -> str:
    """Return what tells a model in words to call a tool, for one that accepts no forced tool choice."""
    if isinstance(choice, Choose):
        return f"Call the tool {choice.tool!r} now, before you answer in words."
    return "Call one of your tools now, before you answer in words."


def check_choice(choice: ToolChoice | None, tools: Collection[str]) -> None:
    """Refuse a tool choice that forces a tool which is none of these.

    Raises:
        ConfigError: There is no such tool.
    """
    if isinstance(choice, Choose) and choice.tool not in tools:
        close = nearest(choice.tool, tools)
        hint = f"did you mean {close!r}?" if close else f"there are {', '.join(tools) or 'no tools'}"
        raise ConfigError(f"tool_choice forces {choice.tool[:80]!r}, which is no tool here; {hint}")


def _kept(name: str, value: Any) -> Any:  # Any: each setting has its own type
    """Return a value as the log has it: texts as a tuple, what is no count as a float."""
    if name == "stop":
        return tuple(value)
    return float(value) if name in _FLOATS else value


_FLOATS = frozenset({"temperature", "top_p", "first_byte", "idle", "total"})


def _near(name: str) -> str:
    known = AskSettings.__annotations__
    close = nearest(name, known)
    return f"did you mean {close!r}?" if close else f"there are {', '.join(known)}"


def refused(name: str, value: object) -> str | None:
    """Return what a setting takes, if it does not take this value; None leaves any of them out."""
    takes, fits = _RULES[name]
    if value is None or fits(value):
        return None
    close = nearest(value, EFFORTS) if name == "effort" and type(value) is str else None
    return f"{takes}, or None" + (f"; did you mean {close!r}?" if close else "")


def _whole(value: object) -> bool:
    return type(value) is int and value >= 1


def _between(least: float, most: float) -> Callable[[object], bool]:
    return lambda value: type(value) in (int, float) and least <= value < most  # type: ignore[operator]  # a number


def _seconds(value: object) -> bool:
    return _between(0, inf)(value) and value != 0


def _stops(value: object) -> bool:
    if type(value) not in (tuple, list):
        return False
    return len(value) <= MOST_STOPS and all(type(text) is str and text.strip() for text in value)  # type: ignore[arg-type,attr-defined]  # a sequence


def _choice(value: object) -> bool:
    if isinstance(value, Choose):
        return type(value.tool) is str and bool(value.tool)
    return type(value) is str and value in get_args(ChoiceWord)


def _one_of(words: tuple[str, ...]) -> tuple[str, Callable[[object], bool]]:
    return f"one of {', '.join(words)}", lambda value: type(value) is str and value in words


def _is_effort(value: object) -> bool:
    """Return True for a level that some provider has, or a word of a host's own that resembles none of them."""
    if type(value) is not str or not value.strip():
        return False
    return value in EFFORTS or nearest(value, EFFORTS) is None


_EFFORT = (f"one of {', '.join(EFFORTS)}, or the provider's own word", _is_effort)
_WHOLE = ("a whole number from 1", _whole)
_SECONDS = ("seconds above 0", _seconds)
_RULES: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "max_tokens": _WHOLE,
    "thinking_tokens": _WHOLE,  # of a backend alone
    "temperature": ("a finite number from 0", _between(0, inf)),
    "top_p": ("a number from 0 to 1", _between(0, 1.0000001)),
    "stop": (f"at most {MOST_STOPS} texts that are not blank", _stops),
    "tool_choice": (f"one of {', '.join(get_args(ChoiceWord))}, Choose('NAME')", _choice),
    "thinking": _one_of(get_args(AskMode)),
    "effort": _EFFORT,
    "first_byte": _SECONDS,
    "idle": _SECONDS,
    "total": _SECONDS,
    "rounds": _WHOLE,
    "tokens": _WHOLE,
    "repair": _one_of(MODES),
    "corrections": ("a whole number from 0", lambda value: value == 0 or _whole(value)),
}
