"""Limit the size of messages from an MCP server, before they are parsed into objects.

The transports use this module. The SDK parses with pydantic, which took 28 s for 300,000 blocks and blocked all other
sessions in that time. Counting the blocks in the bytes takes milliseconds.

This module does not import the SDK, because `options` imports it before the first server is opened.
"""

from dataclasses import dataclass

from msgspec import DecodeError, Raw
from msgspec.json import decode

from actors.errors import AnswerTooLarge


@dataclass(frozen=True)
class McpLimits:
    """The limits of one message from a server.

    Args:
        max_bytes: Maximum bytes of a line on standard output, of an answer's body, or of an event in a stream.
        max_blocks: Maximum number of content blocks in a result.
        max_values: Approximate maximum number of JSON values.
    """

    max_bytes: int = 8 * 1024 * 1024
    max_blocks: int = 1000
    max_values: int = 100_000

    def excess_error(self, data: bytes) -> AnswerTooLarge | None:
        """Return the error for a message that exceeds a limit, or None if the message is within all limits."""
        if len(data) > self.max_bytes:
            return self.too_long_error(len(data))
        if data.count(b"{") > self.max_blocks and (blocks := _block_count(data)) > self.max_blocks:
            return too_large_error("max_blocks", blocks, self.max_blocks)
        if data.count(b",") > self.max_values and (values := self._value_count(data)) > self.max_values:
            return too_large_error("max_values", values, self.max_values)
        return None

    def too_long_error(self, size: int) -> AnswerTooLarge:
        """Return the error for a message of at least `size` bytes."""
        return too_large_error("max_bytes", size, self.max_bytes)

    def _value_count(self, data: bytes) -> int:
        """Return the approximate number of JSON values in a message: the number of commas outside of strings.

        If there are many strings, only the strings are counted, because removing 700,000 short strings with a regular
        expression took 3 s.
        """
        plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")
        # A value has at most four quotation marks: two around its key, and two around a string.
        if (quotes := plain.count(b'"')) > 4 * self.max_values:
            return quotes // 4
        return b"".join(plain.split(b'"')[::2]).count(b",") + 1


def too_large_error(setting: str, value: int, limit: int) -> AnswerTooLarge:
    """Return the error for an answer whose `value` exceeds `limit`. `setting` is the name of the limit."""
    unit = setting.removeprefix("max_")
    message = (
        f"The answer of the server has {value:,} {unit}, more than {setting}={limit:,} allows; "
        f"request less data, or raise {setting}"
    )
    return AnswerTooLarge(message, setting=setting, value=value, limit=limit)


def _block_count(data: bytes) -> int:
    """Return the number of content blocks of a result without parsing them; 0 for other messages."""
    try:
        result = decode(decode(data, type=dict[str, Raw])["result"], type=dict[str, Raw])
        return len(decode(result["content"], type=list[Raw]))
    except (DecodeError, KeyError, RecursionError):
        return 0
