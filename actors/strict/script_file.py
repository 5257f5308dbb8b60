"""Read a model's script from a file that contains a JSON list of turns.

    [
      ["Looking.", {"call": "weather", "arguments": {"city": "Oslo"}}],
      {"parts": [{"think": "Cold."}, "4 C."], "stop": "max_tokens"}
    ]

A turn is a list of parts, or an object with `parts` and options of `Turn` (`stop`, `ids`, `index`, `repeat_id`,
`whole_calls`, `fragment`, `usage`). A part is a string, or an object with one of `say`, `think` (and `signature`),
`redacted`, or `call` (and `arguments`, `raw`, `id`).
"""

from collections.abc import Callable, Mapping

from actors.strict.rules.base import Json, is_array, is_object
from actors.strict.rules.reading import parse
from actors.strict.script import Call, Redacted, Say, Think, Turn, TurnPart

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
_OF_CALLS = {"arguments": dict, "raw": str, "id": str, "signature": str}
_JSON_TYPES = {str: "a string", bool: "a boolean", dict: "an object"}


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
    for key in value.keys() & _OF_CALLS.keys():
        if not isinstance(value[key], _OF_CALLS[key]):
            raise ValueError(f"{location}: {key!r} must be {_JSON_TYPES[_OF_CALLS[key]]}")
    match kind:
        case "say":
            return Say(value["say"])
        case "think":
            return Think(value["think"], value.get("signature"))
        case "redacted":
            return Redacted()
        case _:
            return Call(value["call"], value.get("arguments", {}), id=value.get("id"), raw=value.get("raw"))
