"""Bounds of one message of an MCP server, judged on its bytes before anything parses it into objects.

Pydantic, which the SDK parses with, took 28 s for 300,000 blocks, and no other session ran meanwhile. To count them in
the bytes takes milliseconds. `child` and `guard` call this module for both transports.
"""

from dataclasses import dataclass

from msgspec import DecodeError, Raw
from msgspec.json import decode

from actors.errors import AnswerTooLarge


@dataclass(frozen=True)
class McpLimits:
    """What one message of a server may hold.

    Args:
        max_bytes: Bytes: a line on standard output, the body of an answer, an event of a stream.
        max_blocks: Blocks of the content of a result.
        max_values: JSON values, about.
    """

    max_bytes: int = 8 * 1024 * 1024
    max_blocks: int = 1000
    max_values: int = 100_000

    def excess(self, data: bytes) -> AnswerTooLarge | None:
        """Return why a message is not read; None if it is within the limits."""
        if len(data) > self.max_bytes:
            return self.too_long(len(data))
        if data.count(b"{") > self.max_blocks and (blocks := _blocks(data)) > self.max_blocks:
            return answer_too_large("max_blocks", blocks, self.max_blocks)
        if data.count(b",") > self.max_values and (values := self._values(data)) > self.max_values:
            return answer_too_large("max_values", values, self.max_values)
        return None

    def too_long(self, size: int) -> AnswerTooLarge:
        """Return the error of a message of so many bytes, or more."""
        return answer_too_large("max_bytes", size, self.max_bytes)

    def _values(self, data: bytes) -> int:
        """Return how many JSON values a message has, about: the commas outside of its texts.

        Every step is one pass in C, and texts are only told apart while there are few enough: a regular expression took
        3 s for 700,000 short texts.
        """
        plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")
        if (quotes := plain.count(b'"')) > 4 * self.max_values:  # a member has two texts, and so four quotes
            return quotes // 4
        return b"".join(plain.split(b'"')[::2]).count(b",") + 1


def answer_too_large(setting: str, value: int, limit: int) -> AnswerTooLarge:
    """Return the error of an answer whose `value` is above the limit that an option sets."""
    what = setting.removeprefix("max_")
    message = (
        f"The answer of the server has {value:,} {what}, more than {setting}={limit:,} allows; "
        f"ask for less, or raise {setting}"
    )
    return AnswerTooLarge(message, setting=setting, value=value, limit=limit)


def _blocks(data: bytes) -> int:
    """Return how many blocks the content of a result has. They are found and not parsed."""
    try:
        result = decode(decode(data, type=dict[str, Raw])["result"], type=dict[str, Raw])
        return len(decode(result["content"], type=list[Raw]))
    except (DecodeError, KeyError, RecursionError):
        return 0
