"""Check that import reports stay short for any transcript."""

from actors.core.values.intake import KINDS, LISTED, ReportBuilder


def test_a_report_lists_only_a_limited_number_of_kinds_of_findings() -> None:
    remarks = ReportBuilder()
    for number in range(1000):
        remarks.add(f"messages[{number}]", f"kind {number}")
    assert len(remarks.lines()) == KINDS + 1
    assert remarks.lines()[-1] == f"{1000 - KINDS} more: of other kinds"


def test_the_first_findings_of_each_kind_are_listed_and_the_rest_counted() -> None:
    remarks = ReportBuilder()
    for number in range(10):
        remarks.add(f"messages[{number}]", "holds %s", f"{number} \ud800")
    *told, more = remarks.lines()
    assert told == [f"messages[{number}]: holds {number} \ufffd" for number in range(LISTED)]
    assert more == "7 more: holds ..."
