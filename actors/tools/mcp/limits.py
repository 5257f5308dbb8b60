"""Limit one message of an MCP server by its bytes, before it is parsed into objects.

`child` and `guard` use this module. The SDK parses with pydantic, which took 28 s for 300,000 blocks and blocked all
other sessions; counting blocks in the bytes takes milliseconds.
"""

from dataclasses import dataclass

from msgspec import DecodeError, Raw
from msgspec.json import decode

from actors.errors import AnswerTooLarge


@dataclass(frozen=True)
class McpLimits:
    """Limits of one message of a server.

    Args:
        max_bytes: Bytes of a line on standard output, the body of an answer, or an event of a stream.
        max_blocks: Content blocks of a result.
        max_values: JSON values, approximately.
    """

    max_bytes: int = 8 * 1024 * 1024
    max_blocks: int = 1000
    max_values: int = 100_000

    def excess(self, data: bytes) -> AnswerTooLarge | None:
        """Return the error for a message above the limits; None for a message within them."""
        if len(data) > self.max_bytes:
            return self.too_long(len(data))
        if data.count(b"{") > self.max_blocks and (blocks := _blocks(data)) > self.max_blocks:
            return answer_too_large("max_blocks", blocks, self.max_blocks)
        if data.count(b",") > self.max_values and (values := self._values(data)) > self.max_values:
            return answer_too_large("max_values", values, self.max_values)
        return None

    def too_long(self, size: int) -> AnswerTooLarge:
        """Return the error for a message of at least `size` bytes."""
        return answer_too_large("max_bytes", size, self.max_bytes)

    def _values(self, data: bytes) -> int:
        """Return the approximate number of JSON values: the commas outside of strings.

        Each step is one pass in C, and strings are only separated if they are few: a regular expression took 3 s for
        700,000 short strings.
        """
        plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")
        if (
            quotes := plain.count(b'"')
        ) > 4 * self.max_values:  # a member with a string value has four quotes
            return quotes // 4
        return b"".join(plain.split(b'"')[::2]).count(b",") + 1


def answer_too_large(setting: str, value: int, limit: int) -> AnswerTooLarge:
    """Return the error for an answer whose `value` is above the limit `setting`."""
    unit = setting.removeprefix("max_")
    message = (
        f"The answer of the server has {value:,} {unit}, more than {setting}={limit:,} allows; "
        f"ask for less, or raise {setting}"
    )
    return AnswerTooLarge(message, setting=setting, value=value, limit=limit)


def _blocks(data: bytes) -> int:
    """Return the number of content blocks of a result, without parsing them."""
    try:
        result = decode(decode(data, type=dict[str, Raw])["result"], type=dict[str, Raw])
        return len(decode(result["content"], type=list[Raw]))
    except (DecodeError, KeyError, RecursionError):
        return 0
