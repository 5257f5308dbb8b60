"""What was done to messages that came in: the report that a history keeps, and the log with it.

Nothing is left out or assumed in silence, and a transcript of 80,000 messages may be odd in each of them. So lines are
kept by kind: the first few in full, the rest as a count.
"""

from typing import Literal, TypeAlias

from actors.core.form import Form
from actors.core.identity import CallId
from actors.core.jsonio import sanitised

Dedupe: TypeAlias = Literal["duplicate", "conflicting_duplicate", "late"]
"""Why a result was not emitted as one: the same again; a different one; after its seal."""

LISTED = 3
"""Lines of one kind that are kept in full."""
KINDS = 64
"""Kinds that are told apart, so that a transcript that makes them up cannot fill a report."""


class Finding(Form, frozen=True):
    """Something about messages that came in which had to be worked around.

    `code` is one of: orphan_result, restored_call, repeated_id, misplaced_call, misplaced_result,
    malformed_arguments, unknown_speaker. `fault_class` is `canonical`, `rendering` or `projection`.
    """

    code: str
    fault_class: str
    call_ids: tuple[CallId, ...] = ()


class Intake(Form, frozen=True):
    """What was done to messages that came in (`History.report`).

    Args:
        findings: What was wrong with them and was worked around.
        dedupe: Results of which only one can stand, as (canonical id, reason).
        notes: What was odd, with the place where it stood: the first few of each kind, then how many more.
        left_out: What a provider's transcript held and the history does not, as (path, how often). A path is that of a
            key, such as `messages[].content[].cache_control`.
    """

    findings: tuple[Finding, ...] = ()
    dedupe: tuple[tuple[CallId, Dedupe], ...] = ()
    notes: tuple[str, ...] = ()
    left_out: tuple[tuple[str, int], ...] = ()

    def then(self, later: "Intake") -> "Intake":
        """Return the report of messages and of others that came in behind them."""
        if later == _IN_ORDER:
            return self
        return Intake(
            self.findings + later.findings,
            self.dedupe + later.dedupe,
            self.notes + later.notes,
            self.left_out + later.left_out,
        )


_IN_ORDER = Intake()


class PathTally:
    """How often each of some paths was met, while they are being counted."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, path: str) -> None:
        """Count a path once more."""
        path = sanitised(path)
        if path not in self._counts and len(self._counts) >= KINDS:
            path = "other keys"
        self._counts[path] = self._counts.get(path, 0) + 1

    def counts(self) -> tuple[tuple[str, int], ...]:
        """Return each path with its count, in order of appearance."""
        return tuple(self._counts.items())


class Remarks:
    """An `Intake` while it is being written."""

    def __init__(self) -> None:
        self.left_out = PathTally()
        self.dedupe: list[tuple[CallId, Dedupe]] = []
        self._findings: list[Finding] = []
        self._lines: dict[str, list[str]] = {}
        self._more: dict[str, int] = {}

    def add(self, place: str, kind: str, *about: str) -> None:
        """Add a line. `kind` is the text that lines of a kind share, with a `%s` for each value that differs."""
        if kind not in self._lines and len(self._lines) == KINDS:
            kind, about = "of other kinds", ()
        lines = self._lines.setdefault(kind, [])
        if len(lines) < LISTED and kind != "of other kinds":
            lines.append(f"{place}: {sanitised(kind % about if about else kind)}")
        else:
            self._more[kind] = self._more.get(kind, 0) + 1

    def lines(self) -> tuple[str, ...]:
        """Return them: the first few of each kind, then how many more there are."""
        told: list[str] = []
        for kind, lines in self._lines.items():
            told += lines
            if count := self._more.get(kind, 0):
                told.append(f"{count:,} more: {sanitised(kind).replace('%s', '...')}")
        return tuple(told)

    def found(self, code: str, *call_ids: CallId) -> None:
        """Add something wrong that was worked around."""
        self._findings.append(Finding(code, "canonical", call_ids))

    def intake(self) -> Intake:
        """Return the finished report."""
        return Intake(tuple(self._findings), tuple(self.dedupe), self.lines(), self.left_out.counts())
