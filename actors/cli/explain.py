"""`actors explain`: what an id, a code, an error, a status or a refused body means, and what to do.

Rules come from the rulebook, codes and errors from the page of errors (docs/reference/errors.md), which is part of the
package: nothing is written down twice.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from actors.adapters.classify import classify
from actors.adapters.failure import Failure, RefusedParameter
from actors.cli.exits import MEANING, Exit
from actors.cli.options import meant
from actors.cli.screen import complain, safe
from actors.core.dialects.profiles import dialect
from actors.core.rulebook import RULES
from actors.core.rulebook.rule import Rule
from actors.errors import TranscriptError

_MOST = 1_000_000
"""Bytes of a refused body that are read."""
_PAGES = (
    Path(__file__).parent / "errors.md",
    Path(__file__).resolve().parents[2] / "docs" / "reference" / "errors.md",
)
"""Where the page is: in an installed package, and in a checkout."""
_ROW = re.compile(r"^\| `(\w+)` \| (.+?) \|$", re.MULTILINE)


def main(options: argparse.Namespace) -> Exit:
    """Print what the word or the file means, a line for each thing it can be; 2 if it is nothing known.

    Raises:
        TranscriptError: The file cannot be read.
        UnknownTarget: There is no such dialect.
    """
    lines = [*explained(options.word, options.dialect)]
    for line in lines:
        print(safe(line))
    if not lines:
        known = [*RULES, *_codes(), *(str(int(code)) for code in MEANING)]
        near = meant(options.word.upper() if "-" in options.word else options.word, known)
        complain(
            f"nothing is known of {options.word[:80]!r}{near or '; give a rule, a code, a status or a file'}"
        )
    return Exit.OK if lines else Exit.USAGE


def explained(word: str, name: str) -> Iterator[str]:
    """Give what a word means; the words of a provider are read as a dialect has them."""
    if (rule := RULES.get(word.upper())) is not None:
        yield from _rule(rule)
    elif word.isdigit():
        yield from _number(int(word), name)
    elif word in _codes():
        yield from _codes()[word]
    elif word == "-" or Path(word).is_file():
        yield from _body(word, name)


def _rule(rule: Rule) -> Iterator[str]:
    yield f"{rule.id}: {rule.demand}"
    yield f"class {rule.fault_class}; {rule.evidence}"
    yield "judged by check and lint" if rule.judged else f"not judged: {rule.unseen}"
    if rule.told:
        yield f"refused as: {re.sub('[«»⟦⟧]', '', rule.told)}"


def _number(number: int, name: str) -> Iterator[str]:
    if (code := next((code for code in MEANING if code == number), None)) is not None:
        yield f"exit code {number}: {MEANING[code]}"
    if 400 <= number < 600:
        yield from _failure(classify(number, {}, b"", dialect(name)))


def _failure(failure: Failure) -> Iterator[str]:
    yield f"status {failure.status}: {failure.message}"
    yield from _codes()[failure.kind]
    if failure.parameter is not None:
        yield _parameter(failure.parameter)
    if failure.rule is not None:
        yield from _rule(RULES[failure.rule])


def _parameter(refused: RefusedParameter) -> str:
    what = "its value is refused, another may do" if refused.is_value else "it is not supported at all"
    return f"refused parameter: {' and '.join(refused.settings)}; {what}"


def _body(word: str, name: str) -> Iterator[str]:
    """Explain what a provider answered to a request that it refused."""
    try:
        text = sys.stdin.buffer.read(_MOST) if word == "-" else Path(word).read_bytes()[:_MOST]
    except OSError as error:
        raise TranscriptError(f"Cannot read {word}: {error.strerror}") from error
    yield from _failure(classify(400, {}, text, dialect(name)))


def _codes() -> dict[str, list[str]]:
    """Return what the page of errors says of each code, with the heading it stands under."""
    page = next(path for path in _PAGES if path.exists()).read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for section in page.split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        for code, row in _ROW.findall(text):
            said = "; ".join(cell.strip() for cell in row.split(" | ") if cell.strip())
            found.setdefault(code, []).append(f"{code} ({title.lower()}): {said.replace('`', '')}")
    return found
