"""The parts of PromQL that the documentation uses: the references of a query, and a check of them against a scrape."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from prometheus_client.samples import Sample

WORDS = {
    *(
        "sum",
        "max",
        "min",
        "avg",
        "rate",
        "increase",
        "histogram_quantile",
        "clamp_min",
        "by",
        "on",
        "without",
    ),
    *("and", "or", "unless", "for", "absent", "bool"),
}
OF_THE_SCRAPE = {"instance", "job"}
"""Labels that Prometheus adds."""
_SELECTOR = re.compile(r"(?P<name>[a-z_][a-z0-9_]*)(?P<matchers>\{[^}]*\})?")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
_BY = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")


class Selector(NamedTuple):
    """A metric that a query selects, and its matchers: label, operator, value."""

    name: str
    matchers: tuple[tuple[str, str, str], ...]

    def selects(self, sample: Sample) -> bool:
        """Return True if the selector matches a sample."""
        return sample.name == self.name and all(
            self._matches(sample.labels.get(label, ""), operator, value)
            for label, operator, value in self.matchers
        )

    @staticmethod
    def _matches(found: str, operator: str, value: str) -> bool:
        is_equal = re.fullmatch(value, found) is not None if "~" in operator else found == value
        return is_equal != operator.startswith("!")


def grouped_by(query: str) -> set[str]:
    """Return the labels that a query groups by."""
    return {label.strip() for found in _BY.findall(query) for label in found.split(",")}


def selectors(query: str) -> Iterator[Selector]:
    """Yield the selectors of a query."""
    query = re.sub(r"\[[^\]]*\]", "", _BY.sub("", query))
    for found in _SELECTOR.finditer(query):
        if found["name"] not in WORDS:
            yield Selector(found["name"], tuple(_MATCHER.findall(found["matchers"] or "")))


def missing_references(query: str, samples: Sequence[Sample]) -> Iterator[str]:
    """Yield the references of a query that a scrape lacks: metrics, labels, values of labels."""
    for selector in selectors(query):
        of_name = [sample for sample in samples if sample.name == selector.name]
        if not of_name:
            yield f"no metric {selector.name}"
            continue
        known = {label for sample in of_name for label in sample.labels} | OF_THE_SCRAPE
        used = {label for label, _, _ in selector.matchers} | grouped_by(query)
        yield from (f"{selector.name} has no label {label}" for label in sorted(used - known))
        for label, operator, value in selector.matchers:
            wanted = value.split("|") if "~" in operator else [value]
            values = {sample.labels.get(label) for sample in of_name}
            yield from (f"{selector.name} has no {label}={each}" for each in wanted if each not in values)
        if not any(map(selector.selects, of_name)):
            yield f"{selector} selects nothing"
