"""Which rule of a vendor stands for one of its family.

A family is judged, and its refusals are read, by the family's rules. A vendor with a list of its own is cited by
that list: `CITED` translates, by rule and, where one rule of the family is several of the vendor's, by a word for the
case.
"""

from collections.abc import Mapping

from actors.core.dialect import Dialect

CITED: Mapping[str, Mapping[str, str]] = {
    "MIS": {
        "OAC-01": "MIS-02",
        "OAC-02": "MIS-07",
        "OAC-02 duplicate": "MIS-03",
        "OAC-02 after user": "MIS-05",
        "OAC-02 after assistant": "MIS-06",
        "OAC-03": "MIS-01",
        "OAC-04": "MIS-13",
        "OAC-08": "MIS-18",
        "OAC-10": "MIS-14",
        "OAC-12": "MIS-32",
        "ALL-02 tool_call_id": "MIS-15",
        "ALL-02 id": "MIS-16",
        "ALL-02 tools": "MIS-32",
        "ALL-03": "MIS-01",
        "ALL-04": "MIS-04",
        "ALL-05": "MIS-10",
        "ALL-07": "MIS-32",
        "ALL-07 reasoning_content": "MIS-19",
        "ALL-08 thinking": "MIS-23",
        "ALL-08 system": "MIS-12",
        "ALL-09": "MIS-13",
        "ALL-11 message": "MIS-17",
        "ANT-28": "MIS-32",
        "CMP-01 after tool": "MIS-21",
    },
    "KIM": {
        "OAC-01": "KIM-01",
        "OAC-02": "KIM-02",
        "OAC-04": "KIM-11",
        "OAC-10": "KIM-06",
        "OAC-11": "KIM-07",
        "ALL-02 kind": "KIM-08",
        "ALL-02 reasoning": "KIM-03",
        "ALL-11 message": "KIM-04",
        "ALL-11 part": "KIM-05",
        "ALL-14 forced": "KIM-10",
    },
    "DSK": {
        "OAC-01": "DSK-02",
        "OAC-01 named": "DSK-03",
        "OAC-02": "DSK-01",
        "OAC-02 unknown": "DSK-03",
        "ALL-02 tool_call_id": "DSK-04",
        "ALL-02 reasoning": "DSK-05",
        "ALL-14 forced": "DSK-08",
    },
}
"""The vendor's rule for one of the family, by the vendor's prefix."""


def cited(dialect: Dialect, rule: str, case: str = "") -> str:
    """Return the rule to cite: the vendor's for this case, the vendor's, or the family's."""
    rules = CITED.get(dialect.rules, {})
    return rules.get(f"{rule} {case}") or rules.get(rule, rule)
