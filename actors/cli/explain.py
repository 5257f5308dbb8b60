"""`actors explain`: explain a rule, a code, an error, a status or a provider's refusal, with the fix.

Rules come from the rulebook; codes and errors come from docs/reference/errors.md, which the package contains.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from actors.adapters.classify import classify
from actors.adapters.failure import Failure, RefusedParameter
from actors.cli.arguments import add_dialect_option
from actors.cli.exits import MEANING, Exit
from actors.cli.parser import Parser, suggestion
from actors.cli.screen import escape_controls, print_notice
from actors.core.dialects.profiles import dialect
from actors.core.rulebook import RULES
from actors.core.rulebook.rule import Rule
from actors.errors import TranscriptError

_MAX_REFUSAL_BYTES = 1_000_000
"""Maximum number of bytes that are read from a file with a refusal."""
_PAGES = (
    Path(__file__).parent / "errors.md",
    Path(__file__).resolve().parents[2] / "docs" / "reference" / "errors.md",
)
"""Paths of the page of errors: in an installed package, and in a checkout."""
_ROW = re.compile(r"^\| `(\w+)` \| (.+?) \|$", re.MULTILINE)


EXAMPLES = (
    ("actors explain ANT-12", "explain a rule of a provider"),
    ("actors explain refusal.json --dialect anthropic", "explain the body of a provider's refusal"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "word",
        help="a word such as ANT-12, overflow, SessionClosed or 429; or a file with a refusal, `-` for standard input",
    )
    add_dialect_option(
        parser, "--dialect", default="openai", help="dialect of the refusal; openai by default"
    )


def run(options: argparse.Namespace) -> Exit:
    """Print a line for each meaning of the word, or an explanation of the refusal in the file.

    Raises:
        TranscriptError: The file cannot be read.
        UnknownTarget: The dialect does not exist.
    """
    lines = [*meanings(options.word, options.dialect)]
    for line in lines:
        print(escape_controls(line))
    if not lines:
        known = [*RULES, *_code_descriptions(), *(str(int(code)) for code in MEANING)]
        near = suggestion(options.word.upper() if "-" in options.word else options.word, known)
        print_notice(
            f"unknown word {options.word[:80]!r}{near or '; use a rule, a code, a status or a file'}"
        )
    return Exit.OK if lines else Exit.USAGE


def meanings(word: str, dialect_name: str) -> Iterator[str]:
    """Yield the lines that explain a word: a rule, a number, a code, or a file with a refusal.

    A number and a refusal are explained for the dialect `dialect_name`.
    """
    if (rule := RULES.get(word.upper())) is not None:
        yield from _rule_lines(rule)
    elif word.isdigit():
        yield from _number_lines(int(word), dialect_name)
    elif word in _code_descriptions():
        yield from _code_descriptions()[word]
    elif word == "-" or Path(word).is_file():
        yield from _refusal_lines(word, dialect_name)


def _rule_lines(rule: Rule) -> Iterator[str]:
    yield f"{rule.id}: {rule.demand}"
    yield f"fault class {rule.fault_class}; {rule.evidence}"
    yield "checked by `actors lint`" if rule.is_checked else f"not checked: {rule.unchecked_reason}"
    if rule.error_text:
        yield f"the provider answers: {re.sub('[«»⟦⟧]', '', rule.error_text)}"


def _number_lines(number: int, dialect_name: str) -> Iterator[str]:
    if (code := next((code for code in MEANING if code == number), None)) is not None:
        yield f"exit code {number}: {MEANING[code]}"
    if 400 <= number < 600:
        yield from _failure_lines(classify(number, {}, b"", dialect(dialect_name)))


def _failure_lines(failure: Failure) -> Iterator[str]:
    yield f"status {failure.status}: {failure.message}"
    yield from _code_descriptions()[failure.kind]
    if failure.parameter is not None:
        yield _parameter_line(failure.parameter)
    if failure.rule is not None:
        yield from _rule_lines(RULES[failure.rule])


def _parameter_line(refused: RefusedParameter) -> str:
    scope = "this value is refused" if refused.is_value else "it is not supported at all"
    return f"refused parameter: {' and '.join(refused.settings)}; {scope}"


def _refusal_lines(path: str, dialect_name: str) -> Iterator[str]:
    """Yield the lines that explain a provider's refusal.

    `path` is the file that contains the refusal's body, or `-` for standard input.
    """
    try:
        text = (
            sys.stdin.buffer.read(_MAX_REFUSAL_BYTES)
            if path == "-"
            else Path(path).read_bytes()[:_MAX_REFUSAL_BYTES]
        )
    except OSError as error:
        raise TranscriptError(f"Cannot read {path}: {error.strerror}") from error
    yield from _failure_lines(classify(400, {}, text, dialect(dialect_name)))


def _code_descriptions() -> dict[str, list[str]]:
    """Return the descriptions of each code in docs/reference/errors.md. A code may occur in several sections."""
    page = next(path for path in _PAGES if path.exists()).read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for section in page.split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        for code, row in _ROW.findall(text):
            description = "; ".join(cell.strip() for cell in row.split(" | ") if cell.strip())
            found.setdefault(code, []).append(f"{code} ({title.lower()}): {description.replace('`', '')}")
    return found
