"""Report the repairs and losses of imported messages, for the history and the log.

An import reports everything that it drops or assumes. Because a transcript of 80,000 messages may have a defect in
every message, the report groups its lines by kind: it contains the first few lines of each kind, and the number of
further lines.
"""

from typing import Literal, TypeAlias

from actors.core.data.jsonio import sanitise
from actors.core.data.record import StoredRecord
from actors.core.values.identity import CallId

Dedupe: TypeAlias = Literal["duplicate", "conflicting_duplicate", "late"]
"""The reason why a result is not in the transcript: it repeats or contradicts another result, or it came too late."""

LISTED = 3  # number of lines of each kind that the report contains
KINDS = 64  # number of kinds that are counted separately, so that a hostile transcript cannot make the report long
_OTHERS = "of other kinds"


class Finding(StoredRecord, frozen=True):
    """A defect of imported messages that the import repaired or tolerated.

    Args:
        code: One of orphan_result, restored_call, repeated_id, misplaced_call, misplaced_result, malformed_arguments,
            unknown_speaker.
        fault_class: `canonical`, `rendering` or `projection`.
        call_ids: Canonical ids of the affected calls.
    """

    code: str
    fault_class: str
    call_ids: tuple[CallId, ...] = ()


class ImportReport(StoredRecord, frozen=True):
    """The repairs and losses of an import (`History.report`).

    Args:
        findings: Defects that the import repaired or tolerated.
        dedupe: Results that were dropped because the same call has another result, as (canonical id, reason).
        notes: Unusual content with its position: the first few notes of each kind, then the number of further notes.
        left_out: Content of the provider's transcript that the history lacks, as (path, count). A path consists of the
            keys that lead to the content, such as `messages[].content[].cache_control`.
    """

    findings: tuple[Finding, ...] = ()
    dedupe: tuple[tuple[CallId, Dedupe], ...] = ()
    notes: tuple[str, ...] = ()
    left_out: tuple[tuple[str, int], ...] = ()

    def combined_with(self, later: "ImportReport") -> "ImportReport":
        """Return a report that combines this import with a later import of further messages."""
        return ImportReport(
            self.findings + later.findings,
            self.dedupe + later.dedupe,
            self.notes + later.notes,
            self.left_out + later.left_out,
        )


class NameCounter:
    """Counts names. After `KINDS` different names, all further names are counted together, under `overflow_label`."""

    def __init__(self, overflow_label: str = "other keys") -> None:
        self._overflow_label = overflow_label
        self._counts: dict[str, int] = {}

    def add(self, name: str) -> str:
        """Count a name. Return the name under which it is counted: the name itself, or `overflow_label`."""
        name = sanitise(name)
        if name not in self._counts and len(self._counts) >= KINDS:
            name = self._overflow_label
        self._counts[name] = self._counts.get(name, 0) + 1
        return name

    def counts(self) -> tuple[tuple[str, int], ...]:
        """Return each name with its count, in order of first appearance."""
        return tuple(self._counts.items())


class ReportBuilder:
    """The findings, notes and losses of an import in progress. `build` returns them as an `ImportReport`."""

    def __init__(self) -> None:
        self.left_out: NameCounter = NameCounter()
        self.dedupe: list[tuple[CallId, Dedupe]] = []
        self._findings: list[Finding] = []
        self._tally = NameCounter(_OTHERS)
        self._lines: dict[str, list[str]] = {_OTHERS: []}

    def add(self, position: str, kind: str, *values: str) -> None:
        """Add a note about the content at `position`.

        `kind` is the text that similar notes share. `values` contains the value for each `%s` in that text.
        """
        lines = self._lines.setdefault(counted := self._tally.add(kind), [])
        if len(lines) < LISTED and counted != _OTHERS:
            lines.append(f"{position}: {sanitise(kind % values if values else kind)}")

    def lines(self) -> tuple[str, ...]:
        """Return the first notes of each kind, and for each kind the number of further notes."""
        lines: list[str] = []
        for kind, count in self._tally.counts():
            lines += self._lines[kind]
            if more := count - len(self._lines[kind]):
                lines.append(f"{more:,} more: {kind.replace('%s', '...')}")
        return tuple(lines)

    def add_finding(self, code: str, *call_ids: CallId) -> None:
        self._findings.append(Finding(code, "canonical", call_ids))

    def build(self) -> ImportReport:
        return ImportReport(tuple(self._findings), tuple(self.dedupe), self.lines(), self.left_out.counts())
