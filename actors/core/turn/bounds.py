"""Compute the limits of a turn, and its policies for invalid and repeated calls.

The turn (`actors.core.turn.turn`) and its driver apply these limits and policies.

In:  the limits of a runtime, and the settings of an ask.
Out: the bounds of the ask's turns.
"""

from msgspec import Struct
from msgspec.structs import replace

from actors.core.schemas.repair import RepairMode
from actors.core.settings.asking import Asked
from actors.core.settings.values import ToolChoiceSetting
from actors.core.turn.guards import Repeats, parse_repeats


class Bounds(Struct, frozen=True):
    """The limits of one turn, and its policies for invalid and repeated calls.

    Args:
        max_rounds: Number of requests after which the model must write a final text.
        max_corrections: Maximum number of consecutive rounds in which every call is refused. Also the maximum number of
            corrections of an answer's format.
        has_format: True if the answer has a required format.
        max_tool_corrections, on_repeat: See `actors.core.turn.guards`.
        forced: The forced tool choice, if the model receives it as an instruction because it accepts no such setting;
            None otherwise.
        repair: The rule for interpreting malformed arguments and answers.
    """

    max_rounds: int = 25
    max_corrections: int = 3
    has_format: bool = False
    max_tool_corrections: int = 5
    on_repeat: Repeats = "warn"
    forced: ToolChoiceSetting | None = None
    repair: RepairMode = "unambiguous"

    def with_repeats(self, on_repeat: str | None) -> "Bounds":
        """Return these bounds with another policy for repeated calls. `None` keeps the policy.

        Raises:
            ConfigError: The policy is unknown.
        """
        return self if on_repeat is None else replace(self, on_repeat=parse_repeats(on_repeat))

    def for_ask(self, asked: Asked | None) -> "Bounds":
        """Return these bounds with the settings of an ask. An ask with `tool_choice="none"` has one round."""
        if asked is None:
            return self
        return replace(
            self,
            max_rounds=1 if asked.tool_choice == "none" else asked.max_rounds or self.max_rounds,
            max_corrections=self.max_corrections if asked.max_corrections is None else asked.max_corrections,
            has_format=asked.output is not None,
            repair=asked.repair or self.repair,
        )
