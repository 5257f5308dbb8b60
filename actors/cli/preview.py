"""`actors preview`: show the changes that `convert` would make, and the shape of its result."""

import argparse
import json
from itertools import chain

from actors.cli.arguments import add_dialect_option
from actors.cli.exits import Exit
from actors.cli.parser import Parser
from actors.cli.screen import escape_controls
from actors.cli.shape import CallLabels, shape
from actors.cli.transcript_file import Conversion, read_transcript
from actors.core.dialects.profiles import dialect

EXAMPLES = (("actors preview body.json --to mistral", "show the shape of the request and the changes"),)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("file", help="a request body or a list of messages, as JSON; `-` is standard input")
    add_dialect_option(parser, "--from", dest="source", help="dialect of the file; detected by default")
    add_dialect_option(parser, "--to", required=True, help="dialect of the result")
    parser.add_argument("--json", action="store_true", help="print one JSON object, which contains the body")


def run(options: argparse.Namespace) -> Exit:
    """Print the size of the converted request, its messages (as in `actors.cli.shape`), and every change."""
    rules = dialect(options.to)
    _, value = read_transcript(options.file)
    made = Conversion(value, options.source, rules)
    body = made.request.body
    labels = CallLabels()
    labels.add_report(made.rendered.report)
    words = shape(body, labels)
    changes = {"repairs": made.repairs, "additions": made.additions, "losses": made.losses}
    if options.json:
        fields = {"dialect": rules.name, "size": len(body), "shape": words, **changes}
        print(json.dumps({**fields, "body": json.loads(body)}))
        return Exit.OK
    for line in (f"{rules.name}: {len(body):,} bytes", " ".join(words), *chain(*changes.values())):
        print(escape_controls(line))
    return Exit.OK
