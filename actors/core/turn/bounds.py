"""The bounds of a turn: how long it may go on, and what is done about calls that go wrong.

In:  the limits of a runtime, and the settings of an ask.
Out: the bounds that a turn (`actors.core.turn.turn`) and its batches keep to.
"""

from msgspec import Struct
from msgspec.structs import replace

from actors.core.schemas.repair import RepairMode
from actors.core.settings.asking import Asked
from actors.core.settings.values import ToolChoice
from actors.core.turn.guards import Repeats, checked_repeats


class Bounds(Struct, frozen=True):
    """How long a turn may go on: at most so many rounds, and so many running in which every call was refused.

    `form`: whether the answer is to have one. It may be corrected `corrections` times too. `tool_corrections` and
    `repeats` are what `actors.core.turn.guards` goes by. `forced`: the tool choice that the model was told in words,
    because it accepts none that forces a tool. `repair` is what is done about calls and answers with a slip.
    """

    rounds: int = 25
    corrections: int = 3
    form: bool = False
    tool_corrections: int = 5
    repeats: Repeats = "warn"
    forced: ToolChoice | None = None
    repair: RepairMode = "unambiguous"

    def heeding(self, repeats: str | None) -> "Bounds":
        """Return these bounds with another policy, if one is given. Raises `ConfigError` if there is none such."""
        return self if repeats is None else replace(self, repeats=checked_repeats(repeats))

    def for_ask(self, asked: Asked | None) -> "Bounds":
        """Return these bounds with the settings of an ask. A turn that may call no tools has one round."""
        if asked is None:
            return self
        return replace(
            self,
            rounds=1 if asked.tool_choice == "none" else asked.max_rounds or self.rounds,
            corrections=self.corrections if asked.max_corrections is None else asked.max_corrections,
            form=asked.output is not None,
            repair=asked.repair or self.repair,
        )
