"""Report repairs and losses of imported messages, for the history and the log.

Import never drops or assumes anything silently, but a transcript of 80,000 messages may have a defect in each of them.
The report therefore groups its lines by kind and keeps the first few of each kind and a count of the others.
"""

from typing import Literal, TypeAlias

from actors.core.data.jsonio import sanitise
from actors.core.data.record import StoredRecord
from actors.core.values.identity import CallId

Dedupe: TypeAlias = Literal["duplicate", "conflicting_duplicate", "late"]
"""Why a result was not emitted: it repeats another one, contradicts another one, or came after the seal."""

LISTED = 3  # lines kept per kind
KINDS = 64  # kinds counted separately; bounds the report of a hostile transcript
_OTHERS = "of other kinds"


class Finding(StoredRecord, frozen=True):
    """A defect of imported messages that import worked around.

    `code` is one of: orphan_result, restored_call, repeated_id, misplaced_call, misplaced_result, malformed_arguments,
    unknown_speaker. `fault_class` is `canonical`, `rendering` or `projection`.
    """

    code: str
    fault_class: str
    call_ids: tuple[CallId, ...] = ()


class ImportReport(StoredRecord, frozen=True):
    """The repairs and losses of an import (`History.report`).

    Args:
        findings: Defects that import worked around.
        dedupe: Results dropped because another result of the call stands, as (canonical id, reason).
        notes: Oddities with their position: the first few of each kind, then a count of the others.
        left_out: Parts of the provider's transcript that the history lacks, as (path, count). A path is that of a key,
            such as `messages[].content[].cache_control`.
    """

    findings: tuple[Finding, ...] = ()
    dedupe: tuple[tuple[CallId, Dedupe], ...] = ()
    notes: tuple[str, ...] = ()
    left_out: tuple[tuple[str, int], ...] = ()

    def then(self, later: "ImportReport") -> "ImportReport":
        """Return this report followed by the report of later messages."""
        return ImportReport(
            self.findings + later.findings,
            self.dedupe + later.dedupe,
            self.notes + later.notes,
            self.left_out + later.left_out,
        )


class NameTally:
    """A counter of names. After `KINDS` different names, all new names are counted together."""

    def __init__(self, others: str = "other keys") -> None:
        self._others = others
        self._counts: dict[str, int] = {}

    def add(self, name: str) -> str:
        """Count a name and return the name under which it is counted."""
        name = sanitise(name)
        if name not in self._counts and len(self._counts) >= KINDS:
            name = self._others
        self._counts[name] = self._counts.get(name, 0) + 1
        return name

    def counts(self) -> tuple[tuple[str, int], ...]:
        """Return each name with its count, in order of first appearance."""
        return tuple(self._counts.items())


class ReportBuilder:
    """A builder of an `ImportReport`."""

    def __init__(self) -> None:
        self.left_out: NameTally = NameTally()
        self.dedupe: list[tuple[CallId, Dedupe]] = []
        self._findings: list[Finding] = []
        self._tally = NameTally(_OTHERS)
        self._lines: dict[str, list[str]] = {_OTHERS: []}

    def add(self, place: str, kind: str, *about: str) -> None:
        """Add a line at `place`. `kind` is the common text of similar lines, with a `%s` for each of the values in
        `about`.
        """
        lines = self._lines.setdefault(counted := self._tally.add(kind), [])
        if len(lines) < LISTED and counted != _OTHERS:
            lines.append(f"{place}: {sanitise(kind % about if about else kind)}")

    def lines(self) -> tuple[str, ...]:
        """Return the first few lines of each kind, each kind followed by the number of further lines."""
        told: list[str] = []
        for kind, count in self._tally.counts():
            told += self._lines[kind]
            if more := count - len(self._lines[kind]):
                told.append(f"{more:,} more: {kind.replace('%s', '...')}")
        return tuple(told)

    def add_finding(self, code: str, *call_ids: CallId) -> None:
        self._findings.append(Finding(code, "canonical", call_ids))

    def build(self) -> ImportReport:
        return ImportReport(tuple(self._findings), tuple(self.dedupe), self.lines(), self.left_out.counts())
