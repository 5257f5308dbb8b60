"""A report stays short, whatever a transcript holds."""

from actors.core.values.intake import KINDS, LISTED, ReportBuilder


def test_a_transcript_that_makes_up_kinds_of_oddities_cannot_fill_a_report() -> None:
    remarks = ReportBuilder()
    for number in range(1000):
        remarks.add(f"messages[{number}]", f"kind {number}")
    assert len(remarks.lines()) == KINDS + 1
    assert remarks.lines()[-1] == f"{1000 - KINDS} more: of other kinds"


def test_of_a_kind_the_first_lines_are_told_and_the_rest_are_counted() -> None:
    remarks = ReportBuilder()
    for number in range(10):
        remarks.add(f"messages[{number}]", "holds %s", f"{number} \ud800")
    *told, more = remarks.lines()
    assert told == [f"messages[{number}]: holds {number} \ufffd" for number in range(LISTED)]
    assert more == "7 more: holds ..."
