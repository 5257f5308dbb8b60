"""Define the options of naive requests."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.scenarios.script import Call, Details, Result, native_id

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


@dataclass(frozen=True, slots=True)
class Asked:
    """The provider and the options of a request.

    Args:
        dialect: The provider.
        calls: Details of calls by number, where they differ from the defaults.
        tools: Whether tools are declared.
        manual: Whether thinking with a budget is requested.
    """

    dialect: str
    calls: Mapping[int, Details] = field(default_factory=dict)
    tools: bool = True
    manual: bool = False

    def details(self, part: Call | Result) -> Details:
        """Return the details of a call, given the call or its result."""
        return self.calls.get(part.number, Details())

    def id(self, part: Call | Result) -> str:
        """Return the id a call has on the wire."""
        details = self.details(part)
        return native_id(part.number, details, self.dialect) if details.sent is None else details.sent

    def arguments(self, part: Call) -> str:
        """Return a call's argument text."""
        text = self.details(part).arguments
        return json.dumps({"n": part.number}) if text is None else text


def as_value(arguments: str) -> object:
    """Return the value of an argument text, or the text where it has none."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def encode_request(request: dict[str, object]) -> bytes:
    """Return the encoded request; lone surrogates become escapes."""
    return json.dumps(request).encode()
