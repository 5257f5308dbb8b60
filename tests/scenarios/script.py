"""Parse a conversation from one line of text, valid or not.

    U A[c1 c2] R1 U"stop, use B" R2

    U, U"words", U[...]         the human; without words it is `u`
    A, A"words", A[...]         the model; without words it is `a`
    A@kimi[...]                 the model of another provider than the one that receives the request
    [...]                       a message of the tools
    R1, S1                      a message of the tools with one result: the real one of call 1; a synthetic one that was
                                sent for it

The brackets contain the parts of a message in order: `"words"`, calls `c1`, results `R1`, thinking `T` (of the
message's own provider; `T@kimi` of another provider; `T!` cut off before its seal), an image `I`. If the tool name,
the native id or the argument text of a call matters, `Details` has it.
"""

import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from actors.testing.images import png

Role: TypeAlias = Literal["user", "assistant", "tool"]
THOUGHT = "think"
SIGNATURE = "c2lnbmF0dXJl"
ENCRYPTED: dict[str, object] = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": THOUGHT}],
    "encrypted_content": SIGNATURE,
}
"""Reasoning on the wire whose unit is an item."""
PICTURE = b64encode(png()).decode()
SYNTHETIC = "The call was cancelled."


@dataclass(frozen=True, slots=True)
class Words:
    """A text."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """Call number `number`."""

    number: int


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call: the real one, or a synthetic one that was sent."""

    number: int
    real: bool = True


@dataclass(frozen=True, slots=True)
class Thought:
    """Reasoning. `origin` is the provider that made it, None for the message's own."""

    origin: str | None = None
    sealed: bool = True


@dataclass(frozen=True, slots=True)
class Picture:
    """An image. After a result, it belongs to the result."""


Part: TypeAlias = Words | Call | Result | Thought | Picture


@dataclass(frozen=True, slots=True)
class Said:
    """One message. `origin` is the provider whose model wrote it, None for the provider that receives the request."""

    role: Role
    parts: tuple[Part, ...]
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class Details:
    """The properties of a call that differ from the defaults.

    Args:
        id: The id its provider gave it; None is one that the provider asked now would give.
        arguments: Its argument text as the model wrote it; None is `{"n":<number>}`.
        sent: The id a naive client makes of it, or None for the same one.
        item: An item id that a naive client sends on the wires that have those, or None.
    """

    id: str | None = None
    name: str = "read"
    arguments: str | None = None
    sent: str | None = None
    item: str | None = None


_TOKEN = re.compile(
    r"""\s*(?:(?P<word>"[^"]*")|(?P<open>(?P<who>[UA])?(?:@(?P<of>\w+))?\[)|(?P<close>\])
    |(?P<call>c\d+)|(?P<result>[RS]\d+)|(?P<thought>T)(?:@(?P<maker>\w+))?(?P<cut>!)?|(?P<picture>I)
    |(?P<plain>[UA])(?:@(?P<by>\w+))?(?P<said>"[^"]*")?)""",
    re.VERBOSE,
)
_ROLES: dict[str | None, Role] = {"U": "user", "A": "assistant", None: "tool"}
_DEFAULT = {"U": "u", "A": "a"}


def parse_script(script: str) -> list[Said]:
    """Parse a script.

    Raises:
        ValueError: It is not a script.
    """
    said: list[Said] = []
    head: tuple[Role, str | None] | None = None
    parts: list[Part] = []
    for token in _tokens(script):
        if token["open"]:
            head, parts = (_ROLES[token["who"]], token["of"]), []
        elif token["close"] and head is not None:
            said.append(Said(head[0], tuple(parts), head[1]))
            head = None
        elif token["plain"] and head is None:
            text = token["said"][1:-1] if token["said"] else _DEFAULT[token["plain"]]
            said.append(Said(_ROLES[token["plain"]], (Words(text),), token["by"]))
        elif head is not None:
            parts.append(_part(token))
        elif token["result"]:
            said.append(Said("tool", (_part(token),)))
        else:
            raise ValueError(f"{token[0]!r} stands outside of a message in {script!r}")
    return said


def _tokens(script: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(script.rstrip()):
        token = _TOKEN.match(script, at)
        if token is None:
            raise ValueError(f"No script from {script[at:]!r} on")
        yield token
        at = token.end()


def _part(token: re.Match[str]) -> Part:
    if token["word"]:
        return Words(token["word"][1:-1])
    if token["call"]:
        return Call(int(token["call"][1:]))
    if token["result"]:
        return Result(int(token["result"][1:]), token["result"][0] == "R")
    if token["thought"]:
        return Thought(token["maker"], not token["cut"])
    if token["picture"]:
        return Picture()
    raise ValueError(f"{token[0]!r} is not a part of a message")


def real_result(number: int) -> str:
    """Return the value of a tool: a mark that can be found in the bytes of a request."""
    return f"R{number}."


_IDS = {
    "mistral": "nine{n:05}",
    "kimi": "functions.{name}:{k}",
    **dict.fromkeys(("anthropic", "vertex_anthropic", "bedrock_anthropic"), "toolu_{n:024}"),
    "bedrock": "tooluse_{n:022}",
    "gemini": "",
    "gemini_2": "",
    "vertex": "",
}


def native_id(number: int, details: Details, provider: str) -> str:
    """Return the id under which a provider knows a call; empty where it gives none."""
    if details.id is not None:
        return details.id
    return _IDS.get(provider, "call_{n:024}").format(n=number, k=number - 1, name=details.name)
