"""What was done to messages that came in: the report that a history keeps, and the log with it.

Nothing is left out or assumed in silence, and a transcript of 80,000 messages may be odd in each of them. So lines are
kept by kind: the first few in full, the rest as a count.
"""

from typing import Literal, TypeAlias

from actors.core.data.form import Form
from actors.core.data.jsonio import sanitised
from actors.core.values.identity import CallId

Dedupe: TypeAlias = Literal["duplicate", "conflicting_duplicate", "late"]
"""Why a result was not emitted as one: the same again; a different one; after its seal."""

LISTED = 3  # lines of one kind that are kept in full
KINDS = 64  # told apart, so that a transcript that makes them up cannot fill a report
_OTHERS = "of other kinds"


class Finding(Form, frozen=True):
    """Something about messages that came in which had to be worked around.

    `code` is one of: orphan_result, restored_call, repeated_id, misplaced_call, misplaced_result,
    malformed_arguments, unknown_speaker. `fault_class` is `canonical`, `rendering` or `projection`.
    """

    code: str
    fault_class: str
    call_ids: tuple[CallId, ...] = ()


class ImportReport(Form, frozen=True):
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

    def then(self, later: "ImportReport") -> "ImportReport":
        """Return the report of messages and of others that came in behind them."""
        return ImportReport(
            self.findings + later.findings,
            self.dedupe + later.dedupe,
            self.notes + later.notes,
            self.left_out + later.left_out,
        )


class NameTally:
    """How often each of some names was met. New ones beyond `KINDS` are counted together."""

    def __init__(self, others: str = "other keys") -> None:
        self._others = others
        self._counts: dict[str, int] = {}

    def add(self, name: str) -> str:
        """Count a name once more, and return the one that it is counted under."""
        name = sanitised(name)
        if name not in self._counts and len(self._counts) >= KINDS:
            name = self._others
        self._counts[name] = self._counts.get(name, 0) + 1
        return name

    def counts(self) -> tuple[tuple[str, int], ...]:
        """Return each name with its count, in order of appearance."""
        return tuple(self._counts.items())


class ReportBuilder:
    """An `ImportReport` while it is being written."""

    def __init__(self) -> None:
        self.left_out = NameTally()
        self.dedupe: list[tuple[CallId, Dedupe]] = []
        self._findings: list[Finding] = []
        self._tally = NameTally(_OTHERS)
        self._lines: dict[str, list[str]] = {_OTHERS: []}

    def add(self, place: str, kind: str, *about: str) -> None:
        """Add a line. `kind` is the text that lines of a kind share, with a `%s` for each value that differs."""
        lines = self._lines.setdefault(counted := self._tally.add(kind), [])
        if len(lines) < LISTED and counted != _OTHERS:
            lines.append(f"{place}: {sanitised(kind % about if about else kind)}")

    def lines(self) -> tuple[str, ...]:
        """Return them: the first few of each kind, then how many more there are."""
        told: list[str] = []
        for kind, count in self._tally.counts():
            told += self._lines[kind]
            if more := count - len(self._lines[kind]):
                told.append(f"{more:,} more: {kind.replace('%s', '...')}")
        return tuple(told)

    def found(self, code: str, *call_ids: CallId) -> None:
        self._findings.append(Finding(code, "canonical", call_ids))

    def intake(self) -> ImportReport:
        return ImportReport(tuple(self._findings), tuple(self.dedupe), self.lines(), self.left_out.counts())
